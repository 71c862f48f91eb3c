"""Fits from tables larger than memory: batch after batch, with checkpoints to go on from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from ..batches import Batch, BatchError, Source, as_batch
from ..checkpoints import Checkpoint, CheckpointError, read_checkpoint, remove_unfinished, write_checkpoint
from .parameters import check_integer
from .streaming import StreamingMixin, missing_cell

__all__ = ["OutOfCoreMixin"]


class OutOfCoreMixin(StreamingMixin):
    """`fit_batches` of an estimator that has `partial_fit`."""

    def fit_batches(
        self,
        batches: Iterable[Any],
        *,
        targets: Sequence[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100,
        progress: Callable[[Batch], None] | None = None,
    ) -> Self:
        """Fit from an iterable of batches, for tables that do not fit in memory.

        Parameters
        ----------
        batches : iterable
            Of (X, y), (X, y, sample_weight), Bunches with data and target, data frames (with ``targets``), or
            what `entangled_kernels.batches.read_batches` gives.
        targets : list of str, optional
            Names of the target columns, where batches are data frames.
        checkpoint : path, optional
            File to which the moments are saved now and then. When it exists, the fit goes on from there: the
            batches that it has seen are passed over, and the model is the same, to the last bit, as that
            of a fit that was never interrupted. It stays when the fit is done.
        checkpoint_every : int, default=100
            Number of batches between two checkpoints. There is one more at the end, and one when a batch is
            refused, from which the fit goes on once the batch is mended.
        progress : callable, optional
            Called with every batch after it was taken in.

        Returns
        -------
        self
            When a batch is refused the error names it, and the estimator holds all batches before it.

        Notes
        -----
        To pass over batches an iterable is run through, but for files read by `read_batches`, which start
        where they are needed. A feature map that comes unfitted is fitted again on the same first rows, so
        it needs a fixed ``random_state``; that it is the same map is checked.
        """
        check_integer("checkpoint_every", checkpoint_every, low=1)
        self._check_parameters()
        self._forget()
        place, done, used = None, 0, (0, 0)
        if checkpoint is not None:
            remove_unfinished(checkpoint)
            if os.path.exists(checkpoint):
                place, done, used = self._resume(read_checkpoint(checkpoint), checkpoint, batches, targets)
        saved = done
        try:
            n_rows = self._stream.n_rows if done else 0
            rest = _remaining(batches, done, place) or _passed_over(batches, targets, done, used, n_rows)
            for item in rest:
                batch = as_batch(item, targets)
                self._take_named(batch, done)
                done, place = done + 1, batch.source
                if progress is not None:
                    progress(batch)
                if done - saved >= checkpoint_every and self._may_save(checkpoint):
                    self._save(checkpoint, batches, place, done)
                    saved = done
            if "_stream" not in self.__dict__:
                raise ValueError("batches must hold at least one row, got none")
            self._settle_last()
        finally:
            if done > saved and self._may_save(checkpoint):
                self._save(checkpoint, batches, place, done)
        return self

    def _take_named(self, batch: Batch, number: int) -> None:
        """Take in a batch; an error says which one it was."""
        n_rows = self._stream.n_rows if "_stream" in self.__dict__ else 0
        where = str(batch.source) if batch.source else f"batch {number}, after {n_rows} rows"
        try:
            self.partial_fit(batch.X, batch.y, batch.sample_weight)
        except (TypeError, ValueError) as error:
            raise BatchError(f"{where}: {error}{missing_cell(batch.X, batch.y)}") from error
        held = self._stream.held if "_stream" in self.__dict__ else []
        if held and held[-1].where is None:
            held[-1] = held[-1]._replace(where=where)

    def _settle_last(self) -> None:
        """Fit the feature map on fewer rows than it may have, when there are no more."""
        try:
            self._settle_features()
        except ValueError as error:
            raise BatchError(str(error)) from error

    def _may_save(self, checkpoint: Any) -> bool:
        """Rows that wait for a feature map are not saved: they are the first ones, and read again."""
        return checkpoint is not None and "_stream" in self.__dict__ and not self._stream.held

    def _save(self, checkpoint: Any, batches: Any, place: Source | None, done: int) -> None:
        stream = self._stream
        present = [number for number, part in enumerate(stream.parts) if part is not None]
        facts = {
            "fit": self._signature(batches),
            "present": present,
            "done": done,
            "n_rows": stream.n_rows,
            "place": None if place is None else asdict(place),
        }
        parts = [part for part in stream.parts if part is not None]
        arrays = {} if stream.probe is None else {"probe": stream.probe}
        write_checkpoint(checkpoint, Checkpoint(parts, facts, arrays))

    def _resume(
        self, saved: Checkpoint, path: Any, batches: Any, targets: Any
    ) -> tuple[Source | None, int, tuple[int, int]]:
        """Set the state that was saved; the last batch's place, its number, and batches and rows used up.

        The first rows are taken in once more: they tell the names of columns, the feature map is fitted on
        them, and their features show whether all is as it was.
        """
        facts, passed, rows = saved.facts, 0, 0
        if facts["fit"] != self._signature(batches):
            raise CheckpointError(
                f"{path} is the checkpoint of another fit (other files, columns, batch sizes or folds); name "
                f"another file, or remove it"
            )
        for item in batches:
            batch = as_batch(item, targets)
            self._take_named(batch, passed)
            passed, rows = passed + 1, rows + _num_samples(batch.X)
            if passed == facts["done"] or ("_stream" in self.__dict__ and self._stream.probe is not None):
                break
        self._check_same_start(saved.arrays.get("probe"), path)
        stream = self._stream
        stream.parts, stream.n_rows = [None] * self._n_parts(), facts["n_rows"]
        for number, part in zip(facts["present"], saved.parts, strict=True):
            stream.parts[number] = part
        return None if facts["place"] is None else Source(**facts["place"]), facts["done"], (passed, rows)

    def _check_same_start(self, before: Any, path: Any) -> None:
        now = None
        if "_stream" in self.__dict__:
            self._settle_features()
            now = self._stream.probe
        if now is None or before is None or now.shape != before.shape or not np.allclose(now, before, 1e-9):
            raise CheckpointError(
                f"the first rows, or the feature map fitted on them, are not those of {path}; read the same "
                f"rows, and give the map a fixed random_state or give it fitted"
            )

    def _signature(self, batches: Any) -> dict[str, Any]:
        """What must not change between the parts of an interrupted fit, as JSON gives it back."""
        source = batches.signature() if hasattr(batches, "signature") else None
        whole = {"estimator": type(self).__name__, "n_parts": self._n_parts(), "source": source}
        return dict(json.loads(json.dumps(whole)))


def _remaining(batches: Iterable[Any], done: int, place: Source | None) -> Iterator[Any] | None:
    """Batches that are still to be done, where they can be found without running through the others."""
    if place is not None and hasattr(batches, "after"):
        rest: Iterator[Any] = iter(batches.after(place))
        return rest
    return iter(batches) if done == 0 else None


def _passed_over(
    batches: Iterable[Any], targets: Any, done: int, used: tuple[int, int], n_rows: int
) -> Iterator[Any]:
    """Batches after those that are done; an iterator has used up some batches, and their rows, already."""
    rest = iter(batches)
    passed, rows = used if rest is batches else (0, 0)
    rows += sum(_num_samples(as_batch(item, targets).X) for item in islice(rest, done - passed))
    if rows != n_rows:
        raise CheckpointError(
            f"the first {done} batches held {n_rows} rows when the checkpoint was written, and hold {rows} "
            f"now; cut the rows into the same batches, or remove the checkpoint"
        )
    yield from rest
