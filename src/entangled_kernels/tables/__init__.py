"""Tables in files: CSV, TSV, Parquet, Arrow and NPZ, read with checks and written whole or not at all.

Needs pandas and pyarrow: ``pip install "entangled-kernels[data]"``.
"""

from .append import append_table
from .cells import (
    categories_of,
    encode_categories,
    require_columns,
    require_numbers,
    text_columns,
    unseen_categories,
)
from .errors import TableError
from .kinds import KINDS, table_kind
from .read import read_table
from .write import write_table

__all__ = [
    "KINDS",
    "TableError",
    "append_table",
    "categories_of",
    "encode_categories",
    "read_table",
    "require_columns",
    "require_numbers",
    "table_kind",
    "text_columns",
    "unseen_categories",
    "write_table",
]
