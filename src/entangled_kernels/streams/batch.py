"""Batches of rows that know where they come from, and passes over them with checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import _num_samples

from ..files import remove_abandoned
from ..model import InputRange
from .checkpoints import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from .row_stream import FitMap, RowStream, first_missing_value

__all__ = [
    "Batch",
    "BatchError",
    "Position",
    "Source",
    "add_batches",
    "as_batch",
    "batch_checksum",
    "naming_batch",
]


class BatchError(ValueError):
    """An error about a part of a stream; the message names the part."""


@dataclass(frozen=True)
class Source:
    """The source of a batch: rows ``start`` to ``stop``, without the last, of a file.

    As text, rows are counted from 1, without the header.
    """

    file: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.file}, rows {self.start + 1} to {self.stop}"


class Batch(NamedTuple):
    """Some rows: inputs, targets, weights or None, their source if that is known, and groups or None."""

    X: Any
    y: Any
    sample_weight: Any = None
    source: Source | None = None
    groups: Any = None


def as_batch(item: Any, targets: Sequence[str] | None = None, groups: str | None = None) -> Batch:
    """One item of a stream as a batch.

    Parameters
    ----------
    item : Batch, tuple, Bunch with data and target, or data frame
        A tuple is (X, y), (X, y, sample_weight) or (X, y, sample_weight, groups).
    targets : list of str, optional
        Names of the target columns, where items are data frames.
    groups : str, optional
        Name of the column of groups, where items are data frames; it is no input.
    """
    if isinstance(item, Batch):
        return item
    if hasattr(item, "columns"):
        if targets is None:
            raise TypeError(
                "targets must name the columns to predict, where batches are data frames"
            )
        if groups is not None and groups not in item.columns:
            raise ValueError(f"groups must name a column of every batch, got {groups!r}")
        inputs = [name for name in item.columns if name not in targets and name != groups]
        return Batch(
            item[inputs], item[list(targets)], groups=None if groups is None else item[groups]
        )
    if hasattr(item, "data") and hasattr(item, "target"):
        return Batch(
            item.data,
            item.target,
            getattr(item, "sample_weight", None),
            groups=getattr(item, "groups", None),
        )
    if isinstance(item, tuple | list) and len(item) in (2, 3, 4):
        return Batch(*item) if len(item) < 4 else Batch(item[0], item[1], item[2], groups=item[3])
    raise TypeError(
        f"a batch must be a pair (X, y), a triple (X, y, sample_weight) or these with groups, got "
        f"{type(item).__name__}"
        + (f" of {len(item)} items" if isinstance(item, tuple | list) else "")
    )


def batch_checksum(batch: Batch, before: int = 0) -> int:
    """CRC-32 of the values of a batch; ``before`` is that of the batches before it."""
    for table in (batch.X, batch.y, batch.sample_weight, batch.groups):
        for column in _columns(table):
            before = zlib.crc32(column, before)
    return before


def _columns(table: Any) -> Iterator[bytes | memoryview]:
    """The values of a table in a fixed order, as bytes."""
    if table is None:
        return
    if issparse(table):
        rows = csr_array(table)
        yield from (
            np.ascontiguousarray(part).data for part in (rows.data, rows.indices, rows.indptr)
        )
        return
    named = hasattr(table, "columns")
    for values in (
        [np.asarray(table[name]) for name in table.columns] if named else [np.asarray(table)]
    ):
        if values.dtype.kind in "biufc":
            yield np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        else:
            yield "\0".join(map(str, values.ravel())).encode()


class Position(NamedTuple):
    """The position of a pass over batches.

    Attributes
    ----------
    done : int
        Number of batches added.
    n_rows : int
        Number of rows in them.
    source : Source or None
        Where the last batch came from, if that is known.
    checksum : int
        Of the values of all batches, or of those from the file of ``source``.
    """

    done: int = 0
    n_rows: int = 0
    source: Source | None = None
    checksum: int = 0

    def after(self, batch: Batch, *, with_checksum: bool) -> Position:
        """The position after one more batch; the checksum takes time, and only checkpoints need it."""
        checksum = 0
        if with_checksum:
            file = None if self.source is None else self.source.file
            same_file = file == (None if batch.source is None else batch.source.file)
            checksum = batch_checksum(batch, self.checksum if same_file else 0)
        n_rows = self.n_rows + _num_samples(batch.X)
        return Position(self.done + 1, n_rows, batch.source, checksum)


def add_batches(
    batches: Iterable[Any],
    stream: RowStream,
    add: Callable[[Batch, str], None],
    fit_map: FitMap,
    *,
    targets: Sequence[str] | None = None,
    groups: str | None = None,
    facts: dict[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 100,
    progress: Callable[[Batch], None] | None = None,
) -> None:
    """Add all batches to a stream, and save checkpoints.

    Parameters
    ----------
    batches : iterable, or reader of files
    stream : RowStream
    add : callable
        Checks a batch and adds it to the stream, given the batch and its name for error messages.
    fit_map : callable
        Fits the feature map and the scale of the targets on the first rows.
    targets, groups : as in `as_batch`
    facts : dict, optional
        Settings, as JSON values, that must be the same when an interrupted pass continues.
    checkpoint : path, optional
        File to which the moments are saved. If it exists, the pass continues from there.
    every : int, default=100
        Number of batches between two checkpoints.
    progress : callable, optional
        Called with every batch after it was added.
    """
    layout = batches.layout() if hasattr(batches, "layout") else None
    facts = json.loads(json.dumps({**(facts or {}), "layout": layout}))
    position, digests = Position(), dict[str, str]()

    def add_named(batch: Batch, position: Position) -> Position:
        name = str(batch.source or f"batch {position.done + 1}, after {position.n_rows} rows")
        with naming_batch(name, batch.X, batch.y):
            add(batch, name)
        return position.after(batch, with_checksum=checkpoint is not None)

    def save() -> bool:
        """Save the moments; rows that wait for a feature map are the first ones, and read again."""
        if stream.n_outputs is None or stream.waiting:
            return False
        if position.source is not None and hasattr(batches, "files_before"):
            for file in batches.files_before(position.source):
                digests.setdefault(file, _digest(file))
        _write_run(checkpoint, stream, facts, position, digests)
        return True

    items: Iterator[Batch] = (as_batch(item, targets, groups) for item in batches)
    if checkpoint is not None:
        remove_abandoned(checkpoint)
        if os.path.exists(checkpoint):
            saved = read_checkpoint(checkpoint)
            last, digests = _read_position(saved, facts, checkpoint)
            # The first rows are added once more: they give the names of the columns, and the
            # feature map is fitted on them.
            while position.done < last.done and stream.probe is None:
                if (first := next(items, None)) is None:
                    break
                position = add_named(first, position)
            stream.finish_waiting(fit_map)
            _check_probe(stream, saved, checkpoint)
            items = _remaining(batches, items, position, last, digests, checkpoint)
            _restore(stream, saved, checkpoint)
            position = last
    saved_at = position.done
    try:
        for batch in items:
            position = add_named(batch, position)
            if progress is not None:
                progress(batch)
            if checkpoint is not None and position.done - saved_at >= every and save():
                saved_at = position.done
        try:
            stream.finish_waiting(fit_map)
        except ValueError as error:
            raise BatchError(str(error)) from error
    finally:
        if checkpoint is not None and position.done > saved_at:
            save()


@contextmanager
def naming_batch(name: str, *tables: Any) -> Iterator[None]:
    """Turn errors about a batch into a `BatchError` that names the batch and its first missing value."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise BatchError(f"{name}: {error}{first_missing_value(*tables)}") from error


