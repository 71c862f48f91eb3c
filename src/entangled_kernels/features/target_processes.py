"""Predictions of a Gaussian process for every target, each with its own widths, as features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array, Index, rank_tolerance
from ..parameters import check_integer, check_positive, check_range
from ..threads import SMALL_MATRIX, one_thread
from .evidence import COMMON, PenalisedEvidence, median_distance
from .training_rows import mean_and_scale, target_mean_and_scale, training_rows, used_rows

__all__ = ["TargetProcessFeatures"]

# The largest slope that ends a search: there are many searches, and predictions hardly change any
# more.
_TOL = 0.1
# Standard deviations of standardised targets that are rounding.
_ROUNDING = 1e-9
_ROWS_AT_ONCE = 2000


class TargetProcessFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
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
        Where the searches start, as ``theta_`` of fitted features.
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
    # Targets may be NaN.
    takes_missing_targets = True

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
        self._check_parameters()
        X, Y, weight = training_rows(self, X, y, sample_weight)
        self._fit_rows(X, Y, weight)
        return self

    def _check_parameters(self) -> None:
        check_positive("spread", self.spread, zero_allowed=True)
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_rows", self.max_rows, low=2)
        if self.max_targets is not None:
            check_integer("max_targets", self.max_targets, low=2)
        if self.max_inputs is not None:
            check_integer("max_inputs", self.max_inputs, low=1)
        if self.reach is not None:
            check_positive("reach", self.reach, zero_allowed=True)

    def _fit_rows(self, X: Array, Y: Array, weight: Array | None) -> list[Index]:
        """Tune the processes; the rows (of positive weight) that each of them is conditioned on."""
        rng = check_random_state(self.random_state)
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.full_like(low, np.inf)
        if self.reach is not None:
            beyond = float(self.reach) * (high - low)
        self.lower_, self.upper_, self.range_ = low - beyond, high + beyond, np.stack([low, high])
        self.mean_, self.scale_ = mean_and_scale(X, weight)
        self.target_mean_, self.target_scale_ = target_mean_and_scale(Y, weight)
        Z, T = (X - self.mean_) / self.scale_, (Y - self.target_mean_) / self.target_scale_
        w = np.ones(len(X)) if weight is None else weight
        # All targets take their rows in one order, so that complete targets have the same rows.
        order = rng.permutation(len(Z))
        known = [order[~np.isnan(y[order])] for y in T.T]
        kept = [np.sort(rows[: int(self.n_components)]) for rows in known]
        tuned = [np.sort(rows[: int(self.max_rows)]) for rows in known]
        components = np.unique(np.concatenate(kept))
        self.components_ = Z[components]
        self.dual_coef_ = np.zeros((len(components), T.shape[1]))
        with one_thread(len(Z) <= SMALL_MATRIX):
            self.theta_ = self._tune(
                Z, T, w, tuned, median_distance(Z[order[: int(self.max_rows)]])
            )
            for target, rows in enumerate(kept):
                if len(rows):
                    A = self._noisy(self.theta_[target], Z[rows], w[rows])
                    solved = solve(A, T[rows, target], assume_a="pos")
                    self.dual_coef_[np.isin(components, rows), target] = solved
        self.noises_ = np.exp(self.theta_[:, 3])
        self.widths_ = np.exp(self.theta_[:, 4:5] + self.theta_[:, COMMON:])
        return kept

    def _tune(self, Z: Array, T: Array, weight: Array, rows: list[Index], typical: float) -> Array:
        """Parameters (p, 5 + d) of the processes, by the likelihoods of some rows for each target."""
        start, tuned = (
            self._start(T.shape[1], Z.shape[1]),
            np.empty((T.shape[1], COMMON + Z.shape[1])),
        )
        for target, some in enumerate(rows):
            y = T[some, target][:, None]
            evidence = PenalisedEvidence(
                Z[some], y, weight[some], typical, "exponential", squares=True
            )
            theta = None if start is None else start[target]
            # A standardised constant target is zero up to rounding: there is nothing to search for.
            if np.abs(y).max(initial=0.0) > _ROUNDING:
                tuned[target] = evidence.best_optimum(theta, float(self.spread), _TOL)
            else:
                tuned[target] = (
                    np.append(evidence.prior, np.zeros(Z.shape[1])) if theta is None else theta
                )
        return tuned

    def transform(self, X: Any) -> Array:
        """Predictions of new rows, (n, p), in standard units of the targets."""
        check_is_fitted(self)
        return self._predict(validate_data(self, X, reset=False, dtype=np.float64))

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, and leave-one-out predictions of the training rows, turned to the targets, (n, p).

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        """
        self._check_parameters()
        rows, Y, weight = training_rows(self, X, y, sample_weight)
        kept = self._fit_rows(rows, Y, weight)
        Z, T = (rows - self.mean_) / self.scale_, (Y - self.target_mean_) / self.target_scale_
        w = np.ones(len(rows)) if weight is None else weight
        left_out = self._predict(rows)
        for target, some in enumerate(kept):
            if len(some):
                inverse = np.linalg.inv(self._noisy(self.theta_[target], Z[some], w[some]))
                errors = inverse @ T[some, target] / np.diag(inverse)
                left_out[some, target] = T[some, target] - errors
        used, Phi = used_rows(y, sample_weight), left_out
        if not used.all():
            Phi = self.transform(X)
            Phi[used] = left_out
        return _towards_targets(Phi, left_out, T, w)

    def _predict(self, X: Array) -> Array:
        Z = (np.clip(X, self.lower_, self.upper_) - self.mean_) / self.scale_
        check_range("X in units of the training rows", Z, smallest=0.0)
        values = np.empty((len(Z), len(self.theta_)))
        for start in range(0, len(Z), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            for target, theta in enumerate(self.theta_):
                values[block, target] = self._kernel(theta, Z[block]) @ self.dual_coef_[:, target]
        return values

    def warm_start(self) -> TargetProcessFeatures:
        """New features, not fitted, whose searches start from the parameters of these."""
        check_is_fitted(self)
        started: TargetProcessFeatures = clone(self)
        return started.set_params(start=self.theta_)  # type: ignore[no-any-return]

    def kernels(self, target: int) -> tuple[Array, tuple[Any, Any]]:
        """Widths of columns about one, (d,), and two kernels of standardised columns divided by them.

        The process of the target has the sum of both; the second, squares of inner products, sees
        columns within the range of the training rows.
        """
        return _kernels(self.theta_[target])

    def _kernel(self, theta: Array, Z: Array, R: Array | None = None) -> Array:
        """Kernel values of standardised rows with the components, or with other rows."""
        relative, (near, squares) = _kernels(theta)
        R = (self.components_ if R is None else R) / relative
        within = np.clip(Z, *(self.range_ - self.mean_) / self.scale_)
        return np.asarray(near(Z / relative, R) + squares(within / relative, R))

    def _noisy(self, theta: Array, Z: Array, weight: Array) -> Array:
        """Kernel matrix of rows, with the noise."""
        A = self._kernel(theta, Z, Z)
        # Of rows of very large weight nothing but rounding would be left on the diagonal.
        least = rank_tolerance(len(Z)) * float(np.max(np.diag(A), initial=0.0))
        A[np.diag_indices(len(Z))] += np.maximum(np.exp(theta[3]) / weight, least)
        return A

    def _start(self, p: int, d: int) -> Array | None:
        if self.start is None:
            return None
        start = np.asarray(self.start, dtype=np.float64)
        if start.shape != (p, COMMON + d) or not np.isfinite(start).all():
            raise ValueError(
                f"start must be theta_ of features fitted on as many targets and columns, finite numbers of "
                f"shape {(p, COMMON + d)}, got shape {start.shape}"
            )
        return start

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _kernels(theta: Array) -> tuple[Array, tuple[Any, Any]]:
    c1, c2, c3, _, width = np.exp(theta[:COMMON])
    linear = DotProduct(0.0, "fixed")
    near = ConstantKernel(c1) * Matern(width, nu=0.5) + ConstantKernel(c2) * linear
    return np.exp(theta[COMMON:]), (near, ConstantKernel(c3) * linear**2)


def _towards_targets(Phi: Array, left_out: Array, T: Array, weight: Array) -> Array:
    """Predictions (n, p), turned so that least squares of the targets on ``left_out`` is the identity.

    Every target is regressed on the leave-one-out predictions of all targets, with a penalty on
    what differs from the identity that counts as much as one row.
    """
    mean, turned = np.average(left_out, axis=0, weights=weight), Phi.copy()
    for target, y in enumerate(T.T):
        known = ~np.isnan(y)
        if known.any():
            root = np.sqrt(weight[known])[:, None]
            F = root * (
                left_out[known] - np.average(left_out[known], axis=0, weights=weight[known])
            )
            errors = y[known] - left_out[known, target]
            squares = F.T @ F
            # Beside rows of very large weight one row would be rounding.
            penalty = max(1.0, rank_tolerance(len(squares)) * float(np.trace(squares)))
            penalised = squares + penalty * np.eye(len(squares))
            turned[:, target] += (Phi - mean) @ np.linalg.solve(
                penalised, F.T @ (root[:, 0] * errors)
            )
    return turned
