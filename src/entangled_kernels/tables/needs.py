"""The packages that tables need."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["need"]


def need(*packages: str) -> None:
    """Raise an error that says what to install unless all packages are there."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'tables need {" and ".join(missing)}: pip install "entangled-kernels[data]"', name=missing[0]
        )
