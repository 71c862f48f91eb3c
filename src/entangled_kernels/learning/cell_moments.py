"""Moments of rows whose targets have weights of their own, such as blanks: one for each set of targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array, Index
from .moments import Moments

__all__ = ["CellMoments", "weight_groups"]

# Numbers that the moments of all groups may take.
_MOST_NUMBERS = 2**28


@dataclass(frozen=True, eq=False)
class CellMoments:
    """Moments of every group of targets that have the same weights, over the rows that weigh anything.

    A loss that is a sum over cells, w (y - f)^2, needs the second moments of the features once for each
    target, whatever patterns the blanks have from row to row; targets measured on the same rows share them.
    Sums of two refine the groups, so rows may come in any number of parts.

    Attributes
    ----------
    rows : Moments
        Of the features alone, each row with the largest weight of its cells.
    groups : list of (ndarray, Moments)
        Places of the targets of a group, in their order, and moments of its rows.

    Notes
    -----
    Time n m^2 for every group, memory m^2.
    """

    rows: Moments
    groups: list[tuple[Index, Moments]]

    @classmethod
    def from_arrays(cls, Phi: Array, Y: Array, weight: Array) -> CellMoments:
        """Moments of features (n, m) and targets (n, p) with cell weights (n, p), zero for a blank."""

        def moments(own: Array, targets: Array) -> Moments:
            counted = own > 0.0
            return Moments.from_arrays(Phi[counted], targets[counted], own[counted])

        alike = weight_groups(weight)
        _check_size(len(alike), Phi.shape[1])
        groups = [(places, moments(own, Y[:, places])) for places, own in alike]
        return cls(moments(weight.max(axis=1), Y[:, :0]), sorted(groups, key=lambda pair: int(pair[0][0])))

    @classmethod
    def of_complete(cls, moments: Moments) -> CellMoments:
        """Those of rows without blanks."""
        everything = np.arange(moments.n_outputs)
        return cls(_some_targets(moments, everything[:0]), [(everything, moments)])

    @property
    def n_samples(self) -> int:
        """Number of rows with a measured target."""
        return self.rows.n_samples

    @property
    def n_features(self) -> int:
        """m, the number of features."""
        return self.rows.n_features

    @property
    def n_outputs(self) -> int:
        """p, the number of targets."""
        return sum(len(places) for places, _ in self.groups)

    def __radd__(self, other: object) -> CellMoments:
        return self + other

    def __add__(self, other: object) -> CellMoments:
        # The builtin sum begins with 0.
        if isinstance(other, int) and other == 0:
            return self
        if isinstance(other, Moments):
            other = CellMoments.of_complete(other)
        if not isinstance(other, CellMoments):
            return NotImplemented
        groups = []
        for mine, left in self.groups:
            for theirs, right in other.groups:
                places = np.intersect1d(mine, theirs)
                if len(places):
                    own = _some_targets(left, np.searchsorted(mine, places))
                    groups.append((places, own + _some_targets(right, np.searchsorted(theirs, places))))
        _check_size(len(groups), self.n_features)
        groups.sort(key=lambda pair: int(pair[0][0]))
        return CellMoments(self.rows + other.rows, groups)

    def scaled(self, factor: float) -> CellMoments:
        """Moments of the same rows with all weights multiplied by ``factor``."""
        return CellMoments(
            self.rows.scaled(factor), [(places, own.scaled(factor)) for places, own in self.groups]
        )

    def rotated(self, basis: Array, offset: Array | float = 0.0) -> CellMoments:
        """Moments of the features basis^T phi + offset, for a basis (m, m')."""

        def turn(moments: Moments) -> Moments:
            B = basis.T @ moments.B
            scatter = np.block([[basis.T @ moments.C @ basis, B], [B.T, moments.V]])
            mean = np.concatenate([moments.mean_phi @ basis + offset, moments.mean_y])
            return Moments(moments.n_samples, moments.weight, basis.shape[1], mean, scatter)

        return CellMoments(turn(self.rows), [(places, turn(own)) for places, own in self.groups])

    def simplest(self) -> Moments | CellMoments:
        """Plain moments where all targets have the same weights."""
        return self.groups[0][1] if len(self.groups) == 1 else self


def weight_groups(weight: Array) -> list[tuple[Index, Array]]:
    """Places of targets with the same weights, and these weights."""
    distinct, group = np.unique(weight, axis=1, return_inverse=True)
    return [(np.flatnonzero(group.reshape(-1) == number), own) for number, own in enumerate(distinct.T)]


def _some_targets(moments: Moments, places: Index) -> Moments:
    m = moments.n_features
    if len(places) == moments.n_outputs:
        return moments
    keep = np.concatenate([np.arange(m), m + places])
    scatter = np.ascontiguousarray(moments.scatter[np.ix_(keep, keep)])
    return Moments(moments.n_samples, moments.weight, m, moments.mean[keep], scatter)


def _check_size(n_groups: int, n_features: int) -> None:
    if n_groups * n_features**2 > _MOST_NUMBERS:
        raise ValueError(
            f"{n_groups} groups of targets with blanks of their own need {n_groups} x {n_features} x "
            f"{n_features} numbers, more than {_MOST_NUMBERS}; use fewer features, such as Nystroem with "
            f"fewer components, or fit groups of targets apart"
        )