def _write_run(
    path: Any,
    stream: RowStream,
    facts: dict[str, Any],
    position: Position,
    digests: dict[str, str],
) -> None:
    arrays = {} if stream.probe is None else {"probe": stream.probe}
    if stream.inputs is not None:
        arrays["inputs"] = stream.inputs.packed()
    source = None if position.source is None else asdict(position.source)
    stored = {
        "fit": facts,
        "parts": sorted(stream.parts),
        "n_rows": stream.n_rows,
        "position": {**position._asdict(), "source": source, "digests": digests},
    }
    write_checkpoint(path, Checkpoint(stream.summary()[0], stored, arrays, stream.sample))


def _read_position(
    saved: Checkpoint, facts: dict[str, Any], path: Any
) -> tuple[Position, dict[str, str]]:
    """The position of a checkpoint, with every number checked, and digests of the finished files."""
    if saved.facts.get("fit") != facts:
        raise CheckpointError(
            f"{path} is the checkpoint of another fit (other columns, batch sizes, folds or precision); "
            f"name another file, or remove it"
        )
    try:
        stored = saved.facts["position"]
        digests, source = stored["digests"], stored["source"]
        position = Position(stored["done"], stored["n_rows"], None, stored["checksum"])
        numbers = [position.done, position.n_rows, position.checksum]
        texts = [*digests, *digests.values()]
        if source is not None:
            position = position._replace(source=Source(**source))
            numbers += [source["start"], source["stop"]]
            texts.append(source["file"])
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise TypeError("counts must be whole numbers")
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("names of files and digests must be text")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of a fit ({type(error).__name__}: {error}); remove it"
        ) from error
    return position, digests


