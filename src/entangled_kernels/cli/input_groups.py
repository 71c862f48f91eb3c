"""Inputs that belong together, as they are typed: ``NAME=A,B``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import CommandError
from .shell_command import split_names
from .training_table import TrainingTable, expand_names

__all__ = ["OPTION", "name_pair", "place_groups", "read_groups"]

OPTION = "--input-group"


def name_pair(option: str, text: str) -> tuple[str, str]:
    """Name and value of ``NAME=VALUE``."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise CommandError(f"{option} must be NAME=VALUE, got {text!r}")
    return name, value


def read_groups(values: Sequence[str] | None) -> dict[str, list[str]]:
    """Columns, or patterns of them, by the name of the group.

    Examples
    --------
    >>> read_groups(["water=flow,pressure", "heat=inlet*"])
    {'water': ['flow', 'pressure'], 'heat': ['inlet*']}
    """
    named = [name_pair(OPTION, value) for value in values or []]
    twice = [name for name, _ in named if [other for other, _ in named].count(name) > 1]
    if twice:
        raise CommandError(f"{OPTION} {twice[0]!r} is named twice")
    return {name: split_names([columns]) for name, columns in named}


def place_groups(groups: Mapping[str, Sequence[str]], table: TrainingTable) -> dict[str, list[int]]:
    """Places of the columns of every group among the inputs of a table."""
    if groups and table.text:
        raise CommandError(f"{OPTION} needs inputs that are numbers; leave out --encode and columns of text")
    placed = {}
    for name, columns in groups.items():
        found = expand_names(columns, table.inputs, OPTION)
        missing = [column for column in found if column not in table.inputs]
        if missing:
            raise CommandError(f"{OPTION} {name}: '{missing[0]}' is not among the inputs")
        placed[name] = [table.inputs.index(column) for column in found]
    return placed
