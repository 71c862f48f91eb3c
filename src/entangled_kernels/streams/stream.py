"""What is kept of the rows of a stream: moments of its parts, and rows that wait for a feature map."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import _safe_indexing

from ..learning.input_range import InputRange, merge_ranges
from ..learning.moments import Moments, RowSample
from ..linalg import Array, Index
from ..parameters import check_range

__all__ = ["FIRST_BLOCK", "FeatureBlocks", "Rows", "Stream"]

# Rows that tell how many features there are.
FIRST_BLOCK = 4096
# What a feature takes: one float64, and one while it is made.
_BYTES_PER_FEATURE = 16
# So many of the first rows are kept as features, to know the feature map again.
_PROBE_ROWS = 8


class Rows(NamedTuple):
    """Rows of a batch, checked.

    Inputs; targets (n, p); weights of rows (n,) or of cells (n, p); the part of each row; a name for all;
    and a key of each row, by which it is drawn into a sample.
    """

    X: Any
    Y: Array
    weight: Array | None = None
    part: Index | None = None
    where: str | None = None
    key: NDArray[np.uint64] | None = None

    def some(self, index: Any) -> Rows:
        """Rows at some places, or of a slice."""
        if isinstance(index, slice) and index.indices(len(self.Y)) == (0, len(self.Y), 1):
            return self
        weight, part, key = (
            None if own is None else own[index] for own in (self.weight, self.part, self.key)
        )
        return Rows(_safe_indexing(self.X, index), self.Y[index], weight, part, self.where, key)

    def copied(self) -> Rows:
        """The same rows in memory of their own."""
        return self._replace(X=deepcopy(self.X), Y=self.Y.copy(), weight=deepcopy(self.weight))


def working_bytes() -> float:
    """Bytes that scikit-learn's setting ``working_memory`` allows for temporary arrays."""
    return float(get_config()["working_memory"]) * 2**20


@dataclass(frozen=True, eq=False)
class FeatureBlocks:
    """How rows become features, in blocks of rows that fit scikit-learn's ``working_memory``.

    Attributes
    ----------
    transform : callable or None
        From rows to features (n, m), finite; None where the columns are the features.
    targets : callable or None
        From targets (n, p) and weights to those that are learned; None where they are the same.
    """

    transform: Callable[[Any], Any] | None
    targets: Callable[[Array, Array | None], Array] | None = None

    def height(self, n_features: int) -> int:
        """Number of rows whose features take ``working_memory``."""
        return max(1, int(working_bytes() / (_BYTES_PER_FEATURE * n_features)))

    def blocks(self, rows: Rows) -> Iterator[tuple[Any, Rows]]:
        """Features and rows, block after block."""
        n = len(rows.Y)
        start, height = 0, n if self.transform is None else min(n, FIRST_BLOCK)
        while start < n:
            block = rows.some(slice(start, min(start + height, n)))
            Phi = block.X if self.transform is None else self.transform(block.X)
            check_range("X" if self.transform is None else "the output of feature_map", Phi, smallest=0.0)
            if self.targets is not None:
                block = block._replace(Y=self.targets(block.Y, block.weight))
            yield Phi, block
            start, height = start + len(block.Y), self.height(Phi.shape[1])

    def moments(self, Phi: Any, rows: Rows) -> Moments:
        """Moments of rows and their features."""
        return Moments.from_arrays(Phi, rows.Y, rows.weight)


