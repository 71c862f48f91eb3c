"""A pass over batches of rows with checkpoints: where it stands, and how it goes on after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from ..files import remove_abandoned
from ..model import InputRange
from .batch import Batch, BatchError, Source, batch_checksum
from .checkpoints import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from .row_stream import FitRowMap, RowStream, missing_value

__all__ = ["BatchRun", "Position", "named_errors"]


@dataclass(frozen=True)
class Position:
    """Where a pass over batches stands.

    Attributes
    ----------
    done : int
        Number of batches taken in.
    n_rows : int
        Number of rows in them.
    source : Source or None
        Where the last one came from, where that is known.
    checksum : int
        Of the values of all batches, or of those from the file of ``source``.
    digests : dict of str
        Digests of the files that were finished, by name.
    """

    done: int = 0
    n_rows: int = 0
    source: Source | None = None
    checksum: int = 0
    digests: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"batch {self.done + 1}, after {self.n_rows} rows"

    def after(self, batch: Batch, *, with_checksum: bool) -> Position:
        """The position after one more batch; the checksum takes time, and only checkpoints need it."""
        before, now = (
            None if source is None else source.file for source in (self.source, batch.source)
        )
        start = self.checksum if before == now else 0
        return replace(
            self,
            done=self.done + 1,
            n_rows=self.n_rows + _num_samples(batch.X),
            source=batch.source,
            checksum=batch_checksum(batch, start) if with_checksum else 0,
        )

    def with_digests(self, batches: Any) -> Position:
        """The position with digests of all files that are finished."""
        if self.source is None or not hasattr(batches, "files_before"):
            return self
        before = batches.files_before(self.source)
        self.digests.update({file: _digest(file) for file in before if file not in self.digests})
        return self

    @classmethod
    def read(cls, stored: Any, path: Any) -> Position:
        """A position from a checkpoint, whose every part is checked."""
        try:
            source = None if stored["source"] is None else Source(**stored["source"])
            position = cls(
                stored["done"], stored["n_rows"], source, stored["checksum"], stored["digests"]
            )
            numbers = [position.done, position.n_rows, position.checksum]
            texts = [*position.digests, *position.digests.values()]
            if source is not None:
                numbers += [source.start, source.stop]
                texts.append(source.file)
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise TypeError("counts must be whole numbers")
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("names of files and digests must be text")
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{path} is not a checkpoint of a fit ({type(error).__name__}: {error}); remove it"
            ) from error
        return position


@dataclass(eq=False)
class BatchRun:
    """A pass over batches that are taken into a stream, with checkpoints.

    Attributes
    ----------
    stream : RowStream
    take : callable
        Checks a batch and takes it into the stream, given the batch, its name for errors and the
        number of rows before it.
    fit_map : callable
        Fits feature map and target scale on the first rows, for the stream.
    signature : dict
        Plain facts that must not change between the parts of an interrupted pass.
    checkpoint : path or None
        File to save the moments to.
    every : int
        Number of batches between two checkpoints.
    progress : callable or None
        Called with every batch after it was taken in.
    """

    stream: RowStream
    take: Callable[[Batch, str, int], None]
    fit_map: FitRowMap
    signature: dict[str, Any]
    checkpoint: str | os.PathLike[str] | None = None
    every: int = 100
    progress: Callable[[Batch], None] | None = None

    def run(self, batches: Iterable[Any], as_batch: Callable[[Any], Batch]) -> Position:
        """Take all batches in; ``as_batch`` makes a `Batch` of an item."""
        self.signature["layout"] = batches.layout() if hasattr(batches, "layout") else None
        self.signature = dict(json.loads(json.dumps(self.signature)))
        position = Position()
        rest: Iterator[Batch] = map(as_batch, batches)
        if self.checkpoint is not None:
            remove_abandoned(self.checkpoint)
            if os.path.exists(self.checkpoint):
                position, rest = self._resume(batches, rest)
        saved = position.done
        try:
            for batch in rest:
                self._take(batch, position)
                position = position.after(batch, with_checksum=self.checkpoint is not None)
                if self.progress is not None:
                    self.progress(batch)
                if position.done - saved >= self.every and self._save(batches, position):
                    saved = position.done
            try:
                self.stream.finish_waiting(self.fit_map)
            except ValueError as error:
                raise BatchError(str(error)) from error
        finally:
            if position.done > saved:
                self._save(batches, position)
        return position

    def _take(self, batch: Batch, position: Position) -> None:
        where = str(batch.source or position)
        with named_errors(where, batch.X, batch.y):
            self.take(batch, where, position.n_rows)

    def _save(self, batches: Any, position: Position) -> bool:
        """Write a checkpoint where one is asked for and there is something to save; whether it was written.

        Rows that wait for a feature map are not saved: they are the first ones, and read again.
        """
        stream = self.stream
        if self.checkpoint is None or stream.n_outputs is None or stream.waiting:
            return False
        facts = {
            "fit": self.signature,
            "parts": sorted(stream.parts),
            "n_rows": stream.n_rows,
            "position": asdict(position.with_digests(batches)),
        }
        arrays = {} if stream.probe is None else {"probe": stream.probe}
        if stream.inputs is not None:
            arrays["inputs"] = stream.inputs.packed()
        write_checkpoint(
            self.checkpoint, Checkpoint(stream.summary()[0], facts, arrays, stream.sample)
        )
        return True

    def _resume(
        self, batches: Iterable[Any], items: Iterator[Batch]
    ) -> tuple[Position, Iterator[Batch]]:
        """Restore the stream from the checkpoint; where the pass stands, and the batches still to come.

        The first rows are taken in once more: they give the names of columns, the feature map is
        fitted on them, and their features show whether all is as it was.
        """
        path, stream = self.checkpoint, self.stream
        saved = read_checkpoint(path)  # type: ignore[arg-type]
        if saved.facts.get("fit") != self.signature:
            raise CheckpointError(
                f"{path} is the checkpoint of another fit (other columns, batch sizes, folds or precision); "
                f"name another file, or remove it"
            )
        position, seen = Position.read(saved.facts.get("position"), path), Position()
        while seen.done < position.done and stream.probe is None:
            if (batch := next(items, None)) is None:
                break
            self._take(batch, seen)
            seen = seen.after(batch, with_checksum=True)
        stream.finish_waiting(self.fit_map)
        now, before = stream.probe, saved.arrays.get("probe")
        if (
            now is None
            or before is None
            or now.shape != before.shape
            or not np.allclose(now, before, 1e-9)
        ):
            raise CheckpointError(
                f"the first rows, or the feature map fitted on them, are not those of {path}; read the same "
                f"rows, and give the map a fixed random_state or give it fitted"
            )
        rest = _remaining(batches, items, seen, position, path)
        self._restore(saved)
        return position, rest

    def _restore(self, saved: Checkpoint) -> None:
        """Replace the moments of the first rows by those of a checkpoint, whose numbers must fit."""
        stream, numbers, n_rows = self.stream, saved.facts.get("parts"), saved.facts.get("n_rows")
        wrong = CheckpointError(
            f"{self.checkpoint} is not a checkpoint of this fit: its parts do not fit; remove it"
        )
        if not isinstance(n_rows, int) or not isinstance(numbers, list):
            raise wrong
        distinct = {
            number for number in numbers if type(number) is int and 0 <= number < stream.n_parts
        }
        shapes = {
            (part.n_features, part.n_outputs) for part in (*stream.parts.values(), *saved.parts)
        }
        sample = saved.sample
        if sample is not None:
            shapes.add((sample.Phi.shape[1], sample.Y.shape[1]))
            distinct |= {-1} if sample.part.max(initial=0) >= stream.n_parts else set()
        if not len(distinct) == len(numbers) == len(saved.parts) or len(shapes) > 1:
            raise wrong
        try:
            packed = saved.arrays.get("inputs")
            inputs = stream.inputs if packed is None else InputRange.unpacked(packed)
        except ValueError as error:
            raise wrong from error
        stream.parts = dict(zip(numbers, saved.parts, strict=True))
        stream.n_rows, stream.sample, stream.inputs = n_rows, sample, inputs


@contextmanager
def named_errors(where: str, *tables: Any) -> Iterator[None]:
    """Turn errors about a batch into a `BatchError` that names the batch and its first missing value."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise BatchError(f"{where}: {error}{missing_value(*tables)}") from error


