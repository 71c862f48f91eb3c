"""A width for every column by penalised evidence, with the strength of the penalty by evidence too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from ..linalg import Array
from ..threads import SMALL_MATRIX, one_thread
from .evidence import NOISE_BOUNDS, thin_root
from .kernel_features import WIDTHS

__all__ = ["COMMON", "SHAPES", "SPREADS", "PenalisedEvidence", "WidthSearch", "tune_widths"]

# Parameters before those of single columns: logs of three weights, of the noise and of the common width.
COMMON = 5

# Prior standard deviations of a log width about the common one that are compared.
SPREADS = (0.1, 0.3, 0.6, 1.0, 2.0)
# Of the search: steps, and the largest slope that ends it.
MAX_ITER, TOL = 100, 1e-4
# A spread must have more evidence than the one before by so much.
LEAST_RISE = 1e-3
# Prior standard deviations of the logs of the three weights, the noise and the common width, about values
# that would be no surprise: weak, but where rows cannot tell a small weight from none, or all widths are as
# good, they say what to take.
_PRIOR_SPREAD = np.array([2.5, 2.5, 2.5, 6.0, 1.0])
# What the weights may be.
_WEIGHTS = ((1e-5, 1e3), (1e-6, 1e2), (1e-8, 1e2))
# Factors by which a width may leave the common one, as a logarithm.
_FARTHEST = 6.0
# Step of the differences of slopes, in log widths.
_STEP = 1e-3
# Noise of the second of two starts, as a share of the first.
_QUIET = 0.01
# Loss of a kernel matrix that has no factor: one that is not finite would end the search.
_NO_FACTOR = 1e10
# Squared distances below this are rounding.
_ALIKE = 1e-12
# Ways in which blanks lie in columns of targets that are told apart; those with the most cells count.
_PATTERNS = 16


def _gaussian(D: Array) -> tuple[Array, Array]:
    value = np.exp(-0.5 * D)
    return value, 0.5 * value


def _matern(D: Array) -> tuple[Array, Array]:
    r = np.sqrt(5.0 * D)
    decay = np.exp(-r)
    return (1.0 + r + r**2 / 3.0) * decay, 5.0 / 6.0 * (1.0 + r) * decay


def _exponential(D: Array) -> tuple[Array, Array]:
    # The root of a rounding is no rounding; rows alike stay alike, whatever the widths are.
    r = np.sqrt(np.where(D > _ALIKE, D, 0.0))
    value = np.exp(-r)
    return value, np.divide(0.5 * value, r, out=np.zeros_like(r), where=r > 0.0)


# Kernels of the scaled squared distance: the value, and minus its derivative.
SHAPES = {"gaussian": _gaussian, "matern": _matern, "exponential": _exponential}


@dataclass(frozen=True, eq=False)
class WidthSearch:
    """What a search has found.

    Attributes
    ----------
    theta : ndarray of shape (5 + d,)
        Logarithms of the three weights, of the noise and of the common width, and what is to be added to the
        last for every column.
    spread : float
        Prior standard deviation of the additions; 0 where one width is best.
    log_likelihood : float
        Per output.
    """

    theta: Array
    spread: float
    log_likelihood: float


class PenalisedEvidence:
    """Log marginal likelihood of c1 k(D) + c2 l + c3 b + noise.

    With columns divided by widths of their own about one, exp(u_j), l is the inner product of two rows, D
    their squared distance over the square of the common width, k the shape, and b bends what is linear: k l,
    whose slopes vary from place to place, or with ``squares`` l^2, products of two columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, p)
        Targets about their means; NaN where one is blank.
    weight : ndarray of shape (n,), optional
        Positive; a row of weight w counts as w rows alike.
    typical : float
        A width that would be no surprise, such as the median distance between rows.
    shape : {"gaussian", "matern", "exponential"}
    squares : bool

    Notes
    -----
    The outputs enter through S = Y Y^T / p alone. With A = K + noise diag(1/w), rows of total weight W, and
    the slope M = A^-1 - A^-1 S A^-1, up to a constant

        -2 L = log|A| + tr(A^-1 S) + (W - n) log noise,   dA -> tr(M dA)

    Let N and P be M times the slopes of A in -D and in l, entry by entry, and s the columns divided by
    exp(u). Then tr(M dA) is 2 sum_il N_il D_il along the log of the common width w, and along u_j, since
    dD = -2 (s_ij - s_lj)^2 / w^2 and dl = -2 s_ij s_lj,

        4 (N 1)^T s_j^2 / w^2 - s_j^T (4 N / w^2 + 2 P) s_j

    so that all columns take one product. Columns of targets with blanks count over their known rows, one
    factorisation for each set of such rows, of at most 16 sets.

    ``prior`` has the logarithms of the weights, the noise and the common width that weak penalties are about.

    Outputs that hang together say less than as many that do not. ``n_effective`` is the participation ratio
    (tr S)^2 / ||S||_F^2, one where all are alike and p where none are; it multiplies L beside the penalty.

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
        self.X, self.shape, self.typical, self.squares = X, SHAPES[shape], typical, squares
        # Half of the variance from the shape, half from the linear part, and a tenth of noise.
        d = X.shape[1]
        self.prior = np.log([0.5, 0.5 / d, 0.25 / d**2 if squares else 0.25 / d, 0.1, typical])
        self.weight = np.ones(len(X)) if weight is None else weight
        known = ~np.isnan(Y)
        patterns, columns = np.unique(known, axis=1, return_inverse=True)
        counts = np.bincount(columns.reshape(-1))
        cells = patterns.sum(axis=0) * counts
        used = [place for place in np.argsort(-cells, kind="stable")[:_PATTERNS] if cells[place]]
        self.parts = []
        for place in used:
            rows, own = np.flatnonzero(patterns[:, place]), Y[:, columns.reshape(-1) == place]
            root = thin_root(own[rows] / np.sqrt(own.shape[1]))
            self.parts.append((rows, root, counts[place] / counts[used].sum()))
        self.n_known = sum(share * len(rows) for rows, _, share in self.parts)
        whole = np.sqrt(self.weight)[:, None] * np.where(known, Y, 0.0)
        S = whole @ whole.T
        size = float(np.linalg.norm(S))
        self.n_effective = float(np.trace(S) / size) ** 2 if size > 0.0 else 1.0

    def likelihood(self, theta: Array) -> tuple[float, Array]:
        """Log likelihood per output, and slopes, at theta (5 + d,) as `WidthSearch` has it."""
        c1, c2, c3, noise, width = np.exp(theta[:COMMON])
        scaled = self.X * np.exp(-theta[COMMON:])
        linear = scaled @ scaled.T
        lengths = np.diag(linear)
        D = np.maximum(lengths[:, None] + lengths - 2.0 * linear, 0.0) / width**2
        K, fall = self.shape(D)
        bend = (linear if self.squares else K) * linear
        found = self._slope_matrix(c1 * K + c2 * linear + c3 * bend, float(noise), float(theta[3]))
        if found is None:
            return -np.inf, np.zeros_like(theta)
        value, along_noise, M = found
        if self.squares:
            N, P = M * (c1 * fall), M * (c2 + 2.0 * c3 * linear)
        else:
            N, P = M * fall * (c1 + c3 * linear), M * (c2 + c3 * K)
        both = (4.0 / width**2) * N + 2.0 * P
        apart = (4.0 / width**2) * (N.sum(axis=1) @ scaled**2)
        slope = np.concatenate(
            [
                [c1 * np.vdot(M, K), c2 * np.vdot(M, linear), c3 * np.vdot(M, bend)],
                [along_noise, 2.0 * np.vdot(N, D)],
                apart - np.einsum("ij,ij->j", scaled, both @ scaled),
            ]
        )
        return -0.5 * value, -0.5 * slope

    def _slope_matrix(self, A: Array, noise: float, log_noise: float) -> tuple[float, float, Array] | None:
        """-2 L of a kernel matrix, its slope along the log of the noise, and M; None without a factor."""
        value, along_noise, M = 0.0, 0.0, np.zeros_like(A)
        for rows, root, share in self.parts:
            w = self.weight[rows]
            # Slices are views, much faster than lists of all rows.
            block = np.s_[:, :] if len(rows) == len(A) else np.ix_(rows, rows)
            own, extra = A[block].copy(), float(w.sum()) - len(rows)
            own[np.diag_indices(len(rows))] += noise / w
            factor, failed = dpotrf(own, lower=1, clean=1)
            if failed:
                return None
            logs = float(np.log(np.diag(factor)).sum())
            # The lower triangle, in the order of Fortran, is the upper one in that of C.
            half = dpotri(factor, lower=1)[0].T
            inverse = half + np.triu(half, 1).T
            solved = inverse @ root
            inner = inverse - solved @ solved.T
            value += share * (2.0 * logs + float(np.vdot(root, solved)) + extra * log_noise)
            along_noise += share * (float(np.diag(inner) @ (noise / w)) + extra)
            M[block] += share * inner
        return value, along_noise, M

    def loss(self, theta: Array, spread: float) -> tuple[float, Array]:
        """What is minimised over theta (5 + d,), as `WidthSearch` has it, and its slopes."""
        L, own = self.likelihood(theta)
        if not np.isfinite(L):
            return _NO_FACTOR, own
        slope = -self.n_effective * own
        away, apart = (theta[:COMMON] - self.prior) / _PRIOR_SPREAD, theta[COMMON:] / spread
        slope[:COMMON] += away / _PRIOR_SPREAD
        slope[COMMON:] += apart / spread
        return -self.n_effective * L + 0.5 * float(away @ away + apart @ apart), slope

    def found(self, theta: Array, spread: float) -> WidthSearch:
        """The outcome of a search that ended at theta."""
        L = self.likelihood(theta)[0]
        return WidthSearch(theta, spread, L - 0.5 * self.n_known * float(np.log(2.0 * np.pi)))

    def common_loss(self, theta: Array) -> tuple[float, Array]:
        """The same with one width, theta (5,)."""
        value, slope = self.loss(np.append(theta, np.zeros(self.X.shape[1])), 1.0)
        return value, slope[:COMMON]

    def log_evidence(self, theta: Array, spread: float) -> float:
        """Laplace's approximation of the evidence of a spread, at its optimum.

        The additions to the log widths are integrated over, with the curvature from differences of slopes
        along every column; a curvature below half of the prior's is taken for that.

        Cost: d times that of a value.
        """
        if spread == 0.0:
            return -self.common_loss(theta[:COMMON])[0]
        value, slope = self.loss(theta, spread)
        H = np.empty((len(theta) - COMMON, len(theta) - COMMON))
        for column in range(len(H)):
            near = theta.copy()
            near[COMMON + column] += _STEP
            H[column] = (self.loss(near, spread)[1] - slope)[COMMON:] / _STEP
        curvature = np.maximum(np.linalg.eigvalsh(0.5 * (H + H.T)) * spread**2, 0.5)
        return -value - 0.5 * float(np.log(curvature).sum())

    def best_optimum(self, start: Array | None, spread: float, tol: float = TOL) -> Array:
        """The optimum from a start; without one, the better optimum of two levels of noise at the start.

        Where targets are nearly exact there are two optima, one with noise and one without. Which of them a
        single search finds hangs on rounding.
        """
        if start is not None:
            return self.optimum(start, spread, tol)
        noisy = np.append(self.prior, np.zeros(self.X.shape[1]))
        quiet = noisy.copy()
        quiet[3] += np.log(_QUIET)
        found = [self.optimum(theta, spread, tol) for theta in (noisy, quiet)]
        return min(found, key=lambda theta: self.loss(theta, spread or 1.0)[0])

    def optimum(self, start: Array, spread: float, tol: float = TOL) -> Array:
        """Theta (5 + d,) of least loss; with a spread of zero all additions are zero."""
        widths = (WIDTHS[0] * self.typical, WIDTHS[1] * self.typical)
        limits = np.log([*_WEIGHTS, NOISE_BOUNDS, widths])
        bounds = np.vstack([limits, np.full((len(start) - COMMON, 2), [-_FARTHEST, _FARTHEST])])
        free = len(start) if spread > 0.0 else COMMON
        found = minimize(
            partial(self.loss, spread=spread) if spread > 0.0 else self.common_loss,
            np.clip(start, *bounds.T)[:free],
            jac=True,
            method="L-BFGS-B",
            bounds=bounds[:free],
            options={"maxiter": MAX_ITER, "ftol": 0.0, "gtol": tol},
        )
        theta = np.zeros(len(start))
        # Finer than the rows can tell, and the same when rounding has led the search along another path.
        theta[:free] = np.round(found.x, 2)
        return np.asarray(np.clip(theta, *bounds.T))


