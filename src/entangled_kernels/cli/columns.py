"""Which columns of a table are targets, and which are inputs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..tables import TableError, require_columns
from .errors import CommandError

__all__ = ["choose_columns", "split_names"]


def split_names(values: Sequence[str]) -> list[str]:
    """Names from an option that may be repeated: separated by commas, in quotes where they hold one.

    Examples
    --------
    >>> split_names(["a,net load", '"x, y"'])
    ['a', 'net load', 'x, y']
    """
    names = [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row]
    return [name for name in names if name]


def choose_columns(
    frame: Any, targets: Sequence[str], inputs: Sequence[str] | None, path: Any
) -> tuple[list[str], list[str], list[str]]:
    """Names of targets and inputs, and notes; all other columns are inputs when none are named."""
    have, notes = [str(name) for name in frame.columns], list[str]()
    target_names = _expand(targets, have, "--targets")
    if not target_names:
        raise CommandError("--targets must name at least one column")
    if inputs is None:
        input_names = [name for name in have if name not in target_names]
        if "" in input_names:
            input_names.remove("")
            notes.append("the column without a name is taken for row numbers and left out")
    else:
        input_names = _expand(inputs, have, "--inputs")
    try:
        require_columns(frame, [*target_names, *input_names], path)
    except TableError as error:
        raise CommandError(str(error)) from error
    both = [name for name in input_names if name in target_names]
    if both:
        raise CommandError(f"column '{both[0]}' is named in both --inputs and --targets")
    if not input_names:
        raise CommandError(f"{path}: no columns are left for inputs; every column is a target")
    return target_names, input_names, notes


def _expand(values: Sequence[str], have: Sequence[str], option: str) -> list[str]:
    """Names of an option; what is no name may be a pattern such as 'torque *'."""
    names = [name for value in values for name in ([value] if value in have else split_names([value]))]
    chosen: list[str] = []
    for name in names:
        found = [name] if name in have else [other for other in have if fnmatchcase(other, name)]
        chosen += found if found and any(sign in name for sign in "*?[") else [name]
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise CommandError(f"column '{twice[0]}' is named twice in {option}")
    return chosen
