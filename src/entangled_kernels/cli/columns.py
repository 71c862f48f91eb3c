"""Which columns of a table are targets, and which are inputs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import (
    TableError,
    categories_of,
    encode_categories,
    read_table,
    require_columns,
    require_numbers,
    text_columns,
)
from .errors import CommandError

__all__ = ["LearningTable", "choose_columns", "read_learning_table", "split_names"]

ENCODE = "; leave the column out, or have its text turned into columns of 0 and 1 with --encode"


@dataclass(frozen=True)
class LearningTable:
    """Inputs and targets as numbers, and where they came from.

    Attributes
    ----------
    X, Y : pandas.DataFrame
        Text among the inputs is encoded.
    inputs, targets : list of str
        Names of the columns of the file.
    categories : dict
        Values of the inputs that hold text.
    notes : list of str
        What is worth telling.
    """

    X: Any
    Y: Any
    inputs: list[str]
    targets: list[str]
    categories: dict[str, list[str]]
    notes: list[str] = field(default_factory=list)


def read_learning_table(
    path: Path, targets: Sequence[str], inputs: Sequence[str] | None, *, encode: bool
) -> LearningTable:
    """Read a table and choose its inputs and targets."""
    frame = read_table(path)
    notes: list[str] = []
    target_names, input_names = choose_columns(frame, targets, inputs, path, notes)
    Y = require_numbers(frame, target_names, path, way_out="; a target must be a number in every row")
    text = text_columns(frame, input_names) if encode else []
    categories = categories_of(frame, text, path)
    notes += _many_values(categories, len(frame))
    plain = [name for name in input_names if name not in text]
    frame[plain] = require_numbers(frame, plain, path, way_out=ENCODE)
    X = encode_categories(frame[input_names], categories)
    if len(set(X.columns)) < X.shape[1]:
        raise TableError(path, "columns made by --encode have the names of others; rename the columns")
    notes += _constant(X, "input") + _constant(Y, "target")
    return LearningTable(X, Y, input_names, target_names, categories, notes)


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
    frame: Any, targets: Sequence[str], inputs: Sequence[str] | None, path: Any, notes: list[str]
) -> tuple[list[str], list[str]]:
    """Names of targets and inputs; all other columns are inputs when none are named."""
    have = [str(name) for name in frame.columns]
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
    return target_names, input_names


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


def _many_values(categories: dict[str, list[str]], rows: int) -> list[str]:
    """Notes about columns of text that rather name the rows."""
    return [
        f"column '{name}' has {len(values)} different texts in {rows} rows; leave it out if it names the rows"
        for name, values in categories.items()
        if len(values) > max(10, rows // 2)
    ]


def _constant(frame: Any, role: str) -> list[str]:
    """Notes about columns that never change."""
    values = frame.to_numpy()
    names = [str(frame.columns[place]) for place in np.flatnonzero((values == values[0]).all(axis=0))]
    if not names:
        return []
    shown = ", ".join(f"'{name}'" for name in names[:5]) + (" and others" if len(names) > 5 else "")
    says = "says nothing about the targets" if role == "input" else "needs no model; its error is not counted"
    return [f"{role} {shown} has the same value in every row and {says}"]
