"""Files: fitted models, tables, results of experiments, and models as ONNX files."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from ..files import TextFormat, atomic_write
from .models import (
    ModelFileError,
    SavedModel,
    load_model,
    open_model,
    save_model,
    software_versions,
)
from .results import ExperimentResults, Record
from .tables import (
    Hints,
    TableError,
    append_table,
    read_table,
    require_columns,
    require_numbers,
    require_text,
    table_kind,
    text_appender,
    text_columns,
    write_table,
)

if TYPE_CHECKING:
    from .onnx_export import (
        ExportedModel,
        ExportError,
        compare_onnx,
        export_onnx,
        register_converters,
        run_onnx,
    )

__all__ = [
    "ExperimentResults",
    "ExportError",
    "ExportedModel",
    "Hints",
    "ModelFileError",
    "Record",
    "SavedModel",
    "TableError",
    "TextFormat",
    "append_table",
    "atomic_write",
    "compare_onnx",
    "export_onnx",
    "load_model",
    "open_model",
    "read_table",
    "register_converters",
    "require_columns",
    "require_numbers",
    "require_text",
    "run_onnx",
    "save_model",
    "software_versions",
    "table_kind",
    "text_appender",
    "text_columns",
    "write_table",
]


def __getattr__(name: str) -> Any:
    # Exporting imports all estimators; tables and results are read without scikit-learn.
    if name in __all__:
        return globals().setdefault(name, getattr(_import_module(".onnx_export", __name__), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
