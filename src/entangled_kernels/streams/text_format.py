"""How the text of a file is written; see `entangled_kernels.tables.text_format`."""

from ..tables.text_format import TextFormat

__all__ = ["TextFormat"]
