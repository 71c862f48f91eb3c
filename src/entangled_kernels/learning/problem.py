"""The learning problem in the smallest coordinates in which it can be solved exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigvalsh, qr, svd
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpocon, dpotrf

from ..linalg import Array, Index, principal_axes, rank_tolerance
from .alignment import Alignment
from .missing import complete_moments
from .moments import Moments

if TYPE_CHECKING:
    from .ridge import LearnedKernel

__all__ = [
    "LARGEST_ROTATED",
    "CompressedRows",
    "OutputSubspace",
    "Problem",
    "columns_are_alike",
    "compress_for_fit",
    "compress_rows",
    "reduce_centred_rows",
    "reduce_moments",
    "reduce_rows",
    "rotate_to_axes",
    "subspace_is_small",
]

# Tables of more numbers than this are not rotated to their principal axes.
LARGEST_ROTATED = 2**22
# Axes shorter than this share of the longest are worth the rotation.
_SHORT = 1e-3
# Blocks of targets hold about this many numbers.
_BLOCK_NUMBERS = 2**24
# Share of the largest squared singular value that is far above the rounding of squares.
_CLEARLY_POSITIVE = 1e-8
# Second moments replace rows of at least this size, where the reciprocal of their condition, and so
# the share of the shortest axis in the squared length of the longest, is above the second number.
_WORTH_SQUARING, _SHORTEST_SQUARE = 64, 1e-5
# Targets whose units differ by more than this factor get a basis that keeps the digits of the small
# ones.
_GRADED_UNITS = 1e6


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
        Orthonormal basis of the range of the features' second moments.
    outputs : ndarray of shape (p, k)
        Orthonormal basis of the outputs that the features explain.
    scale : ndarray of shape (m',)
        The features' second moments in these coordinates, positive: their matrix is diag(scale).
    targets : ndarray of shape (m', k)
        Second moments of features with targets.
    whitened : Alignment
        The objective as a function of sqrt(scale) * Q, where the features' second moments are the
        identity.
    mean_phi, mean_y : ndarray of shape (m,) and (p,)
        Means of the columns about which everything is taken; zero without an intercept.
    n_samples, weight : int and float
        Number of rows and their total weight.
    target_scatter : ndarray of shape (p,)
        Second moment of each target.
    missing : Moments or None
        Where targets are missing: moments of the rows that have each target, of the features in
        reduced coordinates. Everything else is then about rows whose missing targets were filled in
        (`complete_moments`); the kernel is learned from those, and the ridge problem is that of the
        targets that are present.
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
    missing: Moments | None = None

    @property
    def full_rank(self) -> int:
        """Largest Kraus rank that can matter, m' * k."""
        return self.targets.size

    def alignment_terms(self, kernel: LearnedKernel) -> tuple[float, float]:
        """Partial-trace and full alignment of a kernel in reduced coordinates."""
        root = np.sqrt(self.scale)
        return self.whitened.terms(
            root[:, None, None] * kernel.Q, root[:, None] * kernel.metric() * root
        )

    def shrink_and_scale(self, kernel: LearnedKernel, shrinkage: float) -> LearnedKernel:
        """The kernel shrinkage * I / (m p) + (1 - shrinkage) * D, for a learned D of trace one, scaled.

        The trace of its training Gram matrix is that of the plain kernel.
        """
        identity, share = shrinkage / (self.n_features * self.n_outputs), 1.0 - shrinkage
        total = self.n_outputs * float(self.scale.sum())
        # Trace of the training Gram matrix, tr((diag(scale) kron I_p) D).
        trace = (identity + share * kernel.identity) * total
        L_trace = self.n_outputs * float(np.einsum("f,fl,fl->", self.scale, kernel.L, kernel.L))
        trace += share * (L_trace + float(np.einsum("f,fkr,fkr->", self.scale, kernel.Q, kernel.Q)))
        factor = total / trace if trace > 0.0 else 1.0
        return kernel.mixed(factor * identity, factor * share)

    @property
    def target_weight(self) -> Array:
        """Total weight of the rows that have each target, (p,)."""
        if self.missing is None:
            return np.full(self.n_outputs, self.weight)
        return self.missing.target_weight

    def squared_residuals(self, coef: Array) -> tuple[Array, Array]:
        """Weighted sum of squared residuals of each target (p,), and number of rows that have it (p,).

        For coefficients (m', k), or (m', p) with missing targets.
        """
        if self.missing is not None:
            squares, n_samples = np.empty(self.n_outputs), np.empty(self.n_outputs)
            for columns, group in self.missing.groups:
                C, B, V = group.second_moments(centred=self.centred)
                theta, total = coef[:, columns], np.diag(V)
                gained = np.sum(theta * (2.0 * B - C @ theta), axis=0)
                squares[columns] = np.maximum(total - gained, np.finfo(float).eps * total)
                n_samples[columns] = group.n_samples
            return squares, n_samples
        explained = coef.T @ (2.0 * self.targets - self.scale[:, None] * coef)  # (k, k)
        gained = np.einsum("ok,kl,ol->o", self.outputs, explained, self.outputs, optimize=True)
        rounding = np.finfo(float).eps * self.target_scatter
        squares = np.maximum(self.target_scatter - gained, rounding)
        return squares, np.full(self.n_outputs, self.n_samples)

    def expand_kraus(self, Q: Array) -> Array:
        """Kraus operators (r, p, m) of the original features and outputs."""
        kraus = self.outputs @ Q.transpose(2, 1, 0) @ self.features.T  # (r, p, m)
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
    moments: Moments, *, centred: bool, rows: CompressedRows | None = None
) -> Problem:
    """Rotate features to the range of their second moments, outputs to those that the features explain.

    Parameters
    ----------
    moments : Moments
        Missing targets are filled in by `complete_moments`; the problem holds the moments of those
        present.
    centred : bool
        Whether the model has an intercept: then everything is about the mean of each column.
    rows : CompressedRows, optional
        Where the moments are those of compressed rows; the problem is in coordinates of the rows
        before compression.

    Notes
    -----
    With C = F diag(scale) F^T the second moments of the features and B those with the targets, the
    optimum of the alignment and every ridge solution lie in range(C) kron rowspace(B). Without an
    intercept the output space also takes in the mean of the targets and the vector of ones, which
    the paper's centring brings in; kernels are then sought on that space.

    Time m^3 + m^2 p, once.
    """
    complete = moments if moments.complete else complete_moments(moments, centred=centred)
    features_in, outputs_in = (None, None) if rows is None else (rows.features, rows.outputs)
    m = complete.n_features if features_in is None else len(features_in)
    p = complete.n_outputs if outputs_in is None else len(outputs_in)
    ones = np.ones(p) if outputs_in is None else outputs_in.sum(axis=0)
    working = complete.second_moments(centred=centred)

    scale, features = principal_axes(
        complete.C, None if centred else np.sqrt(complete.weight) * complete.mean_phi
    )
    targets = features.T @ working.B  # (m', p)

    unit = np.sqrt(np.diag(working.V))
    unit[unit == 0.0] = 1.0
    spanning = targets / np.sqrt(scale)[:, None]
    # The vector of ones would hide targets in small units.
    ones_apart = not centred and outputs_in is None and _are_graded(unit)
    if not centred:
        spanning = np.vstack([spanning, np.sqrt(complete.weight) * complete.mean_y])
        if not ones_apart:
            length = np.sqrt(np.trace(working.V) / p)
            spanning = np.vstack([spanning, length * ones])
    basis = None
    # Rotating a basis that keeps the digits of small units would mix them with those of large ones.
    if rows is None or not rows.graded:
        basis = _row_space(spanning, unit, compressed=outputs_in is not None)
    outputs = np.eye(complete.n_outputs) if basis is None else basis
    targets = targets @ outputs
    if ones_apart:
        outputs = _append_ones(outputs)
        targets = _pad_columns(targets, outputs.shape[1])

    norms = None if rows is None else rows.norms
    objective = Alignment.from_moments(
        complete, centred=centred, ones=ones, n_outputs=p, norms=norms
    )
    whitened = objective.transformed(features / np.sqrt(scale), outputs, whitened=centred)

    mean_phi = complete.mean_phi if centred else np.zeros(complete.n_features)
    mean_y = complete.mean_y if centred else np.zeros(complete.n_outputs)
    target_scatter, basis, offset = np.diag(working.V), features, np.zeros(features.shape[1])
    # Bases and means of the rows before compression.
    if rows is not None and rows.features is not None:
        offset = rows.first_phi @ rows.features @ basis
        features = rows.features @ basis
        mean_phi = mean_phi @ rows.features.T + rows.first_phi
    if rows is not None and rows.outputs is not None:
        target_scatter = np.einsum("ok,ok->o", rows.outputs @ working.V, rows.outputs)
        if rows.target_scatter is not None:
            target_scatter = rows.target_scatter
        outputs = rows.outputs @ outputs
        mean_y = mean_y @ rows.outputs.T + rows.first_y
    return Problem(
        centred=centred,
        n_features=m,
        n_outputs=p,
        features=features,
        outputs=outputs,
        scale=scale,
        targets=targets,
        whitened=whitened,
        mean_phi=mean_phi,
        mean_y=mean_y,
        n_samples=complete.n_samples,
        weight=complete.weight,
        target_scatter=target_scatter,
        missing=None if moments.complete else moments.rotated(basis, offset),
    )


