"""Marginal likelihood (evidence) of kernels, and the search for a width for every column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize
from sklearn.metrics.pairwise import euclidean_distances

from ..linalg import Array, Index, unique_columns
from ..threads import SMALL_MATRIX, one_thread
from .training_rows import distinct_rows

__all__ = [
    "COMMON",
    "SHAPES",
    "SPREADS",
    "WIDTHS",
    "Evidence",
    "PenalisedEvidence",
    "group_targets",
    "likelihood_slopes",
    "median_distance",
    "tune_kernel",
    "tune_widths",
]

# A group of targets: rows, weights, root of S, share of the targets.
Group = tuple[Index, Array, Array, float]

# Kernels of the scaled squared distance.
SHAPES = ("gaussian", "matern", "exponential")
# Bounds of the noise, in units of the variance of the targets.
NOISE_BOUNDS = (1e-6, 1e2)
# Bounds of the width, as factors of the median distance.
WIDTHS = (0.05, 50.0)
# With more groups of targets than this, only those with the most values count.
MOST_GROUPS = 16

# Parameters before those of single columns: logs of three weights, of the noise and of the common
# width.
COMMON = 5
# Tables with more columns than this get one width for all columns.
MOST_WIDTHS = 200
# Prior standard deviations of a log width about the common one that are compared.
SPREADS = (0.3, 1.0)
# Steps of a search, steps of a warm start, and the largest slope that ends a search.
MAX_ITER, WARM_ITER, TOL = 60, 5, 1e-4
# A larger spread is taken only if it raises the evidence by at least this much.
LEAST_RISE = 1e-3
# Prior standard deviations of the logs of the three weights, the noise and the common width. They
# are wide, and matter only if the likelihood hardly depends on a weight or a width.
_PRIOR_SPREAD = np.array([2.5, 2.5, 2.5, 6.0, 1.0])
# Bounds of the three weights.
_WEIGHTS = ((1e-5, 1e3), (1e-6, 1e2), (1e-8, 1e2))
# Bound of the log of a width over the common one.
_FARTHEST = 6.0
# Step of the finite differences of slopes, in log widths.
_STEP = 1e-3
# Noise of the second of two starts, as a share of the first.
_QUIET = 0.01
# Loss of a kernel matrix without a Cholesky factor: an infinite loss would end the search.
_NO_FACTOR = 1e10
# Squared distances below this are rounding.
_ALIKE = 1e-12


def median_distance(Z: Array) -> float:
    """Median distance between distinct rows, a width for a Gaussian kernel; one for a single row.

    Examples
    --------
    >>> import numpy as np
    >>> median_distance(np.array([[0.0], [1.0], [1.0], [3.0]]))
    2.0
    """
    distances = euclidean_distances(distinct_rows(Z))
    apart = distances[distances > 0.0]
    return float(np.median(apart)) if apart.size else 1.0


def thin_root(Y: Array) -> Array:
    """A matrix with the same Y Y^T that has no more columns than rows."""
    n, p = Y.shape
    if p <= n:
        return Y
    values, vectors = eigh(Y @ Y.T)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def group_targets(Y: Array, weight: Array) -> list[Group]:
    """Targets (n, p), NaN where missing, grouped by the rows where they are not missing.

    A group has its rows, their weights, a root of S = Y Y^T / p of its targets, and its share of
    the targets. Complete targets are one group.
    """
    present = ~np.isnan(Y)
    patterns, number = present[:, :1], np.zeros(Y.shape[1], dtype=np.intp)
    if not present.all():
        patterns, number = unique_columns(present)
    counts = np.bincount(number)
    values = patterns.sum(axis=0) * counts
    fullest = np.argsort(-values, kind="stable")[:MOST_GROUPS]
    fullest = fullest[values[fullest] > 0]
    groups = []
    for group in fullest:
        rows, members = np.flatnonzero(patterns[:, group]), Y[:, number == group]
        root = thin_root(members[rows] / np.sqrt(members.shape[1]))
        groups.append((rows, weight[rows], root, counts[group] / counts[fullest].sum()))
    return groups


def likelihood_slopes(
    groups: list[Group], K: Array, log_noise: float
) -> tuple[float, float, Array] | None:
    """-2 L of targets with a kernel matrix, its slope along the log of the noise, and M.

    None where a matrix has no Cholesky factor.

    Notes
    -----
    L is the mean over targets of the log marginal likelihood of y ~ N(0, A). The targets of a group
    enter through S = Y Y^T / p alone, so the time does not depend on their number. A row of weight
    w counts as w equal rows. With A = K + noise diag(1/w) and rows of total weight W

        -2 L = log|A| + tr(A^-1 S) + (W - n) log noise + n log 2 pi,   M = A^-1 - A^-1 S A^-1

    so that a change dA of the matrix changes -2 L by tr(M dA). Time n^3 for every group.
    """
    value, along_noise, M, noise = 0.0, 0.0, np.zeros_like(K), float(np.exp(log_noise))
    for rows, weight, root, share in groups:
        # Slices are views, much faster than lists of all rows.
        block = np.s_[:, :] if len(rows) == len(K) else np.ix_(rows, rows)
        A, extra = K[block].copy(), float(weight.sum()) - len(rows)
        A[np.diag_indices(len(rows))] += noise / weight
        factor, failed = dpotrf(A, lower=1, clean=1)
        if failed:
            return None
        log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
        # The lower triangle in Fortran order is the upper triangle in C order.
        half = dpotri(factor, lower=1)[0].T
        inverse = half + np.triu(half, 1).T
        solved = inverse @ root
        inner = inverse - solved @ solved.T
        constant = len(rows) * float(np.log(2.0 * np.pi)) + extra * log_noise
        value += share * (log_determinant + float(np.vdot(root, solved)) + constant)
        along_noise += share * (float(np.diag(inner) @ (noise / weight)) + extra)
        M[block] += share * inner
    return value, along_noise, M


@dataclass(frozen=True)
class Evidence:
    """A tuned kernel, the variance of the noise, and the log likelihood per target."""

    kernel: Any
    noise: float
    log_likelihood: float


def tune_kernel(
    kernel: Any,
    X: Array,
    Y: Array,
    weight: Array | None = None,
    *,
    noise: float = 0.1,
    max_iter: int = 100,
) -> Evidence:
    """Maximise the mean over targets of the log marginal likelihood of y ~ N(0, k + noise).

    Parameters
    ----------
    kernel : scikit-learn Gaussian-process kernel
        Where the search starts; its bounds are kept.
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, p)
        Targets about their means, NaN where one is missing.
    weight : ndarray of shape (n,), optional
        Positive; a row of weight w counts as w equal rows.
    noise : float, default=0.1
        Where the search for the variance of the noise starts.
    max_iter : int, default=100

    Notes
    -----
    `likelihood_slopes` has the likelihood and its slopes. Time of a step n^3.
    """
    groups = group_targets(Y, np.ones(len(X)) if weight is None else weight)

    def loss(theta: Array) -> tuple[float, Array]:
        K, slopes = kernel.clone_with_theta(theta[:-1])(X, eval_gradient=True)
        likelihood = likelihood_slopes(groups, K, float(theta[-1]))
        if likelihood is None:
            return np.inf, np.zeros_like(theta)
        value, along_noise, M = likelihood
        return 0.5 * value, 0.5 * np.append(np.tensordot(M, slopes, axes=2), along_noise)

    bounds = np.vstack([kernel.bounds, np.log([NOISE_BOUNDS])])
    start = np.clip(np.append(kernel.theta, np.log(noise)), *bounds.T)
    options = {"maxiter": max_iter, "ftol": 1e-10}
    with one_thread(len(X) <= SMALL_MATRIX):
        result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    # Rounded to fewer digits than the rows determine, so that rounding errors do not change the
    # optimum.
    theta = np.clip(np.round(result.x, 3), *bounds.T)
    return Evidence(kernel.clone_with_theta(theta[:-1]), float(np.exp(theta[-1])), -loss(theta)[0])


def shape_values(shape: str, D: Array) -> tuple[Array, Array]:
    """A kernel of the scaled squared distances, and minus its derivative."""
    if shape == "gaussian":
        value = np.exp(-0.5 * D)
        return value, 0.5 * value
    if shape == "matern":
        r = np.sqrt(5.0 * D)
        decay = np.exp(-r)
        return (1.0 + r + r**2 / 3.0) * decay, 5.0 / 6.0 * (1.0 + r) * decay
    # The square root makes rounding errors large, so distances of equal rows are set to zero first.
    r = np.sqrt(np.where(D > _ALIKE, D, 0.0))
    value = np.exp(-r)
    return value, np.divide(0.5 * value, r, out=np.zeros_like(r), where=r > 0.0)


class PenalisedEvidence:
    """Log marginal likelihood of c1 k(D) + c2 l + c3 b + noise, with penalties on its parameters.

    Columns are divided by their widths relative to the common one, exp(u_j). Then l is the inner
    product of two rows, D their squared distance over the square of the common width, and k the
    shape. The third kernel b is k l, whose slopes vary with the inputs, or with ``squares``
    l^2, products of two columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        With more than 200 columns there is one width, and X is replaced by at most n columns with
        the same distances and inner products.
    Y : ndarray of shape (n, p)
        Targets about their means; NaN where one is missing.
    weight : ndarray of shape (n,), optional
        Positive; a row of weight w counts as w equal rows.
    typical : float
        Where the prior of the common width is centred, such as the median distance between rows.
    shape : {"gaussian", "matern", "exponential"}
    squares : bool

    Notes
    -----
    With M of `likelihood_slopes`, let N and P be M times the slopes of A in -D and in l, entry by
    entry, and s the columns divided by exp(u). Then tr(M dA) is 2 sum_il N_il D_il along the log of
    the common width w, and along u_j, since dD = -2 (s_ij - s_lj)^2 / w^2 and dl = -2 s_ij s_lj,

        4 (N 1)^T s_j^2 / w^2 - s_j^T (4 N / w^2 + 2 P) s_j

    so that all columns take one product.

    ``prior`` has the logarithms of the weights, the noise and the common width at which the weak
    penalties are centred.

    Correlated targets carry less information than independent ones. ``n_effective`` is the
    participation ratio (tr S)^2 / ||S||_F^2, one where all targets are equal and p where they are
    uncorrelated; it multiplies L beside the penalty.

    Cost of a value and all its slopes: n^3 + n^2 (d + min(n, p)).
    """

    def __init__(
        self,
        X: Array,
        Y: Array,
        weight: Array | None,
        typical: float,
        shape: str = "gaussian",
        *,
        squares: bool = False,
    ) -> None:
        d = X.shape[1]
        self.n_columns, self.one_width = d, d > MOST_WIDTHS
        self.X = thin_root(X) if self.one_width else X
        self.shape, self.typical, self.squares = shape, typical, squares
        # Half of the variance from the shape, half from the linear part, and a tenth of noise.
        self.prior = np.log([0.5, 0.5 / d, 0.25 / d**2 if squares else 0.25 / d, 0.1, typical])
        weight = np.ones(len(X)) if weight is None else weight
        self.groups = group_targets(Y, weight)
        values = np.sqrt(weight)[:, None] * np.nan_to_num(Y)
        S = values @ values.T
        size = float(np.linalg.norm(S))
        self.n_effective = float(np.trace(S) / size) ** 2 if size > 0.0 else 1.0

    def likelihood(self, theta: Array) -> tuple[float, Array]:
        """Log likelihood per target, and slopes, at theta (5 + d,), or (5,) with one width."""
        c1, c2, c3, _, width = np.exp(theta[:COMMON])
        separate = len(theta) > COMMON and not self.one_width
        scaled = self.X * np.exp(-theta[COMMON:]) if separate else self.X
        linear = scaled @ scaled.T
        lengths = np.diag(linear)
        D = np.maximum(lengths[:, None] + lengths - 2.0 * linear, 0.0) / width**2
        K, fall = shape_values(self.shape, D)
        bend = (linear if self.squares else K) * linear
        A = c1 * K + c2 * linear + c3 * bend
        result = likelihood_slopes(self.groups, A, float(theta[3]))
        if result is None:
            return -np.inf, np.zeros_like(theta)
        value, along_noise, M = result
        if self.squares:
            N, P = M * (c1 * fall), M * (c2 + 2.0 * c3 * linear)
        else:
            N, P = M * fall * (c1 + c3 * linear), M * (c2 + c3 * K)
        slope = np.zeros_like(theta)
        slope[:COMMON] = (
            c1 * np.vdot(M, K),
            c2 * np.vdot(M, linear),
            c3 * np.vdot(M, bend),
            along_noise,
            2.0 * np.vdot(N, D),
        )
        if separate:
            both = (4.0 / width**2) * N + 2.0 * P
            apart = (4.0 / width**2) * (N.sum(axis=1) @ scaled**2)
            slope[COMMON:] = apart - np.einsum("ij,ij->j", scaled, both @ scaled)
        return -0.5 * value, -0.5 * slope

    def loss(self, theta: Array, spread: float) -> tuple[float, Array]:
        """The function that is minimised over theta (5 + d,) or (5,), and its slopes."""
        L, along = self.likelihood(theta)
        if not np.isfinite(L):
            return _NO_FACTOR, along
        slope = -self.n_effective * along
        away = (theta[:COMMON] - self.prior) / _PRIOR_SPREAD
        slope[:COMMON] += away / _PRIOR_SPREAD
        penalty = float(away @ away)
        if len(theta) > COMMON:
            apart = theta[COMMON:] / spread
            slope[COMMON:] += apart / spread
            penalty += float(apart @ apart)
        return -self.n_effective * L + 0.5 * penalty, slope

    def log_evidence(self, theta: Array, spread: float) -> float:
        """Laplace's approximation of the evidence of a spread, at its optimum.

        The log widths of columns are integrated over, with the curvature from finite differences of
        slopes along every column. A curvature below half of the prior's is replaced by that.

        Cost: d times that of a value.
        """
        if spread == 0.0:
            return -self.loss(theta[:COMMON], spread)[0]
        value, slope = self.loss(theta, spread)
        H = np.empty((len(theta) - COMMON, len(theta) - COMMON))
        for column in range(len(H)):
            near = theta.copy()
            near[COMMON + column] += _STEP
            H[column] = (self.loss(near, spread)[1] - slope)[COMMON:] / _STEP
        curvature = np.maximum(np.linalg.eigvalsh(0.5 * (H + H.T)) * spread**2, 0.5)
        return -value - 0.5 * float(np.log(curvature).sum())

    def best_optimum(self, start: Array | None, spread: float, tol: float = TOL) -> Array:
        """The optimum from a start; without one, the better of two, from much and little noise.

        If targets are nearly exact there are two optima, one with noise and one without, and
        rounding would decide which of them a single search ends in.
        """
        if start is not None:
            return self.optimum(start, spread, tol, WARM_ITER)
        noisy = np.append(self.prior, np.zeros(self.n_columns))
        quiet = noisy.copy()
        quiet[3] += np.log(_QUIET)
        noisy, quiet = self.optimum(noisy, spread, tol), self.optimum(quiet, spread, tol)
        spread = spread or 1.0
        return noisy if self.loss(noisy, spread)[0] <= self.loss(quiet, spread)[0] else quiet

    def optimum(
        self, start: Array, spread: float, tol: float = TOL, max_iter: int = MAX_ITER
    ) -> Array:
        """Theta (5 + d,) of least loss; with a spread of zero there is one width."""
        widths = (WIDTHS[0] * self.typical, WIDTHS[1] * self.typical)
        limits = np.log([*_WEIGHTS, NOISE_BOUNDS, widths])
        bounds = np.vstack([limits, np.full((len(start) - COMMON, 2), [-_FARTHEST, _FARTHEST])])
        free = len(start) if spread > 0.0 and not self.one_width else COMMON
        result = minimize(
            self.loss,
            np.clip(start, *bounds.T)[:free],
            args=(spread,),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds[:free],
            options={"maxiter": max_iter, "ftol": 0.0, "gtol": tol},
        )
        theta = np.zeros(len(start))
        # Rounded to fewer digits than the rows determine, so that rounding errors do not change the
        # optimum.
        theta[:free] = np.round(result.x, 2)
        return np.asarray(np.clip(theta, *bounds.T))


def tune_widths(
    evidence: PenalisedEvidence, start: Array | None = None, spread: float | None = None
) -> tuple[Array, float, float]:
    """Maximise the penalised evidence over all widths, and over the spread if none is given.

    Parameters
    ----------
    evidence : PenalisedEvidence
    start : ndarray of shape (5 + d,), optional
        A theta as returned. If None, the search starts twice, with much and with little noise.
    spread : float, optional
        0 is one width for all columns. If None, the search starts there and goes on to larger
        spreads, each from the optimum of the last, until the evidence falls.

    Returns
    -------
    theta : ndarray of shape (5 + d,)
        Logarithms of the three weights, of the noise and of the common width, and for every column
        the log of its width over the common one.
    spread : float
        Prior standard deviation of the log widths about the common one; 0 for one width.
    log_likelihood : float
        Per target.

    Notes
    -----
    The penalty is sum_j u_j^2 / (2 spread^2) for the log width u_j of column j over the common one.
    As the spread goes to zero its evidence goes to that of one width. The weights, the noise and
    the common width have weak penalties too, so that the first kernel does not vanish where rows
    fit as well with a small weight as with none, and there is one optimum where rows are so far
    apart that every width is too small.
    """
    with one_thread(len(evidence.X) <= SMALL_MATRIX):
        if spread is not None or evidence.one_width:
            spread = 0.0 if evidence.one_width else float(spread or 0.0)
            best = evidence.best_optimum(start, spread)
            return best, spread, evidence.likelihood(best)[0]
        theta = best = evidence.best_optimum(start, 0.0)
        spread, highest = 0.0, evidence.log_evidence(theta, 0.0)
        for wider in SPREADS:
            theta = evidence.optimum(theta, wider)
            reached = evidence.log_evidence(theta, wider)
            if reached <= highest + LEAST_RISE:
                break
            best, spread, highest = theta, wider, reached
        return best, spread, evidence.likelihood(best)[0]
