"""Parts of sentences about tables: counted things, and names in quotes."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "quoted"]


def counted(number: int, thing: str) -> str:
    """A number and its thing, which gets an s unless it is one.

    Examples
    --------
    >>> counted(1, "target"), counted(1200, "row")
    ('1 target', '1,200 rows')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def quoted(names: Sequence[str], conjunction: str = "and", *, most: int = 5) -> str:
    """Names in quotes, of many the first ones.

    Examples
    --------
    >>> quoted(["net load"]), quoted(["a", "b", "c"], "or"), quoted(list("abcd"), most=2)
    ("'net load'", "'a', 'b' or 'c'", "'a', 'b' and 2 more")
    """
    shown = [f"'{name}'" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"
