"""How a table is to be read: its text, columns to exclude, and what is done about blank inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..streams import TextFormat
from .errors import CommandError, check_choice

__all__ = ["MISSING", "TableOptions", "read_table_options"]

MISSING = ("error", "drop", "median")
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True)
class TableOptions:
    """What the options of a command say about its table.

    Attributes
    ----------
    text_format : TextFormat
    missing : str or None
        One of MISSING; None where nothing was said.
    exclude : tuple of str
        Columns that are no inputs, and patterns of them.
    """

    text_format: TextFormat = field(default_factory=TextFormat)
    missing: str | None = None
    exclude: tuple[str, ...] = ()


def read_table_options(
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: str | None = None,
    exclude: Sequence[str] | None = None,
) -> TableOptions:
    """The values of the options, checked."""
    if missing is not None:
        check_choice("--missing", missing, MISSING)
    try:
        text_format = TextFormat(DELIMITERS.get(delimiter or "", delimiter), decimal, encoding)
    except ValueError as error:
        raise CommandError(f"--{error}") from error
    return TableOptions(text_format, missing, tuple(exclude or ()))
