"""Additive sufficient statistics: all that learning and ridge regression need to know about the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dger, dsyr, dsyrk

from ..linalg import Array

__all__ = ["Moments", "SecondMoments"]

# Rows are shifted in a buffer of this many numbers: small enough for the cache, long enough for BLAS-3.
_BUFFER_NUMBERS = 2**20
# Fewer rows than this to a product, and reading and writing the sums would take longer than multiplying.
_SHORTEST = 512
# Triangles are copied in tiles of this many rows and columns.
_TILE = 512


class SecondMoments(NamedTuple):
    """Second moments of features (m, m), of features with targets (m, p), and of targets (p, p)."""

    C: Array
    B: Array
    V: Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted count, mean and centred co-moments of features and targets together.

    With z = (phi, y) the joint row of length m + p, w its weight and W = sum of w, the object holds
    ``mean`` = sum w z / W and ``scatter`` = sum w (z - mean)(z - mean)^T. Two of them add, so rows may
    arrive in any number of parts and in any order.

    Attributes
    ----------
    n_samples : int
        Number of rows seen, whatever their weights.
    weight : float
        Sum of the weights; equals ``n_samples`` when no weights were given.
    n_features : int
        m, the number of leading entries of the joint row that are features.
    mean : ndarray of shape (m + p,)
    scatter : ndarray of shape (m + p, m + p)

    Notes
    -----
    A weight counts as that many copies of its row. Parts are merged with the pairwise update of centred
    co-moments (Chan, Golub and LeVeque 1983)::

        delta   = mean_2 - mean_1
        mean    = mean_1 + delta W_2 / W
        scatter = scatter_1 + scatter_2 + delta delta^T W_1 W_2 / W

    which, unlike raw sums, loses nothing when the mean is far larger than the spread. Within one call the
    rows are taken relative to the mean of the first block of them, to the same end.

    Time n (m + p)^2 in one symmetric product per block of rows, memory (m + p)^2 and one block. float32
    rows are widened block by block, so all sums are in float64.

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
    """

    n_samples: int
    weight: float
    n_features: int
    mean: Array
    scatter: Array

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
        sample_weight : array of shape (n,), optional
            Non-negative; a row with weight zero changes nothing but ``n_samples``.
        """
        Phi, Y = np.asarray(Phi), np.asarray(Y)
        _check_rows(Phi, Y)
        n, m = Phi.shape
        width = m + Y.shape[1]
        root_weight = _root_weights(sample_weight, n)
        height = max(_SHORTEST, _BUFFER_NUMBERS // (width + 1))
        # A column of ones gathers the sums in the same product; only the upper triangle is computed.
        buffer = np.ones((min(height, n), width + 1))
        sums = np.zeros((width + 1, width + 1), order="F")
        shift_phi, shift_y = (_typical_row(rows, root_weight, height) for rows in (Phi, Y))
        for start in range(0, n, height):
            stop = min(start + height, n)
            block = buffer[: stop - start]
            np.subtract(Phi[start:stop], shift_phi, out=block[:, :m], casting="same_kind")
            np.subtract(Y[start:stop], shift_y, out=block[:, m:width], casting="same_kind")
            if root_weight is not None:
                block[:, width] = 1.0
                block *= root_weight[start:stop, None]
            sums = dsyrk(1.0, block.T, beta=1.0, c=sums, overwrite_c=1)
        weight = float(sums[-1, -1])
        offset = sums[:-1, -1] / weight if weight > 0.0 else np.zeros(width)
        # In place, because for many columns a further matrix of this size would be the largest thing here.
        sums = dsyr(-weight, np.append(offset, 1.0), a=sums, overwrite_a=1)
        _mirror_upper(sums)
        scatter = np.ascontiguousarray(sums.T[:-1, :-1])
        return cls(n, weight, m, np.concatenate([shift_phi, shift_y]) + offset, scatter)

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
        return replace(self, weight=factor * self.weight, scatter=factor * self.scatter)

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
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0.0 else 0.0
        delta = other.mean - self.mean
        mean = self.mean + share * delta
        scatter = self.scatter + other.scatter
        # In place; the outer product is symmetric, so the transposed view will do.
        scatter = dger(self.weight * share, delta, delta, a=scatter.T, overwrite_a=1).T
        return Moments(self.n_samples + other.n_samples, weight, self.n_features, mean, scatter)

    @property
    def n_outputs(self) -> int:
        """p, the number of targets."""
        return len(self.mean) - self.n_features

    @property
    def mean_phi(self) -> Array:
        """Mean of the features, (m,)."""
        return self.mean[: self.n_features]

    @property
    def mean_y(self) -> Array:
        """Mean of the targets, (p,)."""
        return self.mean[self.n_features :]

    @property
    def C(self) -> Array:
        """Centred co-moments of the features, (m, m)."""
        return self.scatter[: self.n_features, : self.n_features]

    @property
    def B(self) -> Array:
        """Centred co-moments of features with targets, (m, p)."""
        return self.scatter[: self.n_features, self.n_features :]

    @property
    def V(self) -> Array:
        """Centred co-moments of the targets, (p, p)."""
        return self.scatter[self.n_features :, self.n_features :]

    def centred(self) -> SecondMoments:
        """C, B and V: second moments about the mean."""
        return SecondMoments(self.C, self.B, self.V)

    def uncentred(self) -> SecondMoments:
        """Second moments about zero, sum w phi phi^T and so on."""
        m = self.n_features
        scatter = self.scatter + np.outer(self.weight * self.mean, self.mean)
        return SecondMoments(scatter[:m, :m], scatter[:m, m:], scatter[m:, m:])

    def allclose(self, other: Moments, rtol: float = 1e-9) -> bool:
        """Whether both describe the same rows, to ``rtol`` of the spread of each column."""
        counts = [(own.scatter.shape, own.n_features, own.n_samples) for own in (self, other)]
        if counts[0] != counts[1] or not np.isclose(self.weight, other.weight, rtol=rtol):
            return False
        spread = np.sqrt(np.maximum(np.diag(self.scatter), np.diag(other.scatter)))
        typical = spread / np.sqrt(max(self.weight, 1.0))
        near_mean = np.abs(self.mean - other.mean) <= rtol * (typical + np.abs(self.mean))
        near_scatter = np.abs(self.scatter - other.scatter) <= rtol * np.outer(spread, spread)
        return bool(near_mean.all() and near_scatter.all())


def _typical_row(rows: NDArray[Any], root_weight: Array | None, height: int) -> Array:
    """Weighted mean of the first rows, exact where they are constant; what all rows are taken relative to."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1])
    first = np.asarray(rows[0], dtype=np.float64)
    weight = None if root_weight is None else root_weight[:height] ** 2
    if weight is not None and not weight.any():
        return first
    return np.asarray(first + np.average(rows[:height] - first, axis=0, weights=weight))


def _mirror_upper(sums: Array) -> None:
    """Copy the upper triangle onto the lower, in place."""
    for start in range(0, len(sums), _TILE):
        stop = start + _TILE
        tile = sums[start:stop, start:stop]
        tile[:] = np.triu(tile) + np.triu(tile, 1).T
        sums[stop:, start:stop] = sums[start:stop, stop:].T


def _check_rows(Phi: NDArray[Any], Y: NDArray[Any]) -> None:
    for name, array in (("Phi", Phi), ("Y", Y)):
        if array.ndim != 2:
            raise ValueError(f"{name} must be two-dimensional, one row per sample, got shape {array.shape}")
    if len(Phi) != len(Y):
        raise ValueError(f"Phi and Y must have one row per sample each, got {len(Phi)} and {len(Y)} rows")


def _root_weights(sample_weight: ArrayLike | None, n: int) -> Array | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per row, got {weight.shape}")
    if not np.all(np.isfinite(weight)) or weight.min(initial=0.0) < 0:
        raise ValueError("sample_weight must be finite and non-negative")
    return np.sqrt(weight)
