"""Tables in files: CSV, TSV, Parquet, Arrow and NPZ, read with checks and written whole or not at all.

Needs pandas and pyarrow: ``pip install "entangled-kernels[data]"``.
"""

from .cells import Hints, require_columns, require_numbers, require_text, text_columns
from .errors import TableError
from .read import read_table, table_kind
from .write import append_table, text_appender, write_table

__all__ = [
    "Hints",
    "TableError",
    "append_table",
    "read_table",
    "require_columns",
    "require_numbers",
    "require_text",
    "table_kind",
    "text_appender",
    "text_columns",
    "write_table",
]