def reduce_rows(
    Phi: Array, Y: Array, weight: Array | None, *, centred: bool
) -> tuple[Problem, Moments | None]:
    """The learning problem of rows in memory, in the coordinates of its features and outputs.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
        NaN is a missing target.
    weight : ndarray of shape (n,) or (n, p) or None
        Weights of rows, or of each target of each row; a target of weight zero is missing.
    centred : bool
        Whether the model has an intercept.

    Returns
    -------
    problem : Problem
    moments : Moments or None
        Moments of the features and targets as they are, to which more rows can be added; None where
        there are more columns than rows, whose moments would be larger than the rows.
    """
    wide = Phi.shape[1] > len(Y)
    if (weight is not None and weight.ndim == 2) or np.isnan(Y).any():
        weights = np.where(np.isnan(Y), 0.0, 1.0 if weight is None else weight.reshape(len(Y), -1))
        # The targets are not compressed: each one has rows of its own.
        rows = compress_rows(Phi, np.zeros((len(Phi), 1)), centred=centred)
        rows = rotate_to_axes(rows, weights.max(axis=1), centred=centred)
        moments = Moments.from_arrays(rows.Phi, Y, weights)
        problem = reduce_moments(moments, centred=centred, rows=rows)
        if wide:
            return problem, None
        return problem, moments if rows.features is None else Moments.from_arrays(Phi, Y, weights)
    direct = reduce_centred_rows(Phi, Y, weight) if centred else None
    if direct is not None:
        wide = wide or Y.shape[1] > len(Y) + 1
        return direct, None if wide else Moments.from_arrays(Phi, Y, weight)
    rows = compress_for_fit(Phi, Y, weight, centred=centred)
    moments = Moments.from_arrays(rows.Phi, rows.Y, weight)
    problem = reduce_moments(moments, centred=centred, rows=rows)
    if wide or rows.outputs is not None:
        return problem, None
    return problem, moments if rows.features is None else Moments.from_arrays(Phi, Y, weight)


