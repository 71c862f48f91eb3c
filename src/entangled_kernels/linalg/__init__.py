"""Block matrices, Kraus operators and entanglement, on plain NumPy arrays."""

from .layout import kraus_to_stacked, stacked_to_kraus

__all__ = ["kraus_to_stacked", "stacked_to_kraus"]
