"""Tables to fit to: which columns are targets and which are inputs, and rows in memory or in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..streams import BatchReader, read_batches, table_columns
from ..streams.arrow import SEVERAL
from ..tables import TableError, read_table, require_columns, require_numbers, require_text, text_columns
from ..tables.phrases import counted, quoted
from .batches import batch_bytes
from .blanks import Blanks
from .errors import CommandError
from .held_out import HeldOut, group_values, time_values
from .shell_command import split_names
from .table_options import PLAIN, TableOptions

__all__ = [
    "TrainingTable",
    "choose_columns",
    "expand_names",
    "left_out_in_words",
    "open_batches",
    "read_rows",
]

WAY_OUT = (
    "; leave the column out with --exclude, or have its text turned into columns of 0 and 1 with --encode"
)
# Of files that are read in batches, rows that show what the inputs are like.
FIRST_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Inputs and targets to learn from.

    Attributes
    ----------
    inputs, targets : list of str
        Names of columns.
    text : list of str
        Inputs that hold text, which the model encodes.
    X : pandas.DataFrame
        Inputs; of files that are read in batches those of the first rows.
    Y : pandas.DataFrame or None
        Targets, where all rows are in memory.
    reader : BatchReader or None
        Reads the rows in batches, where they are not in memory.
    notes : list of str
        What is worth telling.
    blanks : Blanks
        Among the targets; of files that are read in batches counted when they are.
    fill : bool
        Whether blank inputs are to be filled.
    held_out : HeldOut
        Which rows are held out together; with the groups or times of rows in memory.
    """

    inputs: list[str]
    targets: list[str]
    text: list[str]
    X: Any
    Y: Any
    reader: BatchReader | None
    notes: list[str]
    blanks: Blanks = field(default_factory=Blanks)
    fill: bool = False
    held_out: HeldOut = field(default_factory=HeldOut)


def read_rows(
    path: Path,
    targets: Sequence[str],
    inputs: Sequence[str] | None,
    *,
    encode: bool,
    fewest: int,
    work: str,
    blanks: bool = False,
    options: TableOptions = PLAIN,
) -> TrainingTable:
    """Read a table into memory and choose its inputs and targets; the work needs so many rows at least.

    Rows are put in the order of the column of time, where there is one. With ``blanks`` cells of targets may
    be blank; rows without any target are left out.
    """
    frame = read_table(path, options.text_format)
    target_names, input_names, notes = choose_columns(frame, targets, inputs, path, options)
    way_out = "; a target must be a number" + (", or blank" if blanks else " in every row")
    Y = require_numbers(frame, target_names, path, way_out=way_out, blanks=blanks)
    text = text_columns(frame, input_names) if encode else []
    numbers = [name for name in input_names if name not in text]
    X = frame[input_names].copy()
    may_be_blank = options.missing in ("drop", "median")
    X[text] = require_text(frame, text, path, blanks=may_be_blank)
    X[numbers] = require_numbers(frame, numbers, path, way_out=WAY_OUT, blanks=may_be_blank)
    blank = frame[input_names].isna()
    if options.missing == "drop" and blank.to_numpy().any():
        whole = ~blank.any(axis=1)
        notes.append(left_out_in_words(int((~whole).sum()), len(frame)))
        X, Y = X[whole], Y[whole]
    elif may_be_blank and blank.to_numpy().any():
        names = [name for name in input_names if blank[name].any()]
        cells = counted(int(blank.to_numpy().sum()), "blank cell")
        notes.append(f"{cells} of inputs filled, with medians where they hold numbers: {quoted(names)}")
    found = Blanks()
    found.count(Y)
    if found.empty_rows:
        measured = Y.notna().any(axis=1)
        X, Y = X[measured], Y[measured]
    never = [name for name in target_names if Y[name].isna().all()]
    if never:
        raise TableError(path, f"target {quoted(never)} has no measured cell; leave it out of --targets")
    empty = [name for name in numbers if X[name].isna().all()]
    if empty and len(X):
        raise TableError(path, f"input {quoted(empty)} has no value in any row; leave it out with --exclude")
    if len(X) < fewest:
        raise TableError(path, f"{work} needs at least {fewest} rows, got {len(X)}")
    X, Y, held_out = _in_order(frame, X, Y, path, options.held_out)
    notes += _many_texts(X[text]) + _constant(X, "input") + _constant(Y, "target")
    return TrainingTable(
        input_names,
        target_names,
        text,
        X,
        Y,
        None,
        notes,
        blanks=found,
        fill=options.missing == "median",
        held_out=held_out,
    )


def _in_order(frame: Any, X: Any, Y: Any, path: Path, held_out: HeldOut) -> tuple[Any, Any, HeldOut]:
    """Inputs and targets, in the order of time where there is such a column, and groups or times."""
    if held_out.column is None:
        return X, Y, held_out
    read = group_values if held_out.by == "groups" else time_values
    values = read(frame, held_out.column, path)[frame.index.get_indexer(X.index)]
    if held_out.by == "groups":
        return X, Y, held_out.with_values(values)
    order = np.argsort(values, kind="stable")
    return X.iloc[order], Y.iloc[order], held_out.with_values(values[order])