def tune_widths(
    evidence: PenalisedEvidence, start: Array | None = None, spread: float | None = None
) -> WidthSearch:
    """Maximise the penalised evidence over all widths, and that of the spread where none is given.

    Parameters
    ----------
    evidence : PenalisedEvidence
    start : ndarray of shape (5 + d,), optional
        As ``WidthSearch.theta``. If None, the search starts twice, with much and with little noise.
    spread : float, optional
        0 is one width for all columns. If None, the search begins there and goes on to larger spreads, each
        from the optimum of the last, until the evidence falls.

    Notes
    -----
    The penalty is sum_j u_j^2 / (2 spread^2) for the addition u_j to the log width of column j. As the spread
    goes to zero its evidence goes to that of one width. The weights, the noise and the common width have weak
    penalties too, so that the Gaussian part does not vanish where rows cannot tell a small weight from none,
    and there is one optimum where rows are so far apart that no width is too small.
    """
    with one_thread(len(evidence.X) <= SMALL_MATRIX):
        if spread is not None:
            return evidence.found(evidence.best_optimum(start, spread), spread)
        theta = evidence.best_optimum(start, 0.0)
        best, spread, highest = theta, 0.0, evidence.log_evidence(theta, 0.0)
        for wider in SPREADS:
            theta = evidence.optimum(theta, wider)
            reached = evidence.log_evidence(theta, wider)
            if reached <= highest + LEAST_RISE:
                break
            best, spread, highest = theta, wider, reached
        return evidence.found(best, spread)
