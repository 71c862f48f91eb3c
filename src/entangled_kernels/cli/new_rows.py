"""Rows that a saved model has not seen: their inputs checked, what is measured of their targets beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV, MultiViewKernelRidge
from ..storage import ModelFileError, SavedModel
from ..streams import read_batches, table_columns
from ..tables import (
    append_table,
    read_table,
    require_columns,
    require_numbers,
    require_text,
    write_table,
)
from .batches import batch_bytes, in_batches, watch_batches
from .errors import CommandError
from .features import known_texts, unknown_texts
from .files import check_input
from .saved_models import inputs_of, learner_of, require_rows, targets_of
from .screen import Screen, say_note

__all__ = ["NewRows", "Part", "require_calibrated", "write_parts"]


class Part(NamedTuple):
    """Rows of a table: as they were read, their inputs, and measured targets (NaN in blanks) or None."""

    frame: Any
    X: Any
    given: Any


class NewRows:
    """Reads tables of new rows for a saved model, at once or in batches.

    Parameters
    ----------
    saved : SavedModel
    path : path
        Of the model, for errors.
    kept : list of str
        Columns to be copied beside what is found.
    measured : bool
        Whether target columns that a table has are measurements to be used.
    """

    def __init__(self, saved: SavedModel, path: Path, kept: list[str], *, measured: bool) -> None:
        require_rows(saved, path)
        self.model, self.kept, self.measured = saved.model, kept, measured
        self.inputs, self.targets = inputs_of(saved, path), targets_of(saved)
        self.texts = known_texts(getattr(self.model, "feature_map_", None))
        # Of views that a row lacks all cells are blank.
        self.blank_inputs = isinstance(learner_of(saved.model), MultiViewKernelRidge)
        self.told: set[str] = set()

    def parts(self, screen: Screen, table: Path, max_memory: float) -> Iterator[Part]:
        """All rows of a table; several parts only where it is read in batches."""
        if not in_batches(table, max_memory):
            check_input(table)
            with screen.working("working"):
                yield self.check(read_table(table), table)
            return
        have = table_columns(table)
        wanted = [*self.inputs, *self.kept, *self.measured_targets(have)]
        reader = read_batches(table, inputs=list(dict.fromkeys(wanted)), max_memory=batch_bytes(max_memory))
        with screen.progress() as report:
            watch = watch_batches(reader, report)
            for batch in reader:
                source = batch.source
                place = (table, 0) if source is None else (Path(source.file), source.start)
                yield self.check(batch.X, *place)
                watch(batch)

    def measured_targets(self, columns: Iterable[str]) -> list[str]:
        """Targets among the columns of a table, where these count as measured."""
        have = set(columns)
        return [name for name in self.targets if name in have] if self.measured else []

    def check(self, frame: Any, path: Path, rows_before: int = 0) -> Part:
        """Columns that the model needs, in its order; every text that it does not know is told once."""
        require_columns(frame, [*self.inputs, *self.kept], path)
        numbers = [name for name in self.inputs if name not in self.texts]
        X = frame[self.inputs].copy()
        X[numbers] = require_numbers(frame, numbers, path, rows_before=rows_before, blanks=self.blank_inputs)
        X[list(self.texts)] = require_text(frame, list(self.texts), path, rows_before=rows_before)
        for sentence in unknown_texts(X, self.texts):
            if sentence not in self.told:
                say_note(sentence)
            self.told.add(sentence)
        known = self.measured_targets(frame.columns)
        given = require_numbers(frame, known, path, rows_before=rows_before, blanks=True) if known else None
        return Part(frame, X, given)

    def beside_kept(self, frame: Any, found: Any, suffix: str = "") -> Any:
        """The table to write: the columns that are kept, and what was found, renamed where both have it."""
        return frame[self.kept].join(found.rename(columns={name: f"{name}{suffix}" for name in self.kept}))


def require_calibrated(saved: SavedModel, path: Path, option: str) -> None:
    """Raise unless a model knows how its errors are spread, which ``option`` needs."""
    if not isinstance(saved.model, EntangledKernelRidge | EntangledKernelRidgeCV):
        raise CommandError(f"{option} needs an entangled kernel model, got {type(saved.model).__name__}")
    try:
        _ = saved.model.residual_covariance_
    except ValueError as error:
        raise ModelFileError(
            f"{path}: {option} needs errors of unseen rows, and {error}; fit it again"
        ) from error


def write_parts(parts: Iterable[Any], out: Path, *, several: bool) -> tuple[int, list[str]]:
    """Write data frames below each other to one file; number of rows, and names of columns."""
    rows, columns = 0, list[str]()
    if several:
        with append_table(out) as append:
            for frame in parts:
                append(frame)
                rows, columns = rows + len(frame), list(frame.columns)
    else:
        (frame,) = parts
        write_table(frame, out)
        rows, columns = len(frame), list(frame.columns)
    return rows, columns
