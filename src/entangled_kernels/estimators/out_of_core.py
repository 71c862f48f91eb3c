"""Fits from tables larger than memory: batch after batch, with checkpoints to go on from, or by Dask."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Self

import joblib
import numpy as np
from sklearn.utils.validation import _num_samples

from ..doc_links import DocLinkMixin
from ..files import remove_abandoned
from ..learning.input_range import InputRange
from ..linalg import Index
from ..parameters import check_integer
from ..streams import waiting
from ..streams.batch import Batch, BatchError, as_batch
from ..streams.checkpoints import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from ..streams.position import Position, remaining
from ..streams.stream import Stream
from .dask_tables import first_rows, split_partitions, sum_partitions
from .streaming import StreamingMixin

__all__ = ["OutOfCoreMixin"]


class OutOfCoreMixin(StreamingMixin, DocLinkMixin):
    """`fit_batches`, and `fit` on Dask tables, of an estimator that has `partial_fit`."""

    def fit_batches(
        self,
        batches: Iterable[Any],
        *,
        targets: Sequence[str] | None = None,
        groups: str | None = None,
        n_rows: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100,
        progress: Callable[[Batch], None] | None = None,
    ) -> Self:
        """Fit from an iterable of batches, for tables that do not fit in memory.

        Parameters
        ----------
        batches : iterable
            Of (X, y), (X, y, sample_weight), (X, y, sample_weight, groups), Bunches with data and target,
            data frames (with ``targets``), or what `entangled_kernels.streams.read_batches` gives.
        targets : list of str, optional
            Names of the target columns, where batches are data frames.
        groups : str, optional
            Name of the column of groups, where batches are data frames; it is no input. Rows of a group are
            held out together.
        n_rows : int, optional
            Number of rows in all batches, which folds in the order of time need. Without it ``batches`` may
            know it, as those of `read_batches` do of most files, or are run through once to count it.
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
            Solved. When a batch is refused the error names it, and the estimator holds all batches before it.

        Notes
        -----
        A checkpoint goes on only where the rows that it has seen are what they were: their values are
        checked. To that end an iterable is run through; of files read by `read_batches` those that were
        finished are compared by a digest, the rows of the one in progress are read again, and then reading
        starts where it is needed. What comes later may have changed, such as a batch that was refused.

        A feature map that comes unfitted is fitted again on the same first rows, so it needs a fixed
        ``random_state``; that it is the same map is checked.
        """
        check_integer("checkpoint_every", checkpoint_every, low=1)
        self._check_parameters()
        self._reset()
        ends = self._block_ends(batches, targets, n_rows)
        position = Position()
        rest: Iterator[Batch] = (as_batch(item, targets, groups) for item in batches)
        if checkpoint is not None:
            remove_abandoned(checkpoint)
            if os.path.exists(checkpoint):
                position, rest = self._resume(checkpoint, batches, targets, groups, ends)
        saved = position.done
        try:
            for batch in rest:
                self._take_named(batch, position, ends)
                position = position.after(batch, with_checksum=checkpoint is not None)
                if progress is not None:
                    progress(batch)
                if position.done - saved >= checkpoint_every and self._save(
                    checkpoint, batches, position, ends
                ):
                    saved = position.done
            if self._stream is None:
                raise ValueError("batches must hold at least one row, got none")
            if ends is not None and position.n_rows != ends[-1]:
                raise ValueError(f"n_rows must be that of all batches, {position.n_rows}, got {ends[-1]}")
            self._settle_named()
        finally:
            if position.done > saved:
                self._save(checkpoint, batches, position, ends)
        return self.solve()

    def _block_ends(self, batches: Any, targets: Any, n_rows: int | None) -> Index | None:
        """Ends of the blocks of rows that are the parts, where these are in the order of time."""
        return None

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Fit on the partitions of Dask tables, wherever they are.

        Before that the first rows, up to 10,000, are brought here to know names and to fit a feature map
        that is not fitted yet.
        """
        partitions = split_partitions(X, y, sample_weight, groups)
        self._reset()
        try:
            for where, rows in first_rows(partitions, waiting.FEATURE_SAMPLE):
                self._take_named(Batch(rows[0], rows[1], rows[2], groups=rows[3]), where)
                if hasattr(self, "feature_map_"):
                    break
            if self._stream is None:
                raise ValueError("X must hold at least one row, got none")
            self._settle()
            self._stream = sum_partitions(type(self)._stream_of, Stream.merged, self, partitions)
            return self.solve()
        except BaseException:
            # Of the first rows alone there is to be no model.
            self._reset()
            raise

    def _take_named(self, batch: Batch, name: object, ends: Index | None = None) -> None:
        """Take in a batch; an error says where it came from, or else its name, such as its position.

        With ``ends`` of blocks the part of a row is its block, by its position.
        """
        where, part = str(batch.source or name), None
        if ends is not None and isinstance(name, Position):
            places = name.n_rows + np.arange(_num_samples(batch.X))
            # Rows beyond the end are counted, and refused, when all are there.
            part = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
        try:
            self._take_batch(batch.X, batch.y, batch.sample_weight, batch.groups, part=part, where=where)
        except (TypeError, ValueError) as error:
            raise BatchError(f"{where}: {error}{waiting.missing_cell(batch.X, batch.y)}") from error

    def _settle_named(self) -> None:
        """Fit the feature map on fewer rows than it may have, when there are no more."""
        try:
            self._settle()
        except ValueError as error:
            raise BatchError(str(error)) from error

    def _save(self, checkpoint: Any, batches: Any, position: Position, ends: Index | None) -> bool:
        """Write a checkpoint where one is asked for and there is something to save; tell whether it was.

        Rows that wait for a feature map are not saved: they are the first ones, and read again.
        """
        stream = self._stream
        if checkpoint is None or stream is None or stream.waiting:
            return False
        facts = {
            "fit": self._signature(batches, ends),
            "parts": [number for number, part in enumerate(stream.parts) if part is not None],
            "n_rows": stream.n_rows,
            "position": asdict(position.with_digests(batches)),
        }
        arrays = {} if stream.probe is None else {"probe": stream.probe}
        if stream.inputs is not None:
            arrays["inputs"] = stream.inputs.packed()
        write_checkpoint(checkpoint, Checkpoint(stream.moments(), facts, arrays, stream.sample))
        return True

    def _resume(
        self, path: Any, batches: Iterable[Any], targets: Any, groups: str | None, ends: Index | None
    ) -> tuple[Position, Iterator[Any]]:
        """Set the state that was saved; where the pass stands, and the batches that are still to be done.

        The first rows are taken in once more: they tell the names of columns, the feature map is fitted on
        them, and their features show whether all is as it was.
        """
        saved = read_checkpoint(path)
        if saved.facts.get("fit") != self._signature(batches, ends):
            raise CheckpointError(
                f"{path} is the checkpoint of another fit (other columns, batch sizes, folds or precision); "
                f"name another file, or remove it"
            )
        position = Position.read(saved.facts.get("position"), path)
        seen, items = Position(), (as_batch(item, targets, groups) for item in batches)
        while seen.done < position.done and (self._stream is None or self._stream.probe is None):
            if (batch := next(items, None)) is None:
                break
            self._take_named(batch, seen, ends)
            seen = seen.after(batch, with_checksum=True)
        self._check_same_start(saved.arrays.get("probe"), path)
        rest = remaining(batches, items, seen, position, path)
        self._restore(saved, path)
        return position, rest

    def _restore(self, saved: Checkpoint, path: Any) -> None:
        """Put the moments of a checkpoint in the place of those of the first rows."""
        stream, numbers, n_rows = self._stream, saved.facts.get("parts"), saved.facts.get("n_rows")
        wrong = CheckpointError(f"{path} is not a checkpoint of this fit: its parts do not fit; remove it")
        if stream is None or not isinstance(n_rows, int) or not isinstance(numbers, list):
            raise wrong
        distinct = {number for number in numbers if type(number) is int and 0 <= number < self._n_parts()}
        shapes = {(part.n_features, part.n_outputs) for part in (*stream.moments(), *saved.parts)}
        sample = saved.sample
        if sample is not None:
            shapes.add((sample.Phi.shape[1], sample.Y.shape[1]))
            distinct |= {-1} if sample.part.max(initial=0) >= self._n_parts() else set()
        if not len(distinct) == len(numbers) == len(saved.parts) or len(shapes) > 1:
            raise wrong
        restored = stream.blank()
        for number, part in zip(numbers, saved.parts, strict=True):
            restored.parts[number] = part
        restored.probe, restored.n_rows, restored.sample = stream.probe, n_rows, sample
        try:
            packed = saved.arrays.get("inputs")
            restored.inputs = stream.inputs if packed is None else InputRange.unpacked(packed)
        except ValueError as error:
            raise wrong from error
        self._stream = restored

    def _check_same_start(self, before: Any, path: Any) -> None:
        self._settle()
        now = None if self._stream is None else self._stream.probe
        if now is None or before is None or now.shape != before.shape or not np.allclose(now, before, 1e-9):
            raise CheckpointError(
                f"the first rows, or the feature map fitted on them, are not those of {path}; read the same "
                f"rows, and give the map a fixed random_state or give it fitted"
            )

    def _signature(self, batches: Any, ends: Index | None) -> dict[str, Any]:
        """What must not change between the parts of an interrupted fit, as JSON gives it back."""
        whole = {
            "estimator": type(self).__name__,
            "n_parts": self._n_parts(),
            "blocks": None if ends is None else ends.tolist(),
            "layout": batches.layout() if hasattr(batches, "layout") else None,
        }
        if self.target_transform is not None:
            whole["target_transform"] = joblib.hash(self.target_transform)
        return dict(json.loads(json.dumps(whole)))