def _check_probe(stream: RowStream, saved: Checkpoint, path: Any) -> None:
    """Raise unless the features of the first rows are those of the checkpoint."""
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


def _restore(stream: RowStream, saved: Checkpoint, path: Any) -> None:
    """Replace the moments of the first rows by those of a checkpoint, whose numbers must fit."""
    numbers, n_rows, sample = saved.facts.get("parts"), saved.facts.get("n_rows"), saved.sample
    wrong = CheckpointError(
        f"{path} is not a checkpoint of this fit: its parts do not fit; remove it"
    )
    if not isinstance(n_rows, int) or not isinstance(numbers, list):
        raise wrong
    distinct = {
        number for number in numbers if type(number) is int and 0 <= number < stream.n_parts
    }
    shapes = {(part.n_features, part.n_outputs) for part in (*stream.parts.values(), *saved.parts)}
    if sample is not None:
        shapes.add((sample.Phi.shape[1], sample.Y.shape[1]))
        distinct |= {-1} if sample.part.max(initial=0) >= stream.n_parts else set()
    if not len(distinct) == len(numbers) == len(saved.parts) or len(shapes) > 1:
        raise wrong
    try:
        packed = saved.arrays.get("inputs")
        stream.inputs = stream.inputs if packed is None else InputRange.unpacked(packed)
    except ValueError as error:
        raise wrong from error
    stream.parts = dict(zip(numbers, saved.parts, strict=True))
    stream.n_rows, stream.sample = n_rows, sample


def _remaining(
    batches: Iterable[Any],
    items: Iterator[Batch],
    seen: Position,
    last: Position,
    digests: dict[str, str],
    path: Any,
) -> Iterator[Batch]:
    """The batches after the position ``last``, if those before it are unchanged.

    ``items`` runs over the batches after the position ``seen``. A reader of files starts where it
    is needed.
    """
    if last.source is not None and hasattr(batches, "after"):
        _check_files(batches, last, last.source, digests, path)
        rest: Iterator[Batch] = iter(batches.after(last.source))
        return rest
    while seen.done < last.done and (item := next(items, None)) is not None:
        seen = seen.after(item, with_checksum=True)
    if seen.n_rows != last.n_rows:
        raise CheckpointError(
            f"the first {last.done} batches held {last.n_rows} rows when the checkpoint {path} was "
            f"written, and hold {seen.n_rows} now; cut the rows into the same batches, or remove the "
            f"checkpoint"
        )
    if seen.checksum != last.checksum:
        raise _changed(f"the first {last.done} batches", path)
    return items


def _check_files(
    reader: Any, last: Position, source: Source, digests: dict[str, str], path: Any
) -> None:
    """Raise unless the files are unchanged up to the end of the last batch."""
    if source.file not in reader.files:
        raise CheckpointError(
            f"{source.file}, where reading was interrupted, is not among the files; name the files that "
            f"{path} was begun with, or remove it"
        )
    if list(reader.files_before(source)) != list(digests):
        raise CheckpointError(
            f"the files before {source.file} are not those that {path} was begun with; name these, or "
            f"remove it"
        )
    for file, digest in digests.items():
        if _digest(file) != digest:
            raise _changed(file, path)
    checksum, stop = 0, 0
    for batch in reader.until(source):
        checksum, stop = batch_checksum(batch, checksum), batch.source.stop
    if (checksum, stop) != (last.checksum, source.stop):
        raise _changed(f"{source.file}, rows 1 to {source.stop}", path)


def _changed(what: str, path: Any) -> CheckpointError:
    return CheckpointError(
        f"{what}: the values are not those that were read when the checkpoint {path} was written; restore "
        f"them, or remove the checkpoint to start anew"
    )


def _digest(file: str) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "blake2b").hexdigest()
