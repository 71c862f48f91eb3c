"""Predictions of a Gaussian process for every target, each with its own widths, as features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linalg import Array, Index, rank_tolerance
from ..parameters import check_positive, check_range
from ..threads import SMALL_MATRIX, one_thread
from .evidence import COMMON, PenalisedEvidence, median_distance
from .training_rows import SupervisedFeatures, standardise

__all__ = ["TargetProcessFeatures"]

# The largest slope that ends a search. Smaller slopes hardly change predictions.
_TOL = 0.1
# Standard deviations of standardised targets that are rounding.
_ROUNDING = 1e-9
_ROWS_AT_ONCE = 2000


class TargetProcessFeatures(SupervisedFeatures):
    """Predictions of a Gaussian process for every target, as features.

    Targets may depend on different columns, and then no widths suit all of them. Here every target
    has a process with its own widths, weights and noise, by penalised evidence as in
    `ColumnWidthFeatures`: an exponential kernel, a linear one and its square, on standardised
    columns divided by their widths.

    Features of new rows are the predictions of the processes. `fit_transform` gives the training
    rows their leave-one-out predictions, turned so that least squares on them predicts new rows as
    the processes do. Residuals of the training rows then show the errors of new rows.

    Parameters
    ----------
    spread : float, default=0.6
        Prior standard deviation of a log width about the common one; 0 is one width for all
        columns.
    start : ndarray of shape (p, 5 + d) or None, default=None
        Where the searches start, as ``theta_`` of fitted features; not used with another number of
        columns or targets.
    n_components : int, default=300
        Rows, drawn at random, that a process is conditioned on.
    max_rows : int, default=150
        Rows, drawn at random, for the marginal likelihoods; the time grows with the cube of their
        number.
    reach : float or None, default=None
        Inputs are clipped at this many ranges of a column beyond the training rows, as in
        `EvidenceFeatures`. The squares of inputs are clipped at the range itself.
    max_targets : int or None, default=None
        A search among several maps leaves this one out if there are more targets than this, or only
        one, for which `ColumnWidthFeatures` does the same. None always tries it.
    max_inputs : int or None, default=None
        A search among several maps leaves this one out where there are more inputs.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    theta_ : ndarray of shape (p, 5 + d)
        Parameters of every process, as ``theta_`` of `ColumnWidthFeatures`.
    widths_ : ndarray of shape (p, d)
        In standard deviations of the columns.
    noises_ : ndarray of shape (p,)
        Variances of the noise, in units of the variance of a target.
    components_ : ndarray of shape (number of components, d)
        Rows that the processes are conditioned on, standardised.
    dual_coef_ : ndarray of shape (number of components, p)
    mean_, scale_ : ndarray of shape (d,)
    target_mean_, target_scale_ : ndarray of shape (p,)
    range_ : ndarray of shape (2, d)
        Minimum and maximum of every column.
    lower_, upper_ : ndarray of shape (d,)
        Limits of the columns, infinite without a ``reach``.
    n_features_in_, feature_names_in_

    Notes
    -----
    All targets together have a kernel with those of the processes on its diagonal. It is not a
    scalar kernel times a matrix, unless all processes are alike.

    With A the kernel matrix of a process with the noise on its diagonal, the leave-one-out
    prediction of row i is y_i - (A^-1 y)_i / (A^-1)_ii. A missing target, and a row beyond
    ``n_components``, is predicted as a new row. The parameters of the processes are tuned on all
    rows, so the leave-one-out errors are somewhat too small.

    Least squares of p targets on p such predictions has p^2 coefficients, too many for few rows. So
    targets are regressed on the leave-one-out predictions here, and the fitted values are the
    features of training rows: least squares on these has the identity for its coefficients, and the
    same residuals.

    Rows in batches (`EntangledKernelRidge.partial_fit`) get the features of new rows, which for the
    batch that the map was fitted on are too good; give it a map that was fitted on other rows.

    Cost of a step of a search: n^3 + n^2 d for each target.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import TargetProcessFeatures
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> features = TargetProcessFeatures().fit(X, np.sin(2 * X[:, :2]))
    >>> features.widths_.argmin(axis=1)
    array([0, 1])
    """

    #: Features of the training rows come from `fit_transform`.
    cross_fitted = True

    def __init__(
        self,
        spread: float = 0.6,
        *,
        start: Any = None,
        n_components: int = 300,
        max_rows: int = 150,
        reach: float | None = None,
        max_targets: int | None = None,
        max_inputs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.spread = spread
        self.start = start
        self.n_components = n_components
        self.max_rows = max_rows
        self.reach = reach
        self.max_targets = max_targets
        self.max_inputs = max_inputs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Tune a process to every target.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, p)
            NaN where a target is missing.
        sample_weight : array-like of shape (n,), optional
        """
        self._fit_rows(X, y, sample_weight)
        return self

    def _fit_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, Array, Array, NDArray[np.bool_], list[Index]]:
        """Tune a process to every target.

        Returns standardised rows and targets of positive weight, their weights, which of the given
        rows they are, and for every target the rows that its process is conditioned on.
        """
        check_positive("spread", self.spread, zero_allowed=True)
        X, Y, weight, used = self._training_rows(X, y, sample_weight)
        start = self._check_start((Y.shape[1], COMMON + X.shape[1]))
        self._fit_limits(X)
        self.range_ = np.stack([X.min(axis=0), X.max(axis=0)])
        Z, self.mean_, self.scale_ = standardise(X, weight)
        T, self.target_mean_, self.target_scale_ = standardise(Y, weight)
        # All targets take their rows in one order, so that complete targets have the same rows.
        order, limit = check_random_state(self.random_state).permutation(len(Z)), int(self.max_rows)
        kept, duals = list[Index](), list[Array]()
        self.theta_ = np.empty((T.shape[1], COMMON + Z.shape[1]))
        with one_thread(len(Z) <= SMALL_MATRIX):
            typical = median_distance(Z[order[:limit]])
            for target, y in enumerate(T.T):
                present = order[~np.isnan(y[order])]
                some, rows = np.sort(present[:limit]), np.sort(present[: int(self.n_components)])
                theta = None if start is None else start[target]
                self.theta_[target] = self._tune(Z[some], y[some], weight[some], typical, theta)
                dual = np.zeros(len(Z))
                if len(rows):
                    A = self._noisy(target, Z[rows], weight[rows])
                    dual[rows] = solve(A, y[rows], assume_a="pos")
                kept.append(rows)
                duals.append(dual)
        components = np.unique(np.concatenate(kept))
        self.components_, self.dual_coef_ = Z[components], np.column_stack(duals)[components]
        self.noises_ = np.exp(self.theta_[:, 3])
        self.widths_ = np.exp(self.theta_[:, 4:5] + self.theta_[:, COMMON:])
        return Z, T, weight, used, kept

    def _tune(
        self, Z: Array, y: Array, weight: Array, typical: float, start: Array | None
    ) -> Array:
        """Parameters (5 + d,) of the process of a target."""
        evidence = PenalisedEvidence(Z, y[:, None], weight, typical, "exponential", squares=True)
        # A standardised constant target is zero up to rounding: there is nothing to search for.
        if np.abs(y).max(initial=0.0) > _ROUNDING:
            return evidence.best_optimum(start, float(self.spread), _TOL)
        return np.append(evidence.prior, np.zeros(Z.shape[1])) if start is None else start

    def transform(self, X: Any) -> Array:
        """Predictions of new rows, (n, p), in standard units of the targets."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z = (np.clip(X, self.lower_, self.upper_) - self.mean_) / self.scale_
        check_range("X in units of the training rows", Z, smallest=0.0)
        values = np.empty((len(Z), len(self.theta_)))
        for start in range(0, len(Z), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            for target, dual in enumerate(self.dual_coef_.T):
                values[block, target] = self._kernel(target, Z[block], self.components_) @ dual
        return values

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, and leave-one-out predictions of the training rows, turned to the targets, (n, p).

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        """
        Z, T, weight, used, kept = self._fit_rows(X, y, sample_weight)
        Phi = self.transform(X)
        left_out = Phi[used]
        for target, rows in enumerate(kept):
            if len(rows):
                inverse = np.linalg.inv(self._noisy(target, Z[rows], weight[rows]))
                errors = inverse @ T[rows, target] / np.diag(inverse)
                left_out[rows, target] = T[rows, target] - errors
        Phi[used] = left_out
        return _towards_targets(Phi, left_out, T, weight)

    def warm_start(self) -> TargetProcessFeatures:
        """New features, not fitted, whose searches start from the parameters of these."""
        check_is_fitted(self)
        started: TargetProcessFeatures = clone(self)
        started.set_params(start=self.theta_)
        return started

    def kernels(self, target: int) -> tuple[Array, tuple[Any, Any]]:
        """Relative widths of columns, (d,), and two kernels of standardised columns over them.

        The process of the target has the sum of both. The second, the square of the inner product,
        gets columns that are clipped to the range of the training rows.
        """
        theta = self.theta_[target]
        c1, c2, c3, _, width = np.exp(theta[:COMMON])
        linear = DotProduct(0.0, "fixed")
        near = ConstantKernel(c1) * Matern(width, nu=0.5) + ConstantKernel(c2) * linear
        return np.exp(theta[COMMON:]), (near, ConstantKernel(c3) * linear**2)

    def _kernel(self, target: int, Z: Array, R: Array) -> Array:
        """Kernel values of standardised rows Z (n, d) and R (R, d)."""
        relative, (near, squares) = self.kernels(target)
        within = np.clip(Z, *(self.range_ - self.mean_) / self.scale_)
        R = R / relative
        return np.asarray(near(Z / relative, R) + squares(within / relative, R))

    def _noisy(self, target: int, Z: Array, weight: Array) -> Array:
        """Kernel matrix of rows, with the noise."""
        A = self._kernel(target, Z, Z)
        # With a very large weight the noise would be less than the rounding of the diagonal.
        least = rank_tolerance(len(Z)) * float(np.max(np.diag(A), initial=0.0))
        A[np.diag_indices(len(Z))] += np.maximum(np.exp(self.theta_[target, 3]) / weight, least)
        return A


def _towards_targets(Phi: Array, left_out: Array, T: Array, weight: Array) -> Array:
    """Predictions, turned so that least squares of the targets on ``left_out`` is the identity.

    Every target is regressed on the leave-one-out predictions of all targets. A penalty on the
    difference from the identity counts as much as one row.
    """
    mean, turned = np.average(left_out, axis=0, weights=weight), Phi.copy()
    for target, y in enumerate(T.T):
        present = ~np.isnan(y)
        if not present.any():
            continue
        F, w, errors = left_out[present], weight[present], (y - left_out[:, target])[present]
        root = np.sqrt(w)[:, None]
        F = root * (F - np.average(F, axis=0, weights=w))
        squares = F.T @ F
        # Beside rows of very large weight, a penalty of one row would be rounding.
        penalty = max(1.0, rank_tolerance(len(squares)) * float(np.trace(squares)))
        penalised = squares + penalty * np.eye(len(squares))
        turned[:, target] += (Phi - mean) @ np.linalg.solve(penalised, F.T @ (root[:, 0] * errors))
    return turned
