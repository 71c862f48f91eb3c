"""Tables to learn from, in memory or in files that are read in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..streams import BatchReader, read_batches, table_columns
from ..tables import TableError, read_table, require_numbers, require_text, text_columns
from ..tables.phrases import counted, quoted
from .batches import batch_bytes
from .blanks import Blanks
from .columns import choose_columns
from .errors import CommandError

__all__ = ["TrainingTable", "open_batches", "read_rows"]

WAY_OUT = "; leave the column out, or have its text turned into columns of 0 and 1 with --encode"
# Of files that are read in batches, rows that show what the inputs are like.
FIRST_ROWS = 10_000


@dataclass(frozen=True)
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
    """

    inputs: list[str]
    targets: list[str]
    text: list[str]
    X: Any
    Y: Any
    reader: BatchReader | None
    notes: list[str]
    blanks: Blanks = field(default_factory=Blanks)


def read_rows(
    path: Path,
    targets: Sequence[str],
    inputs: Sequence[str] | None,
    *,
    encode: bool,
    fewest: int,
    work: str,
    blanks: bool = False,
) -> TrainingTable:
    """Read a table into memory and choose its inputs and targets; the work needs so many rows at least.

    With ``blanks`` cells of targets may be blank; rows without any target are left out.
    """
    frame = read_table(path)
    target_names, input_names, notes = choose_columns(frame, targets, inputs, path)
    way_out = "; a target must be a number" + (", or blank" if blanks else " in every row")
    Y = require_numbers(frame, target_names, path, way_out=way_out, blanks=blanks)
    text = text_columns(frame, input_names) if encode else []
    numbers = [name for name in input_names if name not in text]
    X = frame[input_names].copy()
    X[text] = require_text(frame, text, path)
    X[numbers] = require_numbers(frame, numbers, path, way_out=WAY_OUT)
    found = Blanks()
    found.count(Y)
    if found.empty_rows:
        measured = Y.notna().any(axis=1)
        X, Y = X[measured], Y[measured]
    never = [name for name in target_names if Y[name].isna().all()]
    if never:
        raise TableError(path, f"target {quoted(never)} has no measured cell; leave it out of --targets")
    if len(X) < fewest:
        raise TableError(path, f"{work} needs at least {fewest} rows, got {len(X)}")
    notes += _many_texts(X[text]) + _constant(X, "input") + _constant(Y, "target")
    return TrainingTable(input_names, target_names, text, X, Y, None, notes, found)


def open_batches(
    path: Path, targets: Sequence[str], inputs: Sequence[str] | None, *, encode: bool, max_memory: float
) -> TrainingTable:
    """Choose inputs and targets of files by the first of them, and look at the first rows."""
    import pandas as pd

    kinds = table_columns(path)
    target_names, wanted, notes = choose_columns(pd.DataFrame(columns=list(kinds)), targets, inputs, path)
    text = [name for name in wanted if encode and kinds[name] == "text"]
    other = [name for name in wanted if name not in text and kinds[name] != "number"]
    if other and inputs is not None:
        way_out = WAY_OUT if kinds[other[0]] == "text" else "; leave the column out"
        raise CommandError(
            f"{path}: column '{other[0]}' holds {kinds[other[0]]}, not numbers{way_out}", "data"
        )
    if other:
        notes.append(f"left out, since they hold no numbers: {quoted(other)}; --encode takes text")
        wanted = [name for name in wanted if name not in other]
    if not wanted:
        raise CommandError(f"{path}: no columns are left for inputs", "data")
    reader = read_batches(path, inputs=wanted, targets=target_names, max_memory=batch_bytes(max_memory))
    frames, n_rows = [], 0
    for batch in reader:
        frames.append(batch.X)
        n_rows += len(batch.X)
        if n_rows >= FIRST_ROWS:
            break
    if n_rows == 0:
        raise CommandError(f"{path} holds no rows", "data")
    first = pd.concat(frames, ignore_index=True)[:FIRST_ROWS]
    return TrainingTable(wanted, target_names, text, first, None, reader, notes)


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
