"""Tables to learn from: inputs, targets, and which rows are held out together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io import Hints, TableError, read_table, require_columns, require_numbers, require_text
from ..io.tables import (
    LIMIT,
    counted,
    first_texts,
    looks_like_a_date,
    looks_like_a_decimal_comma,
    looks_like_a_limit,
    quoted,
    text_numbers,
)
from .errors import CommandError
from .files import decimal_sign
from .options import TrainingOptions, comma_hint, split_names

if TYPE_CHECKING:
    from ..streams import Batch, BatchReader

__all__ = [
    "SCALES",
    "HeldOut",
    "MissingTargets",
    "TrainingTable",
    "batch_bytes",
    "check_scales",
    "left_out_in_words",
    "open_batches",
    "read_rows",
    "read_scales",
    "watch_batches",
]

# Rows at the beginning of files read in batches, by which columns are judged.
FIRST_ROWS = 10_000
# Columns with more different numbers than this are not encoded as text for the sake of other texts.
MOST_CODES = 10
TARGET_HINTS = Hints(
    text="; a target must be a number, or missing",
    date="; a target must be a number, or missing",
    comma="; if its comma is a decimal sign, say --decimal ,",
)
INPUT_HINTS = Hints(
    comma="; if its comma is a decimal sign, say --decimal ,",
    empty="; fill it, or leave out the row (--missing drop) or the column (--exclude)",
)
EMPTY = "the cell is empty; fill it, or leave out the row"
# Scales on which targets can be learned, and the numbers that they need.
SCALES = {"log": "above zero", "log1p": "zero or above"}


@dataclass
class MissingTargets:
    """How many values of each target are missing, and how many rows have no target at all.

    Attributes
    ----------
    cells : dict of int
        Missing values by target, not counting rows without any target.
    rows : int
        Rows that were counted.
    empty_rows : int
        Rows without any target, which nothing can be learned from.
    """

    cells: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    empty_rows: int = 0

    def count(self, Y: Any) -> None:
        """Count the missing values of more rows, a data frame of pandas or Dask."""
        missing = Y.isna()
        counts = missing.sum(), missing.all(axis=1).sum(), missing.shape[0]
        if hasattr(Y, "dask"):
            from dask.base import compute

            # One pass for all three.
            counts = compute(*counts)  # type: ignore[no-untyped-call]
        cells, empty, n_rows = counts
        for name, number in cells.items():
            if number > empty:
                self.cells[str(name)] = self.cells.get(str(name), 0) + int(number - empty)
        self.rows, self.empty_rows = self.rows + int(n_rows), self.empty_rows + int(empty)


@dataclass(frozen=True)
class HeldOut:
    """How rows are held out.

    Attributes
    ----------
    by : {"rows", "groups", "time"}
    column : str or None
        Column of the groups or of the time; None if rows are in the order of time already.
    values : ndarray of shape (n,) or None
        Groups of the rows in memory, or their times in increasing order.
    """

    by: str = "rows"
    column: str | None = None
    values: NDArray[Any] | None = field(default=None, compare=False)

    def facts(self) -> dict[str, Any]:
        """Values to keep with the model."""
        groups = self.values if self.by == "groups" else None
        n_groups = None if groups is None else len(np.unique(groups))
        return {"by": self.by, "column": self.column, "groups": n_groups}

    def check_folds(self, folds: int) -> None:
        """Raise if there are fewer groups than folds."""
        n_groups = self.facts()["groups"]
        if n_groups == 1:
            raise CommandError(
                f"--groups: column '{self.column}' has the same value in every row; at least 2 are "
                "needed",
                "data",
            )
        if n_groups is not None and n_groups < folds:
            raise CommandError(
                f"--folds {folds} is more than the {n_groups} groups of column '{self.column}'; "
                f"say --folds {n_groups}"
            )

    def time_splits(self, n_rows: int, folds: int) -> list[Any]:
        """Splits of rows in memory into earlier and later ones."""
        from ..selection import time_splits

        return time_splits(n_rows, folds, self.values)


def held_out_of(options: TrainingOptions) -> HeldOut:
    """How the options hold out rows."""
    if options.groups is not None:
        return HeldOut("groups", options.groups)
    timed = options.time_ordered or options.time_column is not None
    return HeldOut("time", options.time_column) if timed else HeldOut()


def _held_out_values(frame: Any, held_out: HeldOut, path: Any) -> NDArray[Any]:
    """Groups of all rows of a table, numbers or texts, or their times as numbers."""
    import pandas as pd

    name = held_out.column
    column = frame[name]
    missing = np.flatnonzero((column.isna() | (column.astype(str).str.strip() == "")).to_numpy())
    if len(missing):
        raise TableError(path, EMPTY, row=int(missing[0]) + 1, column=name)
    numbers = column.dtype.kind in "biuf"
    if held_out.by == "groups":
        return np.asarray(column.to_numpy() if numbers else column.to_numpy().astype(str))
    if numbers:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    if times.isna().all():
        times = pd.to_datetime(column, format="%d.%m.%Y", errors="coerce", utc=True)
        months_first = pd.to_datetime(column, format="%m.%d.%Y", errors="coerce", utc=True)
        if not (times.isna() | months_first.isna()).any():
            problem = (
                f"'{column.iloc[0]}' may begin with the day or the month, here and in all other "
                "rows; write dates such as 2024-05-31, or sort the rows by time and say "
                "--time-ordered"
            )
            raise TableError(path, problem, row=1, column=name)
    wrong = np.flatnonzero(times.isna().to_numpy())
    if len(wrong):
        problem = (
            f"'{column.iloc[wrong[0]]}' is no number and no date such as 2024-05-31 or 31.05.2024; "
            "sort the rows by time and say --time-ordered"
        )
        raise TableError(path, problem, row=int(wrong[0]) + 1, column=name)
    return np.asarray(times.astype("int64").to_numpy())


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
        Inputs; in batches, those of the first rows.
    Y : pandas.DataFrame or None
        Targets, if all rows are in memory.
    reader : BatchReader or None
        Reads the rows in batches, if they are not in memory.
    notes : list of str
        Sentences for the user.
    missing : MissingTargets
        Counts of missing targets; in batches, they are counted while the model is fitted.
    fill : bool
        Whether missing inputs are filled with medians.
    held_out : HeldOut
        How rows are held out, with the groups or times of rows in memory.
    """

    inputs: list[str]
    targets: list[str]
    text: list[str]
    X: Any
    Y: Any
    reader: BatchReader | None
    notes: list[str]
    missing: MissingTargets = field(default_factory=MissingTargets)
    fill: bool = False
    held_out: HeldOut = field(default_factory=HeldOut)