def reduce_centred_rows(
    Phi: Array,
    Y: Array,
    weight: Array | None,
    *,
    for_ascent: bool = True,
    every_output: bool = False,
) -> Problem | None:
    """The result of `reduce_moments` for a model with an intercept, from one decomposition of the rows.

    None for large tables, and where the lengths of columns differ so much that only moments keep
    the short ones.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    weight : ndarray of shape (n,) or None
    for_ascent : bool, default=True
        Without it the alignment has another unit, and outputs are in any basis of those that the
        features explain: neither matters to a kernel in closed form.
    every_output : bool, default=False
        Do not rotate the outputs, unless they are more than twice as many as axes: less work where
        no kernel is learned.

    Notes
    -----
    The singular value decomposition of the centred rows, times the roots of their weights, has the
    axes and the roots of ``scale``, without second moments, in which short axes are blurred. Where
    no axis is short, second moments of the fewer of rows and columns do, in half the time.

    Time n m min(n, m) + n m' p.
    """
    if max(Phi.size, Y.size) > LARGEST_ROTATED or len(Y) == 0:
        return None
    w = np.ones(len(Y)) if weight is None else weight
    total, root = float(w.sum()), np.sqrt(w)[:, None]
    if total == 0.0:
        return None
    mean_phi, A = _centre(Phi, w, total)
    mean_y, T = _centre(Y, w, total)
    A, T = root * A, root * T
    if not columns_are_alike(A):
        return None
    left, spread, features = _axes_of_rows(A, root[:, 0])
    scores = left.T @ T
    scatter = np.einsum("no,no->o", T, T)
    unit = np.sqrt(scatter)
    unit[unit == 0.0] = 1.0
    if every_output and Y.shape[1] <= 2 * len(scores):
        outputs: Array | None = None
    else:
        outputs = _row_space(scores, unit, principal=for_ascent)
    energy, V_norm = float(scatter.sum()), 1.0
    size = np.sqrt(energy) if energy > 0.0 else 1.0
    if for_ascent:
        T = T / size
        V_norm = float(np.linalg.norm(T @ T.T if len(T) < T.shape[1] else T.T @ T))
    reached = scores if outputs is None else scores @ outputs  # (m', k)
    outputs = np.eye(Y.shape[1]) if outputs is None else outputs
    whitened = Alignment(
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
    """Left axes (n, m'), lengths (m',) and right axes (m, m') of rows A (n, m), without those of length zero.

    The longest come first, since decompositions that follow keep the digits of short axes only
    behind long ones. ``root`` (n,) is a null vector: root @ A is zero up to rounding.
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
    """Whether all eigenvalues of a psd matrix, except that of a null vector, are far above rounding."""
    if null is not None:
        size = float(np.trace(squares)) / len(squares)
        squares = squares + np.outer(size / float(null @ null) * null, null)
    factor, failed = dpotrf(squares)
    norm = float(np.abs(squares).sum(axis=0).max())
    return not failed and dpocon(factor, norm)[0] > _SHORTEST_SQUARE


def _centre(rows: Array, weight: Array, total: float) -> tuple[Array, Array]:
    """Weighted mean of rows, and the rows less it, to rounding of their spread wherever they lie."""
    rows = np.asarray(rows, dtype=np.float64)
    # A row that counts, so that constant columns are exactly zero.
    first = rows[np.argmax(weight > 0.0)]
    mean = first + weight @ (rows - first) / total
    centred = rows - mean
    # The mean is rounded relative to its size; the remaining mean would add an axis.
    left = weight @ centred / total
    return mean + left, centred - left


def _row_space(
    rows: Array, unit: Array, *, compressed: bool = False, principal: bool = True
) -> Array | None:
    """Orthonormal basis (p, k) of the row space, by default the principal axes; None if it is everything.

    The rank is that of outputs in their ``unit`` and rows of unit length, so that small outputs and
    rows count too. Any basis would do, but solvers may start from its axes, and the ``principal``
    ones do not depend on the coordinates that rows were ``compressed`` to.

    Where units are very different, the basis is a QR factor of the rows from the largest unit to
    the smallest with column pivoting: that is accurate to rounding of each target's unit, while
    principal axes are accurate to rounding of the largest.
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
        # Squares of singular values are enough to see that none is small.
        directions = scaled if wide else np.eye(p)
    else:
        _, values, directions = svd(scaled, full_matrices=False)
        directions = directions[values > rank_tolerance(max(rows.shape)) * values[0]]
    if len(directions) == p and not compressed:
        return None
    if not compressed and _are_graded(unit):
        return _graded_basis(directions * unit, unit)
    basis = np.asarray(qr((directions * unit).T, mode="economic")[0])
    return basis @ svd(rows @ basis, full_matrices=False)[2].T if principal else basis


def _are_graded(unit: Array) -> bool:
    """Whether targets have units so different that principal axes lose the digits of the small ones."""
    unit = unit[unit > 0.0]
    return len(unit) > 0 and bool(unit.max() > _GRADED_UNITS * unit.min())


def _graded_basis(rows: Array, unit: Array) -> Array:
    """Orthonormal basis (p, k) of the span of rows (k, p), accurate to rounding of each target's unit."""
    order = np.argsort(-unit, kind="stable")
    basis = np.empty((rows.shape[1], min(rows.shape)))
    basis[order] = qr(rows.T[order], mode="economic", pivoting=True)[0]
    return basis


def _append_ones(basis: Array) -> Array:
    """The basis (p, k) of targets with one more vector, the part of the ones outside of its span."""
    ones = np.ones(len(basis))
    for _ in range(2):  # once leaves rounding of the part inside
        ones = ones - basis @ (basis.T @ ones)
    length = float(np.linalg.norm(ones))
    if length <= np.sqrt(len(basis) * np.finfo(float).eps):
        return basis
    return np.column_stack([basis, ones / length])


def _pad_columns(targets: Array, width: int) -> Array:
    """Targets in a basis that `_append_ones` made wider: they have nothing along its last vector."""
    return np.pad(targets, ((0, 0), (0, width - targets.shape[1])))


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Rows in orthonormal bases of few columns; a basis of None changes nothing.

    The original features are ``first_phi + Phi @ features.T`` and the targets ``first_y + Y @
    outputs.T``, except where ``outputs`` is the basis of an `OutputSubspace`: it holds only a
    projection of the targets. Then ``norms``, the norm and the trace of the targets' scatter V, and
    ``target_scatter``, the diagonal of V, say what the projection has lost. With ``graded`` the units
    of the targets are very different, and ``outputs`` keeps the digits of the small ones.
    """

    Phi: Array
    Y: Array
    features: Array | None
    outputs: Array | None
    first_phi: Array
    first_y: Array
    norms: tuple[float, float] | None = None
    target_scatter: Array | None = None
    graded: bool = False


def compress_for_fit(
    Phi: Array, Y: Array, weight: Array | None, *, centred: bool
) -> CompressedRows:
    """Rows in as few columns as a fit on all of them needs."""
    everything = np.arange(len(Y))
    if not centred or not subspace_is_small(Phi.shape[1], Y.shape[1], [everything], len(Y)):
        return rotate_to_axes(compress_rows(Phi, Y, centred=centred), weight, centred=centred)
    subspace = OutputSubspace(Phi, Y, weight, [everything])
    mean = subspace.weight @ Y / subspace.weight.sum()
    return replace(
        rotate_to_axes(subspace.rows, weight, centred=centred),
        norms=subspace.norms(everything),
        target_scatter=subspace.squares(everything, mean),
    )


def compress_rows(Phi: Array, Y: Array, *, centred: bool) -> CompressedRows:
    """Rotate wide tables so that neither has more columns than are needed to hold its n rows exactly.

    Where the mean does not matter, rows are taken relative to the first one, which makes constant
    columns exactly zero. Where it does, the basis of the outputs also spans the vector of ones,
    which the paper's centring of the whole Gram matrix singles out.

    Time n^2 (m + p), memory n (m + p); nothing of size m^2 or p^2 is formed when m, p > n.
    """
    n, features, outputs = len(Phi), None, None
    first_phi, first_y = np.zeros(Phi.shape[1]), np.zeros(Y.shape[1])
    if Phi.shape[1] > n:
        if centred:
            first_phi = np.asarray(Phi[0], dtype=np.float64)
        features, triangle = qr((Phi - first_phi).T, mode="economic")
        Phi = triangle.T
    graded = False
    if Y.shape[1] > n + 1:
        if centred:
            first_y = np.asarray(Y[0], dtype=np.float64)
        shifted, unit = Y - first_y, np.linalg.norm(Y - first_y, axis=0)
        graded = _are_graded(unit)
        if graded:
            outputs = _graded_basis(shifted, unit)
            Y = shifted @ outputs
            if not centred:
                outputs = _append_ones(outputs)
                Y = _pad_columns(Y, outputs.shape[1])
        else:
            last = np.zeros_like(first_y) if centred else np.ones_like(first_y)
            outputs, triangle = qr(np.vstack([shifted, last]).T, mode="economic")
            Y = triangle.T[:n]
    return CompressedRows(Phi, Y, features, outputs, first_phi, first_y, graded=graded)


def rotate_to_axes(
    rows: CompressedRows, weight: Array | None = None, *, centred: bool
) -> CompressedRows:
    """Rotate features to their principal axes, where these are of very different lengths.

    Second moments are exact to rounding of the product of two columns' lengths. In most coordinates
    that is rounding of the longest axis, squared, which blurs all axes more than seven digits
    shorter; kernels with a fast decay have many, and a small alpha sees them. Along the axes each
    one keeps its own rounding. Axes too short to be told from zero in the rows themselves are left
    out. Original columns that differ that much already are left as they are, and so are large
    tables. Rows of zero weight do not count.

    Time n m^2.
    """
    m = rows.Phi.shape[1]
    if rows.Phi.size > LARGEST_ROTATED or m < 2:
        return rows
    Phi = np.asarray(rows.Phi, dtype=np.float64)
    counted = Phi if weight is None else Phi[weight > 0.0]
    centre = np.zeros(m)
    if centred and len(counted) > 0:
        # Relative to a row, so that constant columns are exactly zero.
        centre = counted[0] + np.mean(counted - counted[0], axis=0)
    counted = counted - centre
    if not counted.any() or (rows.features is None and not columns_are_alike(counted)):
        return rows
    _, spread, axes = svd(qr(counted, mode="r")[0][:m], full_matrices=False)
    keep = spread > rank_tolerance(m) * spread[0]
    if spread[keep][-1] >= _SHORT * spread[0]:
        return rows
    axes = axes[keep].T
    features, first_phi = axes, centre
    if rows.features is not None:
        features, first_phi = rows.features @ axes, rows.first_phi + rows.features @ centre
    return replace(rows, Phi=(Phi - centre) @ axes, features=features, first_phi=first_phi)


def columns_are_alike(rows: Array) -> bool:
    """Whether a column is not zero, and the lengths of all that are not differ by less than a thousand."""
    lengths = np.linalg.norm(rows, axis=0)
    longest = lengths.max(initial=0.0)
    return bool(longest > 0.0 and not np.any((lengths > 0.0) & (lengths < _SHORT * longest)))


def subspace_is_small(n_features: int, n_outputs: int, parts: Sequence[Index], n: int) -> bool:
    """Whether an `OutputSubspace` is far smaller than the rows, which are fewer than the outputs."""
    dimension = sum(min(len(part), n_features + 1) for part in parts)
    return n_outputs > n + 1 and n_features < n and 2 * dimension < n


class OutputSubspace:
    """The subspace of very many outputs in which ridge solutions lie, and the rows projected on it.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    weight : ndarray of shape (n,) or None
    parts : list of index arrays
        Moments are to be taken of these rows, and of unions of them.

    Attributes
    ----------
    rows : CompressedRows
        Moments of a part, or of a union of parts, have the right means, C and B. Their scatter V of
        the targets lacks the part outside of the subspace; `squares` and `norms` include it.

    Notes
    -----
    With w the weights of a part and P an orthonormal basis (n_part, m + 1) of the columns of w [1,
    Phi], the mean of its targets and every row of its B are combinations of the rows of P^T Y. An
    orthonormal basis R (p, q) of all those rows, q = (m + 1) times the number of parts, then holds
    all that a ridge solution can use. With an intercept nothing else of V is needed than its
    diagonal, and its norm for the alignment, which is that of the Gram matrix (n, n) of the
    targets.

    Time n p q + p q^2, and n^2 p for the norm; memory q p beside the targets. Compressing all rows
    takes time n^2 p several times over, and n p memory.
    """

    def __init__(self, Phi: Array, Y: Array, weight: Array | None, parts: Sequence[Index]) -> None:
        self.Y, self.weight = Y, np.ones(len(Y)) if weight is None else weight
        self.first = np.asarray(Y[0], dtype=np.float64)
        spanning = []
        for part in parts:
            design = np.hstack([np.ones((len(part), 1)), Phi[part]]) * self.weight[part, None]
            basis = qr(design, mode="economic")[0].T  # (m + 1, rows of the part)
            spanning.append(sum(basis[:, block] @ targets for block, targets in self._blocks(part)))
        stacked = np.vstack(spanning)  # (q, p)
        del spanning
        unit = np.linalg.norm(stacked, axis=0)
        graded = _are_graded(unit)
        if graded:
            outputs = _graded_basis(stacked, unit)  # (p, q)
        else:
            outputs = qr(stacked.T, mode="economic", overwrite_a=True)[0]
        projected = np.empty((len(Y), outputs.shape[1]))
        for block, targets in self._blocks(np.arange(len(Y))):
            projected[block] = targets @ outputs
        zero = np.zeros(Phi.shape[1])
        self.rows = CompressedRows(Phi, projected, None, outputs, zero, self.first, graded=graded)

    def _blocks(self, index: Index) -> Iterator[tuple[slice, Array]]:
        """Targets of some rows, relative to the first of all, a block at a time."""
        height = max(1, _BLOCK_NUMBERS // self.Y.shape[1])
        for start in range(0, len(index), height):
            block = slice(start, min(start + height, len(index)))
            yield block, self.Y[index[block]] - self.first

    def squares(self, index: Index, centre: Array) -> Array:
        """Weighted sum of squares of each target about ``centre`` over some rows, (p,)."""
        total = np.zeros(self.Y.shape[1])
        for block, targets in self._blocks(index):
            targets -= centre - self.first
            total += self.weight[index[block]] @ np.square(targets, out=targets)
        return total

    def norms(self, index: Index) -> tuple[float, float]:
        """Norm and trace of the targets' scatter V of some rows."""
        weight = self.weight[index]
        share = weight / weight.sum()
        gram = self._gram[np.ix_(index, index)]
        towards = gram @ share
        gram = gram - towards - towards[:, None] + float(share @ towards)
        gram *= np.sqrt(np.outer(weight, weight))
        return float(np.linalg.norm(gram)), float(np.trace(gram))

    @cached_property
    def _gram(self) -> Array:
        """Inner products of the rows of targets, (n, n), relative to the first."""
        n, p = self.Y.shape
        gram = np.zeros((n, n), order="F")
        width = max(1, _BLOCK_NUMBERS // n)
        for start in range(0, p, width):
            columns = self.Y[:, start : start + width] - self.first[start : start + width]
            gram = dsyrk(1.0, columns.T, trans=1, beta=1.0, c=gram, overwrite_c=1)
        return np.triu(gram) + np.triu(gram, 1).T
