"""A sample of the rows that moments are of: what residuals are computed from, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array, Index

__all__ = ["MOST_ROWS", "RowSample", "least_keys", "sample_size"]

# Rows and numbers that a sample may have; very wide rows are kept in a small number all the same.
MOST_ROWS, MOST_NUMBERS, FEWEST_ROWS = 2048, 2**22, 64
# A row that weighs less than this share of the heaviest one is forgotten.
FORGOTTEN = 1e-3


def sample_size(width: int) -> int:
    """Number of rows of so many numbers that a sample holds."""
    return int(min(MOST_ROWS, max(FEWEST_ROWS, MOST_NUMBERS // max(1, width))))


def least_keys(key: NDArray[np.uint64], weight: Array | None, size: int) -> Index:
    """Places of the rows of positive weight, (n,) or (n, p), that have the least keys."""
    counted = np.arange(len(key))
    if weight is not None:
        counted = np.flatnonzero(weight > 0.0 if weight.ndim == 1 else weight.any(axis=1))
    # Equal keys are those of equal rows, so it does not matter which of them is kept.
    return counted[np.argsort(key[counted], kind="stable")[:size]]


@dataclass(frozen=True, eq=False)
class RowSample:
    """Those rows of a table whose keys are the least.

    Keys are hashes of the rows, so which rows are kept depends neither on their order nor on how they were
    cut into parts: samples of parts merge to that of the whole.

    Attributes
    ----------
    Phi : ndarray of shape (s, m)
        Features.
    Y : ndarray of shape (s, p)
        Targets, NaN where one was not measured.
    weight : ndarray of shape (s, p)
        Of the cells, zero where one was not measured.
    part : ndarray of shape (s,)
        Such as the fold of each row.
    key : ndarray of shape (s,) of uint64
        Increasing.
    """

    Phi: Array
    Y: Array
    weight: Array
    part: Index
    key: NDArray[np.uint64]

    @classmethod
    def of(
        cls,
        Phi: Array,
        Y: Array,
        key: NDArray[np.uint64],
        weight: Array | None = None,
        part: Index | None = None,
    ) -> RowSample:
        """Sample of rows with weights (n,) or, of their cells, (n, p); those of no weight are not taken."""
        chosen = least_keys(key, weight, sample_size(Phi.shape[1] + Y.shape[1]))
        Y = np.array(Y[chosen], dtype=np.float64)
        cells = np.ones(Y.shape)
        if weight is not None:
            cells = np.array(np.broadcast_to(weight[chosen].reshape(len(Y), -1), Y.shape))
        cells[np.isnan(Y)] = 0.0
        return cls(
            np.asarray(Phi[chosen], dtype=np.float64),
            np.where(cells > 0.0, Y, np.nan),
            cells,
            np.zeros(len(Y), dtype=np.intp) if part is None else part[chosen],
            key[chosen],
        )

    @property
    def row_weight(self) -> Array:
        """The largest weight of the cells of each row, (s,)."""
        return np.asarray(self.weight.max(axis=1))

    def scaled(self, factor: float) -> RowSample:
        """The sample with all weights multiplied by ``factor``; rows that hardly weigh any more are dropped.

        They would keep the places of rows to come, which tell more.
        """
        kept = self.row_weight >= FORGOTTEN * self.row_weight.max(initial=0.0)
        return RowSample(
            self.Phi[kept], self.Y[kept], factor * self.weight[kept], self.part[kept], self.key[kept]
        )

    def merge(self, other: RowSample) -> RowSample:
        """Sample of the rows of both."""
        key = np.concatenate([self.key, other.key])
        chosen = np.argsort(key, kind="stable")[: sample_size(self.Phi.shape[1] + self.Y.shape[1])]
        names = ("Phi", "Y", "weight", "part", "key")
        return RowSample(
            *(np.concatenate([getattr(self, name), getattr(other, name)])[chosen] for name in names)
        )