def read_rows(path: Path, options: TrainingOptions, *, fewest: int, work: str) -> TrainingTable:
    """Read a table into memory; the work needs at least ``fewest`` rows.

    Rows are sorted by the column of time, if there is one. Rows without any target are left out.
    """
    frame = read_table(path, options.text_format())
    target_names, input_names, notes = choose_columns(frame, path, options)
    sign: Any = {"decimal": decimal_sign(path, options.text_format())}
    Y = require_numbers(frame, target_names, path, hints=TARGET_HINTS, blanks=True, **sign)
    texts = first_texts(frame, input_names, **sign)
    _require_encoded(frame[input_names], texts, path, options, **sign)
    text, numbers = list(texts), [name for name in input_names if name not in texts]
    X = frame[input_names].copy()
    may_be_missing = options.missing in ("drop", "median")
    X[text] = require_text(frame, text, path, hints=INPUT_HINTS, blanks=may_be_missing)
    X[numbers] = require_numbers(
        frame, numbers, path, hints=INPUT_HINTS, blanks=may_be_missing, **sign
    )
    _require_values(Y, path, "target", "of --targets")
    _require_values(X[numbers], path, "input", "with --exclude")
    missing = frame[input_names].isna()
    if options.missing == "drop" and missing.to_numpy().any():
        whole = ~missing.any(axis=1)
        notes.append(left_out_in_words(int((~whole).sum()), len(frame)))
        X, Y = X[whole], Y[whole]
    elif missing.to_numpy().any():
        names = [name for name in input_names if missing[name].any()]
        cells = counted(int(missing.to_numpy().sum()), "missing value")
        notes.append(
            f"{cells} of inputs filled in, with medians where they hold numbers: {quoted(names)}"
        )
    missing_targets = MissingTargets()
    missing_targets.count(Y)
    if missing_targets.empty_rows:
        measured = Y.notna().any(axis=1)
        X, Y = X[measured], Y[measured]
    if len(X) < fewest:
        raise TableError(path, f"{work} needs at least {fewest} rows, got {len(X)}")
    # Rows that were left out may have held the only values of a target.
    _require_values(Y, path, "target", "of --targets")
    held_out = held_out_of(options)
    if held_out.column is not None:
        values = _held_out_values(frame, held_out, path)[frame.index.get_indexer(X.index)]
        if held_out.by == "time":
            order = np.argsort(values, kind="stable")
            X, Y, values = X.iloc[order], Y.iloc[order], values[order]
        held_out = replace(held_out, values=values)
    elif held_out.by == "time":
        held_out = replace(held_out, values=np.arange(len(X)))
    return TrainingTable(
        input_names,
        target_names,
        text,
        X,
        Y,
        None,
        notes + _many_texts(X[text]) + _constant(X, "input") + _constant(Y, "target"),
        missing_targets,
        options.missing == "median",
        held_out,
    )


