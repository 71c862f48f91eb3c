"""pyarrow, and the options that it reads text with."""

from __future__ import annotations

import codecs
from typing import Any

from .text_format import TextFormat

__all__ = ["need_arrow", "text_options"]


def need_arrow() -> Any:
    """The pyarrow module, or an error that says what to install."""
    try:
        import pandas  # noqa: F401
        import pyarrow as pa
    except ImportError as error:
        raise ImportError('tables need pandas and pyarrow: pip install "entangled-kernels[data]"') from error
    return pa


def text_options(path: str, text_format: TextFormat, **more: Any) -> dict[str, Any]:
    """How text is read, parsed and converted, at once or in pieces.

    Parameters
    ----------
    path : str
    text_format : TextFormat
    **more : options of pyarrow's `ReadOptions` and `ConvertOptions`
        ``block_size``, ``column_types`` and ``include_columns``.
    """
    from pyarrow import csv

    found = text_format.of(path)
    # Then pyarrow needs no codec; it knows one spelling only, and the mark at the beginning itself.
    utf8 = codecs.lookup(str(found.encoding)).name in ("utf-8", "utf-8-sig", "ascii")
    block_size = more.pop("block_size", None)
    return {
        "read_options": csv.ReadOptions(
            use_threads=False, block_size=block_size, encoding="utf8" if utf8 else found.encoding
        ),
        "parse_options": csv.ParseOptions(delimiter=found.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(strings_can_be_null=True, decimal_point=found.decimal, **more),
    }
