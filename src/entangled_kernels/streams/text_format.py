"""How the text of a file is written; see `entangled_kernels.files`."""

from ..files import TextFormat

__all__ = ["TextFormat"]