def _require_values(frame: Any, path: Path, role: str, way: str) -> None:
    """Raise for columns without any value."""
    if empty := [name for name in frame if frame[name].isna().all()]:
        problem = f"{role} {quoted(empty)} has no value in any row; leave it out {way}"
        raise TableError(path, problem)


def _require_encoded(
    frame: Any,
    texts: dict[str, tuple[int, str]],
    path: Path,
    options: TrainingOptions,
    decimal: str,
) -> None:
    """Raise for all inputs that hold text at once, with the command that would work.

    A column of numbers with a few other texts is no text to encode; its first other text is named.
    """
    for name, (row, cell) in texts.items():
        if looks_like_a_decimal_comma(cell):
            raise TableError(
                path, f"'{cell}' is no number{INPUT_HINTS.comma}", row=row, column=name
            )
        if looks_like_a_date(cell):
            continue
        different = frame[name].dropna().drop_duplicates()
        numbers = int(text_numbers(different, decimal).notna().sum())
        few = MOST_CODES if options.encode else 0
        if numbers > max(few, len(different) // 2):
            problem = (
                f"'{cell}' is no number, but {numbers} of the {len(different)} different values "
                f"of the column are"
            )
            advice = "; leave the cell empty if the value is missing"
            if looks_like_a_limit(cell):
                advice = LIMIT
            raise TableError(path, problem + advice, row=row, column=name)
    dates = [name for name, (_, cell) in texts.items() if looks_like_a_date(cell)]
    others = [] if options.encode else [name for name in texts if name not in dates]
    if not dates and not others:
        return
    ways, wrong = [], [name for name in texts if name in dates or name in others]
    if dates:
        ways.append(
            "leave dates out (--exclude), or turn them into numbers, such as days since the first"
        )
    if others:
        ways.append("turn text into columns of 0 and 1 (--encode), or leave it out (--exclude)")
    what = " and ".join(["text"] * bool(others) + ["dates"] * bool(dates))
    ids = [name for name in others if _names_rows(frame[name])]
    works = options.with_columns(
        encode=[name for name in others if name not in ids], exclude=[*ids, *dates]
    )
    incomplete = frame.drop(columns=[*ids, *dates]).isna().any(axis=None)
    if incomplete and options.missing in (None, "error"):
        works = replace(works, missing="median")
    cells = ", ".join(
        f"'{name}' (row {texts[name][0]}: '{texts[name][1].removesuffix(' 00:00:00')}')"
        for name in wrong
    )
    holds = "column holds" if len(wrong) == 1 else "columns hold"
    problem = f"{len(wrong)} {holds} {what}, not numbers: {cells}; {'; '.join(ways)}."
    raise TableError(path, f"{problem} This works: {works.command()}")


def left_out_in_words(n_left: int, n_rows: int) -> str:
    """A sentence about rows that lack an input."""
    verb = "has a missing input and is" if n_left == 1 else "have a missing input and are"
    return f"{counted(n_left, 'row')} of {n_rows:,} {verb} left out"


def open_batches(path: Path, options: TrainingOptions, *, max_memory: float) -> TrainingTable:
    """Choose inputs and targets of files that are read in batches, by the first rows."""
    import pandas as pd

    from ..streams import read_batches, table_columns
    from ..streams.arrow import SEVERAL

    text_format = options.text_format()
    kinds = table_columns(path, text_format)
    names = pd.DataFrame(columns=list(kinds))
    held_out = held_out_of(options)
    if held_out.by == "time" and held_out.column is not None:
        raise CommandError(
            "--time-column needs the table in memory; sort the rows by time and say --time-ordered"
        )
    target_names, wanted, notes = choose_columns(names, path, options)
    twice = [name for name in [*target_names, *wanted] if kinds[name] == SEVERAL]
    if twice:
        raise CommandError(
            f"{path}: several columns have the name '{twice[0]}'; rename or exclude them"
        )
    text = [name for name in wanted if options.encode and kinds[name] == "text"]
    other = [name for name in wanted if name not in text and kinds[name] != "number"]
    if other and options.inputs is not None:
        works = options.with_columns(
            encode=[name for name in other if kinds[name] == "text"],
            exclude=[name for name in other if kinds[name] != "text"],
        )
        held = ", ".join(f"'{name}' ({kinds[name]})" for name in other)
        raise CommandError(f"{path}: no numbers in {held}. This works: {works.command()}", "data")
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
        text_format=text_format,
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
    missing, fill = MissingTargets(), options.missing == "median"
    return TrainingTable(
        wanted, target_names, text, first, None, reader, notes, missing, fill, held_out
    )


def choose_columns(
    frame: Any, path: Any, options: TrainingOptions
) -> tuple[list[str], list[str], list[str]]:
    """Names of targets and inputs, and notes; by default all other columns are inputs."""
    have, notes = [str(name) for name in frame.columns], list[str]()
    target_names = expand_names(options.targets, have, "--targets")
    if not target_names:
        raise CommandError("--targets must name at least one column")
    # The column of groups or of time is no input, unless it is named as one.
    apart = [name for name in (options.groups, options.time_column) if name is not None]
    if options.inputs is None:
        input_names = [name for name in have if name not in [*target_names, *apart]]
        if "" in input_names:
            input_names.remove("")
            notes.append("the column without a name is taken for row numbers and left out")
    else:
        input_names = expand_names(options.inputs, have, "--inputs")
    left_out = expand_names(options.exclude or [], have, "--exclude")
    input_names = [name for name in input_names if name not in left_out]
    try:
        require_columns(frame.loc[:, ~frame.columns.duplicated()], left_out, path)
        require_columns(frame, [*target_names, *input_names, *apart], path)
    except TableError as error:
        named = [*target_names, *input_names, *left_out]
        missing = [name for name in named if name not in have]
        raise CommandError(str(error) + comma_hint(missing, have)) from error
    if set(apart) & set(target_names):
        option = "--groups" if options.groups else "--time-column"
        raise CommandError(f"column '{apart[0]}' is named in both {option} and --targets")
    both = [name for name in input_names if name in target_names]
    if both:
        raise CommandError(f"column '{both[0]}' is named in both --inputs and --targets")
    if not input_names:
        raise CommandError(f"{path}: no columns are left for inputs; every column is a target")
    return target_names, input_names, notes


def expand_names(values: Sequence[str], have: Sequence[str], option: str) -> list[str]:
    """Names of columns from an option, in which patterns such as 'torque *' are replaced."""
    names = [
        name for value in values for name in ([value] if value in have else split_names([value]))
    ]
    chosen: list[str] = []
    for name in names:
        is_pattern = name not in have and any(sign in name for sign in "*?[")
        matches = [other for other in have if fnmatchcase(other, name)] if is_pattern else []
        chosen += matches or [name]
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise CommandError(f"column '{twice[0]}' is named twice in {option}")
    return chosen


def _names_rows(column: Any) -> bool:
    """Whether a column of text names the rows, as an id does: it has almost as many texts as rows."""
    return bool(column.nunique() > max(10, len(column) // 2))


def _many_texts(frame: Any) -> list[str]:
    """Notes about columns of text that name the rows."""
    rows = counted(len(frame), "row")
    return [
        f"column '{name}' has {frame[name].nunique()} different texts in {rows}; leave it out if "
        f"it names the rows (--exclude)"
        for name in frame
        if _names_rows(frame[name])
    ]


def _constant(frame: Any, role: str) -> list[str]:
    """Notes about columns that never change."""
    names = [name for name in frame if frame[name].nunique() == 1]
    if not names:
        return []
    says = (
        "says nothing about the targets"
        if role == "input"
        else "needs no model; its error is not counted"
    )
    return [f"{role} {quoted(names)} has the same value in every row and {says}"]


def batch_bytes(max_memory: float) -> float:
    """Bytes of one batch, if all the work may take this many MB."""
    return max_memory * 2**20 / 8


def watch_batches(
    reader: BatchReader, report: Callable[[int, int, str], None]
) -> Callable[[Batch], None]:
    """A function to call with every batch, which reports bytes and rows."""
    total, rows = reader.n_bytes, 0

    def watch(batch: Batch) -> None:
        nonlocal rows
        rows += len(batch.X)
        done = total if batch.source is None else reader.bytes_until(batch.source)
        report(done, total, f"{rows:,} rows, bytes")

    return watch


def read_scales(values: Sequence[str] | None, targets: Sequence[str]) -> dict[str, str]:
    """Scale of the targets that are learned on one: ``log`` for all targets, ``NAME=log`` for some.

    Examples
    --------
    >>> read_scales(["log"], ["zinc", "lead"])
    {'zinc': 'log', 'lead': 'log'}
    >>> read_scales(["z*=log1p"], ["zinc", "lead"])
    {'zinc': 'log1p'}
    """
    scales = dict[str, str]()
    for value in values or []:
        names, sign, scale = value.rpartition("=")
        if scale.strip() not in SCALES:
            need = " or ".join(SCALES)
            raise CommandError(
                f"--target-transform must be {need}, or TARGET={need}, got {value!r}"
            )
        chosen = expand_names([names], targets, "--target-transform") if sign else list(targets)
        unknown = [name for name in chosen if name not in targets]
        if unknown:
            raise CommandError(f"--target-transform: '{unknown[0]}' is not among the targets")
        scales |= dict.fromkeys(chosen, scale.strip())
    return scales


def check_scales(Y: Any, scales: dict[str, str], path: Path) -> None:
    """Raise, with row and column of the file, if a target in memory has no logarithm."""
    for name, scale in scales.items():
        wrong = Y[name] <= 0.0 if scale == "log" else Y[name] < 0.0
        if wrong.any():
            row = wrong.idxmax()
            value = Y[name][row]
            zero = "log1p takes zeros; " if scale == "log" and value == 0.0 else ""
            problem = (
                f"{value:g} has no logarithm, --target-transform {scale} needs numbers "
                f"{SCALES[scale]}; {zero}leave the cell empty if the value is missing, or name "
                f"only the targets that are positive, as in --target-transform NAME={scale}"
            )
            raise TableError(path, problem, row=row + 1, column=name)