@dataclass(eq=False)
class Stream:
    """Moments of all rows seen, in parts such as folds, and rows that wait for a feature map to be fitted.

    Attributes
    ----------
    n_outputs : int
    parts : list of Moments or None
        One for each part; None where a part has no row yet.
    waiting : list of Rows
    probe : ndarray or None
        Features of the first rows.
    sample : RowSample or None
        Some of the rows, drawn by their keys.
    inputs : InputRange or None
        Of the rows taken in, before the feature map; it does not fade.
    n_rows : int
        Number of rows seen, those that wait and those of no weight too.
    grouped : bool
        Whether parts are of groups of rows.
    lock : threading.RLock
        To be held while the stream is changed or solved for.
    """

    n_outputs: int
    parts: list[Moments | None]
    waiting: list[Rows] = field(default_factory=list)
    probe: Array | None = None
    sample: RowSample | None = None
    inputs: InputRange | None = None
    n_rows: int = 0
    grouped: bool = False
    lock: Any = field(default_factory=threading.RLock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())

    @classmethod
    def of_moments(cls, moments: Moments, sample: RowSample | None = None) -> Stream:
        """A stream of one part whose moments are known."""
        return cls(moments.n_outputs, [moments], sample=sample, n_rows=moments.n_samples)

    @staticmethod
    def merged(streams: list[Stream]) -> Stream:
        """One stream of the rows of several, of which the first tells targets and parts."""
        total = streams[0].blank()
        for stream in streams:
            total.merge(stream)
        return total

    def blank(self) -> Stream:
        """A stream of the same parts without any rows."""
        return Stream(self.n_outputs, [None] * len(self.parts), grouped=self.grouped)

    @property
    def n_waiting(self) -> int:
        """Number of rows that wait for a feature map."""
        return sum(len(rows.Y) for rows in self.waiting)

    def moments(self) -> list[Moments]:
        """Moments of the parts that have rows."""
        return [part for part in self.parts if part is not None]

    def numbered_sample(self) -> RowSample | None:
        """The sample, with parts numbered as in `moments`."""
        if self.sample is None:
            return None
        filled = np.array([part is not None for part in self.parts])
        return replace(self.sample, part=(np.cumsum(filled) - 1)[self.sample.part])

    def wait(self, rows: Rows) -> None:
        """Keep a copy of rows until there is a feature map; the caller may use their memory again."""
        self.waiting.append(rows.copied())
        self.n_rows += len(rows.Y)

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows seen by ``factor``."""
        self.parts = [None if part is None else part.scaled(factor) for part in self.parts]
        self.waiting = [
            rows._replace(weight=factor * (np.ones(len(rows.Y)) if rows.weight is None else rows.weight))
            for rows in self.waiting
        ]
        self.sample = None if self.sample is None else self.sample.scaled(factor)

    def take(self, rows: Rows, blocks: FeatureBlocks, forget: float = 1.0) -> None:
        """Add the moments of rows, all or none of them; rows of no weight only count.

        The weights of all rows before them are multiplied by ``forget``.
        """
        n_rows = len(rows.Y)
        if rows.weight is not None and not rows.weight.all():
            counted = rows.weight if rows.weight.ndim == 1 else rows.weight.any(axis=1)
            rows = rows.some(np.flatnonzero(counted))
        found = self.blank()
        found.inputs = InputRange.of(rows.X)
        for Phi, block in blocks.blocks(rows):
            if found.probe is None:
                found.probe = np.array(Phi[:_PROBE_ROWS], dtype=np.float64)
            if block.key is not None:
                found._draw(RowSample.of(Phi, block.Y, block.key, block.weight, block.part))
            if block.part is None:
                found._add(0, blocks.moments(Phi, block))
                continue
            for part in np.unique(block.part):
                own = np.flatnonzero(block.part == part)
                # Inputs are not needed any more.
                found._add(int(part), blocks.moments(Phi[own], block._replace(X=block.Y).some(own)))
        found.n_rows = n_rows
        if forget != 1.0:
            self.forget(forget)
        self.merge(found)

    def merge(self, other: Stream) -> None:
        """Add all that another stream of the same parts has seen; none of its rows may wait."""
        if other.waiting:
            raise ValueError("rows of the other stream wait for a feature map; fit it first")
        for number, moments in enumerate(other.parts):
            if moments is not None:
                self._add(number, moments)
        self.probe = other.probe if self.probe is None else self.probe
        self.inputs = merge_ranges(self.inputs, other.inputs)
        if other.sample is not None:
            self._draw(other.sample)
        self.n_rows += other.n_rows

    def _draw(self, sample: RowSample) -> None:
        self.sample = sample if self.sample is None else self.sample.merge(sample)

    def _add(self, part: int, moments: Moments) -> None:
        before = self.parts[part]
        self.parts[part] = moments if before is None else before + moments
