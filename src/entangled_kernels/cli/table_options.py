"""How a table is to be read: its text, columns to exclude, and what is done about blank inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..streams import TextFormat
from .errors import CommandError, check_choice
from .held_out import HeldOut, read_held_out

__all__ = ["MISSING", "PLAIN", "TableOptions", "read_table_options"]

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
    held_out : HeldOut
        Which rows are held out together.
    """

    text_format: TextFormat = field(default_factory=TextFormat)
    missing: str | None = None
    exclude: tuple[str, ...] = ()
    held_out: HeldOut = field(default_factory=HeldOut)


PLAIN = TableOptions()


def read_table_options(
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: str | None = None,
    exclude: Sequence[str] | None = None,
    groups: str | None = None,
    time_ordered: bool = False,
    time_column: str | None = None,
) -> TableOptions:
    """The values of the options, checked."""
    if missing is not None:
        check_choice("--missing", missing, MISSING)
    try:
        text_format = TextFormat(DELIMITERS.get(delimiter or "", delimiter), decimal, encoding)
    except ValueError as error:
        raise CommandError(f"--{error}") from error
    held_out = read_held_out(groups, time_ordered, time_column)
    return TableOptions(text_format, missing, tuple(exclude or ()), held_out)