def left_out_in_words(n_left: int, n_rows: int) -> str:
    """A sentence about rows that lack an input."""
    verb = "has a blank input and is" if n_left == 1 else "have a blank input and are"
    return f"{counted(n_left, 'row')} of {n_rows:,} {verb} left out"


def open_batches(
    path: Path,
    targets: Sequence[str],
    inputs: Sequence[str] | None,
    *,
    encode: bool,
    max_memory: float,
    options: TableOptions = PLAIN,
) -> TrainingTable:
    """Choose inputs and targets of files by the first of them, and look at the first rows."""
    import pandas as pd

    kinds = table_columns(path, options.text_format)
    names = pd.DataFrame(columns=list(kinds))
    held_out = options.held_out
    if held_out.by == "time" and held_out.column is not None:
        raise CommandError(
            "--time-column needs the table in memory; sort the rows by time and say --time-ordered"
        )
    target_names, wanted, notes = choose_columns(names, targets, inputs, path, options)
    twice = [name for name in [*target_names, *wanted] if kinds[name] == SEVERAL]
    if twice:
        raise CommandError(f"{path}: several columns have the name '{twice[0]}'; rename or exclude them")
    text = [name for name in wanted if encode and kinds[name] == "text"]
    other = [name for name in wanted if name not in text and kinds[name] != "number"]
    if other and inputs is not None:
        way_out = WAY_OUT if kinds[other[0]] == "text" else "; leave the column out with --exclude"
        raise CommandError(
            f"{path}: column '{other[0]}' holds {kinds[other[0]]}, not numbers{way_out}", "data"
        )
    if other:
        notes.append(f"left out, since they hold no numbers: {quoted(other)}; --encode takes text")
        wanted = [name for name in wanted if name not in other]
    if not wanted:
        raise CommandError(f"{path}: no columns are left for inputs", "data")
    reader = read_batches(
        path,
        inputs=wanted,
        targets=target_names,
        max_memory=batch_bytes(max_memory),
        text_format=options.text_format,
        drop_blank_inputs=options.missing == "drop",
        groups=held_out.column,
    )
    frames, n_rows = [], 0
    for batch in reader:
        frames.append(batch.X)
        n_rows += len(batch.X)
        if n_rows >= FIRST_ROWS:
            break
    if n_rows == 0:
        raise CommandError(f"{path} holds no rows", "data")
    first = pd.concat(frames, ignore_index=True)[:FIRST_ROWS]
    return TrainingTable(
        wanted,
        target_names,
        text,
        first,
        None,
        reader,
        notes,
        fill=options.missing == "median",
        held_out=held_out,
    )


def choose_columns(
    frame: Any,
    targets: Sequence[str],
    inputs: Sequence[str] | None,
    path: Any,
    options: TableOptions = PLAIN,
) -> tuple[list[str], list[str], list[str]]:
    """Names of targets and inputs, and notes; all columns that are left are inputs when none are named."""
    have, notes = [str(name) for name in frame.columns], list[str]()
    target_names = expand_names(targets, have, "--targets")
    if not target_names:
        raise CommandError("--targets must name at least one column")
    # What tells which rows are held out together is no input, unless it is named as one.
    apart = [] if options.held_out.column is None else [options.held_out.column]
    if inputs is None:
        input_names = [name for name in have if name not in [*target_names, *apart]]
        if "" in input_names:
            input_names.remove("")
            notes.append("the column without a name is taken for row numbers and left out")
    else:
        input_names = expand_names(inputs, have, "--inputs")
    left_out = expand_names(options.exclude, have, "--exclude")
    input_names = [name for name in input_names if name not in left_out]
    try:
        require_columns(frame.loc[:, ~frame.columns.duplicated()], left_out, path)
        require_columns(frame, [*target_names, *input_names, *apart], path)
    except TableError as error:
        raise CommandError(str(error)) from error
    if set(apart) & set(target_names):
        option = next(name for name, value in options.held_out.options().items() if value)
        raise CommandError(f"column '{apart[0]}' is named in both {option} and --targets")
    both = [name for name in input_names if name in target_names]
    if both:
        raise CommandError(f"column '{both[0]}' is named in both --inputs and --targets")
    if not input_names:
        raise CommandError(f"{path}: no columns are left for inputs; every column is a target")
    return target_names, input_names, notes


def expand_names(values: Sequence[str], have: Sequence[str], option: str) -> list[str]:
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


def _many_texts(frame: Any) -> list[str]:
    """Notes about columns of text that rather name the rows."""
    counts, rows = {name: frame[name].nunique() for name in frame}, counted(len(frame), "row")
    return [
        f"column '{name}' has {count} different texts in {rows}; leave it out if it names the rows"
        for name, count in counts.items()
        if count > max(10, len(frame) // 2)
    ]


def _constant(frame: Any, role: str) -> list[str]:
    """Notes about columns that never change."""
    names = [name for name in frame if frame[name].nunique() == 1]
    if not names:
        return []
    says = "says nothing about the targets" if role == "input" else "needs no model; its error is not counted"
    return [f"{role} {quoted(names)} has the same value in every row and {says}"]
