"""Which kind of table a file is; see `entangled_kernels.tables.file_kinds`."""

from ..tables.file_kinds import KINDS, TEXT_KINDS, file_kind

__all__ = ["KINDS", "TEXT_KINDS", "file_kind"]
