"""Moments of the rows, which are all that a fit needs of them, and a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dger, dsyr, dsyrk

from ..linalg import Array, Index, unique_columns

__all__ = [
    "MOST_ROWS",
    "Moments",
    "RowSample",
    "SecondMoments",
    "group_equal_weights",
    "least_keys",
    "sample_size",
]

# Rows are shifted in a buffer of this many numbers: small enough for the cache, long enough for
# BLAS-3.
_BUFFER_NUMBERS = 2**20
# With fewer rows in a product, reading and writing the sums would take longer than multiplying.
_SHORTEST_BUFFER = 512
# Triangles are copied in tiles of this many rows and columns.
_TILE = 512
# Largest total size of the moments of all groups of targets.
_MOST_NUMBERS = 2**28
# Limits of a row sample: at most this many rows and numbers, but at least FEWEST_ROWS rows.
MOST_ROWS, MOST_NUMBERS, FEWEST_ROWS = 2048, 2**22, 64
# A row that weighs less than this share of the heaviest row is dropped from a sample.
FORGOTTEN = 1e-3
# A row with this key is not sampled.
NOT_SAMPLED = np.uint64(2**64 - 1)


class SecondMoments(NamedTuple):
    """Second moments of features (m, m), of features with targets (m, p), and of targets (p, p)."""

    C: Array
    B: Array
    V: Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted count, mean and centred co-moments of features and targets together.

    With z = (phi, y) the joint row of length m + p, w its weight and W = sum of w, complete moments
    hold ``mean`` = sum w z / W and ``scatter`` = sum w (z - mean)(z - mean)^T. Two moments add, so
    rows may arrive in any number of parts and in any order.

    Where targets are missing, or weights differ between the targets of a row, the second moments of
    the features differ between targets. Targets with the same weights form a group, and each group
    has moments of its own rows. Complete targets are one group.

    Attributes
    ----------
    n_samples : int
        Number of rows seen, whatever their weights; with missing targets, rows that have a target.
    weight : float
        Sum of the row weights; equals ``n_samples`` when no weights were given. With weights per
        target, the weight of a row is the largest weight of its targets.
    n_features : int
        m, the number of leading entries of the joint row that are features.
    mean : ndarray of shape (m + p,), or (m,) with missing targets
    scatter : ndarray of shape (m + p, m + p), or (m, m) with missing targets
    target_groups : tuple of (ndarray of int, Moments)
        With missing targets: columns of the targets of each group, increasing, and the moments of
        their rows. Empty for complete targets.

    Notes
    -----
    A weight counts as that many copies of its row. Parts are merged with the pairwise update of
    centred co-moments (Chan, Golub and LeVeque 1983)::

        delta   = mean_2 - mean_1
        mean    = mean_1 + delta W_2 / W
        scatter = scatter_1 + scatter_2 + delta delta^T W_1 W_2 / W

    which, unlike raw sums, loses nothing when the mean is far larger than the spread. Within one
    call the rows are taken relative to the mean of the first block of rows, for the same reason.

    Time n (m + p)^2 in one symmetric product per block of rows, memory (m + p)^2 and one block;
    with missing targets the same for each group. float32 rows are widened block by block, so all
    sums are in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.learning import Moments
    >>> rng = np.random.default_rng(0)
    >>> Phi, Y = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    >>> whole = Moments.from_arrays(Phi, Y)
    >>> parts = Moments.from_arrays(Phi[:30], Y[:30]) + Moments.from_arrays(Phi[30:], Y[30:])
    >>> parts.allclose(whole)
    True
    >>> whole.C.shape, whole.B.shape, whole.V.shape
    ((3, 3), (3, 2), (2, 2))

    A missing target is NaN:

    >>> Y[0, 1] = np.nan
    >>> missing = Moments.from_arrays(Phi, Y)
    >>> missing.complete, [(columns.tolist(), group.n_samples) for columns, group in missing.groups]
    (False, [([0], 100), ([1], 99)])
    """

    n_samples: int
    weight: float
    n_features: int
    mean: Array
    scatter: Array
    target_groups: tuple[tuple[Index, Moments], ...] = ()

    def __post_init__(self) -> None:
        self.mean.flags.writeable = False
        self.scatter.flags.writeable = False

    @classmethod
    def from_arrays(
        cls,
        Phi: ArrayLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Moments:
        """Moments of the rows of Phi (n, m) and Y (n, p), optionally weighted.

        Parameters
        ----------
        Phi : array of shape (n, m)
        Y : array of shape (n, p)
            NaN is a missing target.
        sample_weight : array of shape (n,) or (n, p), optional
            Non-negative weights of rows, or of each target of each row. A row with weight zero
            changes nothing but ``n_samples``; a target with weight zero is missing.
        """
        Phi, Y, weight = _check_rows(Phi, Y, sample_weight)
        if (weight is not None and weight.ndim == 2) or np.isnan(Y).any():
            return cls._from_missing(Phi, Y, weight)
        (n, m), width = Phi.shape, Phi.shape[1] + Y.shape[1]
        root_weight = None if weight is None else np.sqrt(weight)
        height = max(_SHORTEST_BUFFER, _BUFFER_NUMBERS // (width + 1))
        # A column of ones gathers the sums in the same product; only the upper triangle is
        # computed.
        buffer = np.ones((min(height, n), width + 1))
        sums = np.zeros((width + 1, width + 1), order="F")
        shift_phi, shift_y = (
            _typical_row(Phi, root_weight, height),
            _typical_row(Y, root_weight, height),
        )
        for start in range(0, n, height):
            stop = min(start + height, n)
            block = buffer[: stop - start]
            np.subtract(Phi[start:stop], shift_phi, out=block[:, :m], casting="same_kind")
            np.subtract(Y[start:stop], shift_y, out=block[:, m:width], casting="same_kind")
            if root_weight is not None:
                block[:, width] = 1.0
                block *= root_weight[start:stop, None]
            sums = dsyrk(1.0, block.T, beta=1.0, c=sums, overwrite_c=1)
        total = float(sums[-1, -1])
        offset = sums[:-1, -1] / total if total > 0.0 else np.zeros(width)
        # In place: with many columns a second matrix of this size would need the most memory of all.
        sums = dsyr(-total, np.append(offset, 1.0), a=sums, overwrite_a=1)
        for start in range(0, width + 1, _TILE):
            stop = start + _TILE
            tile = sums[start:stop, start:stop]
            tile[:] = np.triu(tile) + np.triu(tile, 1).T
            sums[stop:, start:stop] = sums[start:stop, stop:].T
        scatter = np.ascontiguousarray(sums.T[:-1, :-1])
        return cls(n, total, m, np.concatenate([shift_phi, shift_y]) + offset, scatter)

    @classmethod
    def _from_missing(cls, Phi: NDArray[Any], Y: NDArray[Any], weight: Array | None) -> Moments:
        """Moments of rows with missing targets, or with weights per target."""
        weights = np.where(np.isnan(Y), 0.0, 1.0 if weight is None else weight.reshape(len(Y), -1))
        groups = group_equal_weights(weights)
        _check_size(len(groups), Phi.shape[1])
        moments = []
        for columns, group_weight in [*groups, (np.arange(0), weights.max(axis=1, initial=0.0))]:
            rows = np.flatnonzero(group_weight)
            moments.append(cls.from_arrays(Phi[rows], Y[np.ix_(rows, columns)], group_weight[rows]))
        columns_of_groups = [columns for columns, _ in groups]
        return cls.from_groups(moments.pop(), list(zip(columns_of_groups, moments, strict=True)))

    @classmethod
    def from_groups(cls, rows: Moments, groups: list[tuple[Index, Moments]]) -> Moments:
        """Moments with missing targets from those of the features and those of each group of targets.

        Parameters
        ----------
        rows : Moments
            Moments of the features alone (no targets) over all rows that have a target.
        groups : list of (ndarray of int, Moments)
            Columns of the targets of each group, and moments of their rows. The moments of a single
            group are complete.
        """
        if len(groups) == 1:
            return groups[0][1]
        ordered = sorted(groups, key=lambda pair: int(pair[0][0]))
        return replace(rows, target_groups=tuple(ordered))

    @property
    def complete(self) -> bool:
        """Whether every row has all targets, with one weight for all of them."""
        return not self.target_groups

    @property
    def groups(self) -> list[tuple[Index, Moments]]:
        """Columns of the targets of each group, and moments of their rows; one group if complete."""
        return list(self.target_groups) or [(np.arange(self.n_outputs), self)]

    @property
    def rows(self) -> Moments:
        """Moments of the features alone, over all rows that have a target."""
        if self.target_groups:
            return replace(self, target_groups=())
        return self.some_targets(np.arange(0))

    def some_targets(self, columns: Index) -> Moments:
        """Complete moments of the same rows with only some of the targets."""
        m = self.n_features
        if len(columns) == self.n_outputs:
            return self
        keep = np.concatenate([np.arange(m), m + columns])
        scatter = np.ascontiguousarray(self.scatter[np.ix_(keep, keep)])
        return Moments(self.n_samples, self.weight, m, self.mean[keep], scatter)

    def scaled(self, factor: float) -> Moments:
        """Moments of the same rows with all weights multiplied by ``factor``.

        Examples
        --------
        >>> import numpy as np
        >>> from entangled_kernels.learning import Moments
        >>> Phi, Y = np.arange(6.0).reshape(3, 2), np.arange(3.0)[:, None]
        >>> Moments.from_arrays(Phi, Y).scaled(0.5).allclose(Moments.from_arrays(Phi, Y, [0.5, 0.5, 0.5]))
        True
        """
        groups = tuple((columns, group.scaled(factor)) for columns, group in self.target_groups)
        return replace(
            self, weight=factor * self.weight, scatter=factor * self.scatter, target_groups=groups
        )

    def rotated(self, basis: Array, offset: Array | float = 0.0) -> Moments:
        """Moments of the features basis^T phi + offset, for a basis (m, m')."""
        groups = tuple(
            (columns, group.rotated(basis, offset)) for columns, group in self.target_groups
        )
        B = basis.T @ self.scatter[: self.n_features, self.n_features :]
        V = self.scatter[self.n_features :, self.n_features :]
        scatter = np.block([[basis.T @ self.C @ basis, B], [B.T, V]])
        mean = np.concatenate([self.mean_phi @ basis + offset, self.mean[self.n_features :]])
        return Moments(self.n_samples, self.weight, basis.shape[1], mean, scatter, groups)

    def __radd__(self, other: object) -> Moments:
        return self + other

    def __add__(self, other: object) -> Moments:
        # The builtin sum begins with 0.
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Moments):
            return NotImplemented
        if (self.n_features, self.n_outputs) != (other.n_features, other.n_outputs):
            raise ValueError(
                f"moments to add must have the same features and outputs, got (m, p) = "
                f"{(self.n_features, self.n_outputs)} and {(other.n_features, other.n_outputs)}"
            )
        if self.target_groups or other.target_groups:
            return self._add_missing(other)
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0.0 else 0.0
        delta = other.mean - self.mean
        mean = self.mean + share * delta
        scatter = self.scatter + other.scatter
        # In place; the outer product is symmetric, so the transposed view will do.
        scatter = dger(self.weight * share, delta, delta, a=scatter.T, overwrite_a=1).T
        return Moments(self.n_samples + other.n_samples, weight, self.n_features, mean, scatter)

    def _add_missing(self, other: Moments) -> Moments:
        """Sum in which targets of a group are together in groups of both parts."""
        groups = []
        for mine, left in self.groups:
            for theirs, right in other.groups:
                columns = np.intersect1d(mine, theirs)
                if len(columns):
                    first = left.some_targets(np.searchsorted(mine, columns))
                    second = right.some_targets(np.searchsorted(theirs, columns))
                    groups.append((columns, first + second))
        _check_size(len(groups), self.n_features)
        return Moments.from_groups(self.rows + other.rows, groups)

    @property
    def n_outputs(self) -> int:
        """p, the number of targets."""
        if self.target_groups:
            return sum(len(columns) for columns, _ in self.target_groups)
        return len(self.mean) - self.n_features

    @property
    def mean_phi(self) -> Array:
        """Mean of the features over all rows, (m,)."""
        return self.mean[: self.n_features]

    @property
    def mean_y(self) -> Array:
        """Mean of each target over the rows that have it, (p,)."""
        if not self.target_groups:
            return self.mean[self.n_features :]
        mean = np.empty(self.n_outputs)
        for columns, group in self.target_groups:
            mean[columns] = group.mean_y
        return mean

    @property
    def target_weight(self) -> Array:
        """Total weight of the rows that have each target, (p,)."""
        weight = np.empty(self.n_outputs)
        for columns, group in self.groups:
            weight[columns] = group.weight
        return weight

    @property
    def C(self) -> Array:
        """Centred co-moments of the features over all rows, (m, m)."""
        return self.scatter[: self.n_features, : self.n_features]

    @property
    def B(self) -> Array:
        """Centred co-moments of features with targets, (m, p); of complete targets only."""
        self._require_complete()
        return self.scatter[: self.n_features, self.n_features :]

    @property
    def V(self) -> Array:
        """Centred co-moments of the targets, (p, p); of complete targets only."""
        self._require_complete()
        return self.scatter[self.n_features :, self.n_features :]

    def _require_complete(self) -> None:
        if self.target_groups:
            raise ValueError(
                "second moments with targets differ between rows where targets are missing; read `groups`, "
                "or fill the targets in with `complete_moments`"
            )

    def second_moments(self, *, centred: bool) -> SecondMoments:
        """C, B and V about the mean, or about zero: sum w phi phi^T and so on."""
        self._require_complete()
        m, scatter = self.n_features, self.scatter
        if not centred:
            scatter = scatter + np.outer(self.weight * self.mean, self.mean)
        return SecondMoments(scatter[:m, :m], scatter[:m, m:], scatter[m:, m:])

    def allclose(self, other: Moments, rtol: float = 1e-9) -> bool:
        """Whether both describe the same rows, to ``rtol`` of the spread of each column."""
        counts = [(part.scatter.shape, part.n_features, part.n_samples) for part in (self, other)]
        groups = list(zip(self.target_groups, other.target_groups, strict=False))
        if (
            counts[0] != counts[1]
            or len(self.target_groups) != len(other.target_groups)
            or not np.isclose(self.weight, other.weight, rtol=rtol)
            or not all(np.array_equal(mine, theirs) for (mine, _), (theirs, _) in groups)
        ):
            return False
        spread = np.sqrt(np.maximum(np.diag(self.scatter), np.diag(other.scatter)))
        typical = spread / np.sqrt(max(self.weight, 1.0))
        near_mean = np.abs(self.mean - other.mean) <= rtol * (typical + np.abs(self.mean))
        near_scatter = np.abs(self.scatter - other.scatter) <= rtol * np.outer(spread, spread)
        alike = bool(near_mean.all() and near_scatter.all())
        return alike and all(left.allclose(right, rtol) for (_, left), (_, right) in groups)


def group_equal_weights(weight: Array) -> list[tuple[Index, Array]]:
    """Columns of targets that have the same weights (n,), and these weights, for weights (n, p)."""
    distinct, group = unique_columns(weight)
    return [(np.flatnonzero(group == number), column) for number, column in enumerate(distinct.T)]


def _typical_row(rows: NDArray[Any], root_weight: Array | None, height: int) -> Array:
    """Weighted mean of the first rows, exact where they are constant, from which all rows are measured."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1])
    first = np.asarray(rows[0], dtype=np.float64)
    weight = None if root_weight is None else root_weight[:height] ** 2
    if weight is not None and not weight.any():
        return first
    return np.asarray(first + np.average(rows[:height] - first, axis=0, weights=weight))


def _check_rows(
    Phi: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], Array | None]:
    """Features, targets and weights as arrays of matching shapes."""
    Phi, Y = np.asarray(Phi), np.asarray(Y)
    for name, array in (("Phi", Phi), ("Y", Y)):
        if array.ndim != 2:
            raise ValueError(
                f"{name} must be two-dimensional, one row per sample, got shape {array.shape}"
            )
    n = len(Phi)
    if n != len(Y):
        raise ValueError(f"Phi and Y must have one row per sample each, got {n} and {len(Y)} rows")
    if sample_weight is None:
        return Phi, Y, None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape not in ((n,), Y.shape):
        raise ValueError(
            f"sample_weight must have shape ({n},), one weight per row, or {Y.shape}, one weight per target, "
            f"got {weight.shape}"
        )
    if not np.all(np.isfinite(weight)) or weight.min(initial=0.0) < 0:
        raise ValueError("sample_weight must be finite and non-negative")
    return Phi, Y, weight


def _check_size(n_groups: int, n_features: int) -> None:
    if n_groups * n_features**2 > _MOST_NUMBERS:
        raise ValueError(
            f"{n_groups} groups of targets that are missing in different rows need {n_groups} x "
            f"{n_features} x {n_features} numbers, more than {_MOST_NUMBERS}; use fewer features, such as "
            f"Nystroem with fewer components, or fit groups of targets apart"
        )


def sample_size(width: int) -> int:
    """Number of rows, of ``width`` numbers each, that a sample holds."""
    return int(min(MOST_ROWS, max(FEWEST_ROWS, MOST_NUMBERS // max(1, width))))


def least_keys(key: NDArray[np.uint64], weight: Array | None, size: int) -> Index:
    """Indices of the rows of positive weight, (n,) or (n, p), that have the least keys.

    Rows whose key is `NOT_SAMPLED` are left out.
    """
    counted = np.flatnonzero(key != NOT_SAMPLED)
    if weight is not None:
        counted = counted[np.atleast_2d(weight[counted].T).any(axis=0)]
    # Only equal rows have equal keys, so it does not matter which of them is kept.
    return counted[np.argsort(key[counted], kind="stable")[:size]]


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows of a table that have the least keys; residuals are computed from them in bounded memory.

    Keys are hashes of the rows, so neither the order of the rows nor how they were split into parts
    changes which of them are kept: samples of parts merge to the sample of the whole.

    Attributes
    ----------
    Phi : ndarray of shape (s, m)
        Features.
    Y : ndarray of shape (s, p)
        Targets, NaN where missing.
    weight : ndarray of shape (s, p)
        Weights of the targets, zero where missing.
    part : ndarray of shape (s,)
        A number for each row, such as that of its fold.
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
        """Sample of rows with weights (n,), or (n, p) for each target; rows of weight zero are left out."""
        chosen = least_keys(key, weight, sample_size(Phi.shape[1] + Y.shape[1]))
        Y = np.array(Y[chosen], dtype=np.float64)
        weights = np.ones(Y.shape)
        if weight is not None:
            chosen_weight = weight[chosen] if weight.ndim == 2 else weight[chosen, None]
            weights = np.array(np.broadcast_to(chosen_weight, Y.shape))
        weights[np.isnan(Y)] = 0.0
        return cls(
            np.asarray(Phi[chosen], dtype=np.float64),
            np.where(weights > 0.0, Y, np.nan),
            weights,
            np.zeros(len(Y), dtype=np.intp) if part is None else part[chosen],
            key[chosen],
        )

    def __getstate__(self) -> dict[str, Any]:
        # Most rows have one weight for all of their targets.
        weight = self.weight
        if weight.shape[1] > 1 and (weight == weight[:, :1]).all():
            weight = np.ascontiguousarray(weight[:, :1])
        return vars(self) | {"weight": weight}

    def __setstate__(self, state: dict[str, Any]) -> None:
        weight = np.array(np.broadcast_to(state["weight"], state["Y"].shape))
        vars(self).update(state | {"weight": weight})

    @property
    def row_weight(self) -> Array:
        """The largest weight of the targets of each row, (s,)."""
        return np.asarray(self.weight.max(axis=1))

    def scaled(self, factor: float, heaviest: float = 0.0) -> RowSample:
        """The sample with all weights multiplied by ``factor``, without rows of hardly any weight.

        Such rows would keep new rows, the heaviest of which weighs ``heaviest``, out of the sample.
        """
        heaviest = max(heaviest, factor * float(self.row_weight.max(initial=0.0)))
        kept = factor * self.row_weight >= FORGOTTEN * heaviest
        return RowSample(
            self.Phi[kept],
            self.Y[kept],
            factor * self.weight[kept],
            self.part[kept],
            self.key[kept],
        )

    def merge(self, other: RowSample) -> RowSample:
        """Sample of the rows of both."""
        key = np.concatenate([self.key, other.key])
        chosen = np.argsort(key, kind="stable")[: sample_size(self.Phi.shape[1] + self.Y.shape[1])]
        names = ("Phi", "Y", "weight", "part", "key")
        columns = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in names]
        return RowSample(*(column[chosen] for column in columns))
