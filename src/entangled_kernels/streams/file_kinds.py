"""Which kind of table a file is; see `entangled_kernels.files`."""

from ..files import KINDS, TEXT_KINDS, file_kind

__all__ = ["KINDS", "TEXT_KINDS", "file_kind"]