def _remaining(
    batches: Iterable[Any], items: Iterator[Batch], seen: Position, position: Position, path: Any
) -> Iterator[Batch]:
    """The batches after a position, once it is sure that those before it are what they were.

    Parameters
    ----------
    batches : iterable, or reader of files
        A reader starts where it is needed; of an iterable the batches that are done are passed
        over.
    items : iterator
        Over the batches, of which those up to ``seen`` have been taken.
    seen, position : Position
    path : path
        Of the checkpoint, for the error.
    """
    if position.source is not None and hasattr(batches, "after"):
        _check_files(batches, position, position.source, path)
        rest: Iterator[Batch] = iter(batches.after(position.source))
        return rest
    while seen.done < position.done and (item := next(items, None)) is not None:
        seen = seen.after(item, with_checksum=True)
    if seen.n_rows != position.n_rows:
        raise CheckpointError(
            f"the first {position.done} batches held {position.n_rows} rows when the checkpoint {path} was "
            f"written, and hold {seen.n_rows} now; cut the rows into the same batches, or remove the "
            f"checkpoint"
        )
    if seen.checksum != position.checksum:
        raise _changed(f"the first {position.done} batches", path)
    return items


def _check_files(reader: Any, position: Position, source: Source, path: Any) -> None:
    """Raise unless all that was read of the files, up to the source of the last batch, is what it was."""
    if source.file not in reader.files:
        raise CheckpointError(
            f"{source.file}, where reading was interrupted, is not among the files; name the files that "
            f"{path} was begun with, or remove it"
        )
    if list(reader.files_before(source)) != list(position.digests):
        raise CheckpointError(
            f"the files before {source.file} are not those that {path} was begun with; name these, or "
            f"remove it"
        )
    for file, digest in position.digests.items():
        if _digest(file) != digest:
            raise _changed(file, path)
    checksum, stop = 0, 0
    for batch in reader.until(source):
        checksum, stop = batch_checksum(batch, checksum), batch.source.stop
    if (checksum, stop) != (position.checksum, source.stop):
        raise _changed(f"{source.file}, rows 1 to {source.stop}", path)


def _changed(what: str, path: Any) -> CheckpointError:
    return CheckpointError(
        f"{what}: the values are not those that were read when the checkpoint {path} was written; restore "
        f"them, or remove the checkpoint to start anew"
    )


def _digest(file: str) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "blake2b").hexdigest()
