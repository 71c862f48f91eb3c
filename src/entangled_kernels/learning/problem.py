"""The learning problem in the smallest coordinates in which it can be solved exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from scipy.linalg import eigvalsh, qr, svd
from scipy.linalg.lapack import dpocon, dpotrf

from ..linalg import Array, is_identity, principal_axes, rank_tolerance, stacked_to_kraus
from .alignment import Alignment
from .compression import LARGEST_ROTATED, CompressedRows, columns_are_alike, compress_for_fit
from .kernel import LearnedKernel
from .moments import Moments

__all__ = ["Problem", "reduce_centred_rows", "reduce_moments", "reduce_rows"]

# Of squared singular values: a share of the largest that is far above the rounding of squares.
_CLEARLY_POSITIVE = 1e-8
# Second moments take the place of as many rows and columns as this or more, where the reciprocal of their
# condition, and so the share of the shortest axis in the squared length of the longest, is above that.
_WORTH_SQUARING, _SHORTEST_SQUARE = 64, 1e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """Learning problem in coordinates where the features are uncorrelated and nothing is redundant.

    Attributes
    ----------
    centred : bool
        Whether the model has an intercept, so that everything is about the mean of each column.
    n_features, n_outputs : int
        m and p of the original rows.
    features : ndarray of shape (m, m')
        Orthonormal basis of the range of the features' second moments, in the coordinates of the moments;
        after `restored`, in those of the original rows.
    outputs : ndarray of shape (p, k)
        Orthonormal basis of the outputs that the features say anything about, likewise.
    scale : ndarray of shape (m',)
        The features' second moments in these coordinates, positive: their matrix is diag(scale).
    targets : ndarray of shape (m', k)
        Second moments of features with targets.
    whitened : Alignment
        The objective as a function of sqrt(scale) * Q, where the features' second moments are the identity.
    mean_phi, mean_y : ndarray of shape (m,) and (p,)
        Means of the columns about which everything is taken; zero without an intercept.
    n_samples, weight : int and float
        Number of rows and their total weight.
    target_scatter : ndarray of shape (p,)
        Second moment of each target.
    """

    centred: bool
    n_features: int
    n_outputs: int
    features: Array
    outputs: Array
    scale: Array
    targets: Array
    whitened: Alignment
    mean_phi: Array
    mean_y: Array
    n_samples: int
    weight: float
    target_scatter: Array

    def restored(self, rows: CompressedRows, moments: Moments) -> Problem:
        """The same problem with bases and means in the coordinates of the rows before compression."""
        problem = self
        if rows.features is not None:
            mean_phi = self.mean_phi @ rows.features.T + rows.first_phi
            problem = replace(problem, features=rows.features @ self.features, mean_phi=mean_phi)
        if rows.outputs is not None:
            scatter = rows.target_scatter
            if scatter is None:
                V = (moments.centred() if self.centred else moments.uncentred()).V
                scatter = np.einsum("ok,ok->o", rows.outputs @ V, rows.outputs)
            problem = replace(
                problem,
                outputs=rows.outputs @ self.outputs,
                mean_y=self.mean_y @ rows.outputs.T + rows.first_y,
                target_scatter=scatter,
            )
        return problem

    def with_mix(self, mix: float) -> Problem:
        """The same problem with another weight of the full alignment."""
        return replace(self, whitened=self.whitened.with_mix(mix))

    @property
    def full_rank(self) -> int:
        """Largest Kraus rank that can matter, m' * k."""
        return self.targets.size

    def resolve_rank(self, rank: int | float | None) -> int | None:
        """Number of Kraus operators asked for by a count or by a fraction of the full rank; None stays None.

        A count above the full rank asks for operators that the data cannot use, so it means the full rank.
        """
        if rank is None:
            return None
        if isinstance(rank, Integral):
            return min(int(rank), self.full_rank)
        return max(1, round(float(rank) * self.full_rank))

    def whiten(self, Q: Array) -> Array:
        """Q (m', k, r) in the coordinates of the whitened objective."""
        return np.sqrt(self.scale)[:, None, None] * Q

    def alignment_terms(self, kernel: LearnedKernel) -> tuple[float, float]:
        """Partial-trace and full alignment of a kernel in reduced coordinates."""
        root = np.sqrt(self.scale)
        return self.whitened.terms(self.whiten(kernel.Q), root[:, None] * kernel.metric() * root)

    def finished(self, kernel: LearnedKernel, shrinkage: float) -> LearnedKernel:
        """A learned kernel shrunk towards the plain one, and scaled to the trace of its Gram matrix."""
        kernel = kernel.shrunk(shrinkage, self.n_features, self.n_outputs)
        trace = kernel.gram_trace(self.scale, self.n_outputs)
        if trace == 0.0:
            return kernel
        return kernel.scaled(self.n_outputs * float(self.scale.sum()) / trace)

    def squared_residuals(self, coef: Array) -> Array:
        """Weighted sum of squared residuals of each original output, for coefficients (m', k)."""
        explained = coef.T @ (2.0 * self.targets - self.scale[:, None] * coef)  # (k, k)
        gained = np.einsum("ok,kl,ol->o", self.outputs, explained, self.outputs, optimize=True)
        rounding = np.finfo(float).eps * self.target_scatter
        return np.asarray(np.maximum(self.target_scatter - gained, rounding))

    def expand_coef(self, coef: Array) -> Array:
        """Coefficients (m', k) as (p, m) of the original features and outputs."""
        return self.outputs @ coef.T @ self.features.T

    def expand_kraus(self, Q: Array) -> Array:
        """Kraus operators (r, p, m) of the original features and outputs."""
        m, k, r = Q.shape
        kraus = self.outputs @ stacked_to_kraus(Q.reshape(m * k, r), k) @ self.features.T  # (r, p, m)
        return np.ascontiguousarray(kraus)

    def expand_metric(self, kernel: LearnedKernel) -> Array | None:
        """identity * I + L L^T in the original features, (m, m), or None when both are absent."""
        if kernel.identity == 0.0 and kernel.L.shape[1] == 0:
            return None
        L = self.features @ kernel.L
        metric: Array = L @ L.T
        metric[np.diag_indices_from(metric)] += kernel.identity
        return metric


def reduce_moments(
    moments: Moments, *, centred: bool, mix: float = 0.5, rows: CompressedRows | None = None
) -> Problem:
    """Rotate features to the range of their second moments, outputs to what the features can reach.

    Parameters
    ----------
    moments : Moments
    centred : bool
        Whether the model has an intercept: then everything is about the mean of each column.
    mix : float, default=0.5
        Weight of the full alignment in the objective.
    rows : CompressedRows, optional
        Where the moments are those of compressed rows; the problem stays in their coordinates.

    Notes
    -----
    With C = F diag(scale) F^T the second moments of the features and B those with the targets, the optimum
    of the alignment and every ridge solution lie in range(C) kron rowspace(B). Without an intercept the
    output space also takes in the mean of the targets and the vector of ones, which the paper's centring
    brings in; kernels are then sought on that space.

    Time m^3 + m^2 p, once.
    """
    features_in, outputs_in = (None, None) if rows is None else (rows.features, rows.outputs)
    m = moments.n_features if features_in is None else len(features_in)
    p = moments.n_outputs if outputs_in is None else len(outputs_in)
    ones = np.ones(p) if outputs_in is None else outputs_in.sum(axis=0)
    working = moments.centred() if centred else moments.uncentred()

    scale, features = principal_axes(
        moments.C, None if centred else np.sqrt(moments.weight) * moments.mean_phi
    )
    targets = features.T @ working.B  # (m', p)

    unit = np.sqrt(np.diag(working.V))
    unit[unit == 0.0] = 1.0
    spanning = targets / np.sqrt(scale)[:, None]
    if not centred:
        length = np.sqrt(np.trace(working.V) / p)
        spanning = np.vstack([spanning, np.sqrt(moments.weight) * moments.mean_y, length * ones])
    outputs = _row_space(spanning, unit, compressed=outputs_in is not None)

    norms = None if rows is None else rows.norms
    objective = Alignment.from_moments(moments, mix, centred=centred, ones=ones, n_outputs=p, norms=norms)
    whitener = features / np.sqrt(scale)
    return Problem(
        centred=centred,
        n_features=m,
        n_outputs=p,
        features=features,
        outputs=outputs,
        scale=scale,
        targets=targets @ outputs,
        whitened=objective.transformed(whitener, outputs, whitened=centred),
        mean_phi=moments.mean_phi if centred else np.zeros(moments.n_features),
        mean_y=moments.mean_y if centred else np.zeros(moments.n_outputs),
        n_samples=moments.n_samples,
        weight=moments.weight,
        target_scatter=np.diag(working.V),
    )


def reduce_rows(
    Phi: Array, Y: Array, weight: Array | None, *, centred: bool
) -> tuple[Problem, Moments | None]:
    """The learning problem of rows in memory, in the coordinates of its features and outputs.

    Beside it the moments of the features and targets as they are, to which more rows can be added; None
    where there are more columns than rows, whose moments would be larger than the rows.
    """
    direct = reduce_centred_rows(Phi, Y, weight) if centred else None
    if direct is not None:
        wide = Phi.shape[1] > len(Y) or Y.shape[1] > len(Y) + 1
        return direct, None if wide else Moments.from_arrays(Phi, Y, weight)
    rows = compress_for_fit(Phi, Y, weight, centred=centred)
    moments = Moments.from_arrays(rows.Phi, rows.Y, weight)
    problem = reduce_moments(moments, centred=centred, rows=rows).restored(rows, moments)
    if rows.outputs is not None or Phi.shape[1] > len(Y):
        return problem, None
    if rows.features is not None:
        moments = Moments.from_arrays(Phi, Y, weight)
    return problem, moments


def reduce_centred_rows(
    Phi: Array,
    Y: Array,
    weight: Array | None,
    *,
    for_ascent: bool = True,
    every_output: bool = False,
) -> Problem | None:
    """What `reduce_moments` gives for a model with an intercept, from one decomposition of the rows.

    None for large tables, and for columns of very different lengths, whose short ones only moments keep.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    weight : ndarray of shape (n,) or None
    for_ascent : bool, default=True
        Without it the alignment has another unit, and outputs are in any basis of what features can reach:
        neither matters to a kernel in closed form.
    every_output : bool, default=False
        Keep the outputs as they are, unless far fewer would do: less work where no kernel is learned.

    Notes
    -----
    The singular value decomposition of the centred rows, times the roots of their weights, has the axes and
    the roots of ``scale``, without second moments, in which short axes are blurred. Where no axis is short,
    second moments of the fewer of rows and columns do, in half the time.

    Time n m min(n, m) + n m' p.
    """
    if max(Phi.size, Y.size) > LARGEST_ROTATED or len(Y) == 0:
        return None
    w = np.ones(len(Y)) if weight is None else weight
    total, root = float(w.sum()), np.sqrt(w)[:, None]
    if total == 0.0:
        return None
    (mean_phi, A), (mean_y, T) = (_centre(rows, w, total) for rows in (Phi, Y))
    A, T = root * A, root * T
    if not columns_are_alike(A):
        return None
    left, spread, features = _axes_of_rows(A, root[:, 0])
    scores = left.T @ T
    scatter = np.einsum("no,no->o", T, T)
    unit = np.sqrt(scatter)
    unit[unit == 0.0] = 1.0
    wide = Y.shape[1] > len(Y) + 1
    if every_output and Y.shape[1] <= 2 * len(scores):
        outputs = np.eye(Y.shape[1])
    else:
        outputs = _row_space(scores, unit, compressed=wide, principal=for_ascent)
    energy, V_norm = float(scatter.sum()), 1.0
    size = np.sqrt(energy) if energy > 0.0 else 1.0
    if for_ascent:
        T = T / size
        V_norm = float(np.linalg.norm(T @ T.T if len(T) < T.shape[1] else T.T @ T))
    reached = scores if is_identity(outputs) else scores @ outputs  # (m', k)
    whitened = Alignment(
        0.5,
        C=None,
        B=reached / size,
        q=reached / size,
        g=None,
        ones=outputs.sum(axis=0),
        norms=(V_norm, energy / size**2),
        n_outputs=Y.shape[1],
    )
    return Problem(
        centred=True,
        n_features=Phi.shape[1],
        n_outputs=Y.shape[1],
        features=features,
        outputs=outputs,
        scale=spread**2,
        targets=spread[:, None] * reached,
        whitened=whitened,
        mean_phi=mean_phi,
        mean_y=mean_y,
        n_samples=len(Y),
        weight=total,
        target_scatter=scatter,
    )


def _axes_of_rows(A: Array, root: Array) -> tuple[Array, Array, Array]:
    """Left axes (n, m'), lengths (m',) and right axes (m, m') of rows A (n, m), without those of no length.

    The longest come first: what follows keeps the digits of short axes behind long ones only.
    Of A times ``root`` (n,) from the left nothing is left but rounding.
    """
    wide = len(A) <= A.shape[1]
    if min(A.shape) >= _WORTH_SQUARING:
        squares = A @ A.T if wide else A.T @ A
        if _no_axis_is_short(squares, root if wide else None):
            values, vectors = np.linalg.eigh(squares)
            keep = np.flatnonzero(values > _SHORTEST_SQUARE * values[-1])[::-1]
            spread, vectors = np.sqrt(values[keep]), np.ascontiguousarray(vectors[:, keep])
            others = (A.T if wide else A) @ (vectors / spread)
            return (vectors, spread, others) if wide else (others, spread, vectors)
    left, spread, axes = svd(A, full_matrices=False)
    keep = spread > rank_tolerance(min(A.shape)) * spread[0]
    return left[:, keep], spread[keep], np.ascontiguousarray(axes[keep].T)


def _no_axis_is_short(squares: Array, null: Array | None) -> bool:
    """Whether eigenvalues of a psd matrix, but for that of the null vector, keep most of their digits."""
    own, size = squares, float(np.trace(squares)) / len(squares)
    if null is not None:
        own = squares + np.outer(size / float(null @ null) * null, null)
    factor, failed = dpotrf(own)
    return not failed and dpocon(factor, float(np.abs(own).sum(axis=0).max()))[0] > _SHORTEST_SQUARE


def _centre(rows: Array, weight: Array, total: float) -> tuple[Array, Array]:
    """Weighted mean of rows, and the rows less it, to rounding of their spread wherever they lie."""
    rows = np.asarray(rows, dtype=np.float64)
    # A row that counts, so that constant columns are exactly zero.
    first = rows[np.argmax(weight > 0.0)]
    mean = first + weight @ (rows - first) / total
    centred = rows - mean
    # The mean is rounded at its own size; what that leaves would be an axis of its own.
    left = weight @ centred / total
    return mean + left, centred - left


def _row_space(rows: Array, unit: Array, *, compressed: bool, principal: bool = True) -> Array:
    """Orthonormal basis (p, k) of the row space: the identity when it is everything, else principal axes.

    Rank is decided with every output in its own ``unit`` and every row at unit length, so that none is lost
    for being small. Any basis would do, but solvers may start from its axes, and the ``principal`` ones do
    not depend on the coordinates that rows were compressed to.
    """
    p = rows.shape[1]
    scaled = rows / unit
    length = np.linalg.norm(scaled, axis=1)
    scaled = scaled[length > 0.0] / length[length > 0.0, None]
    if scaled.size == 0:
        return np.zeros((p, 0))
    wide = len(scaled) < p
    values = eigvalsh(scaled @ scaled.T if wide else scaled.T @ scaled)
    if values[0] > _CLEARLY_POSITIVE * values[-1]:
        # Squares tell no small values from rounding, but that there is none.
        directions = scaled if wide else np.eye(p)
    else:
        _, values, directions = svd(scaled, full_matrices=False)
        directions = directions[values > rank_tolerance(max(rows.shape)) * values[0]]
    if len(directions) == p and not compressed:
        return np.eye(p)
    basis = np.asarray(qr((directions * unit).T, mode="economic")[0])
    return basis @ svd(rows @ basis, full_matrices=False)[2].T if principal else basis
