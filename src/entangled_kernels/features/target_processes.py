"""Predictions of a Gaussian process for every target, each with widths of its own, as features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array, Index
from ..parameters import check_integer, check_positive
from ..threads import SMALL_MATRIX, one_thread
from .kernel_features import median_distance
from .nystroem import inverse_root
from .training_rows import mean_and_scale, target_mean_and_scale, training_rows
from .widths import COMMON, PenalisedEvidence

__all__ = ["TargetProcessFeatures"]

# The largest slope that ends a search: there are many searches, and predictions hardly change any more.
_TOL = 0.1
# Ridge that leaves predictions as they are.
_NEXT_TO_NONE = 1e-6
# Deviations of standardised targets that are rounding.
_ROUNDING = 1e-9
_ROWS_AT_ONCE = 2000


class TargetProcessFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
    """Predictions of a Gaussian process of its own for every target, as features.

    Targets may depend on different columns, and then no widths suit all of them. Here every target has a
    process with widths, weights and noise of its own, by penalised evidence as in `ColumnWidthFeatures`: an
    exponential kernel, a linear one and its square, on standardised columns divided by their widths.

    Features of new rows are what the processes predict. Those of training rows are the targets themselves,
    so that ridge on the features learns the identity, and predicts new rows as the processes do; with more
    ridge, nearer to the mean.

    Parameters
    ----------
    spread : float, default=0.6
        Prior standard deviation of a log width about the common one; 0 is one width for all columns.
    start : ndarray of shape (p, 5 + d) or None, default=None
        Where the searches start, as ``theta_`` of fitted features.
    n_components : int, default=300
        Rows, drawn at random, that a process knows.
    max_rows : int, default=150
        Rows, drawn at random, that the marginal likelihoods are taken of; the time grows with their cube.
    reach : float or None, default=None
        How far rows count beyond those that the map is fitted on, in units of the range of a column, as in
        `EvidenceFeatures`. Squares count the range alone.
    max_targets : int or None, default=None
        In a search among several maps this one is left out with more targets than so many, or with one, which
        `ColumnWidthFeatures` has as well. None always tries it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    theta_ : ndarray of shape (p, 5 + d)
        Of every target, as that of `ColumnWidthFeatures`.
    widths_ : ndarray of shape (p, d)
        In standard deviations of the columns.
    noises_ : ndarray of shape (p,)
        Variances of the noise, in units of the variance of a target.
    noise_ : float
        The ridge penalty with which ridge on these features predicts as the processes do: next to none.
    components_ : ndarray of shape (number of components, d)
        Rows that the processes know, standardised.
    dual_coef_ : ndarray of shape (number of components, p)
    mean_, scale_ : ndarray of shape (d,)
    target_mean_, target_scale_ : ndarray of shape (p,)
    range_ : ndarray of shape (2, d)
        The least and the largest of every column.
    lower_, upper_ : ndarray of shape (d,)
        Limits of the columns, infinite without a ``reach``.
    n_features_in_, feature_names_in_

    Notes
    -----
    The kernel of all targets together has those of the processes on its diagonal: no scalar kernel times a
    matrix is like it, unless all are alike.

    `fit_transform` gives targets where they are known, so what is learned on them must be judged on other
    rows; `left_out` has predictions of every training row without that row.

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

    #: Features of the rows that it is fitted on come from `fit_transform`.
    cross_fitted = True
    # Targets may be NaN where they were not measured.
    takes_blanks = True
    # Ridge may have any small alpha.
    interpolates = True

    def __init__(
        self,
        spread: float = 0.6,
        *,
        start: Any = None,
        n_components: int = 300,
        max_rows: int = 150,
        reach: float | None = None,
        max_targets: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.spread = spread
        self.start = start
        self.n_components = n_components
        self.max_rows = max_rows
        self.reach = reach
        self.max_targets = max_targets
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Tune a process to every target.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, p)
            NaN where a target is not known.
        sample_weight : array-like of shape (n,), optional
        """
        check_positive("spread", self.spread, zero_allowed=True)
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_rows", self.max_rows, low=2)
        if self.max_targets is not None:
            check_integer("max_targets", self.max_targets, low=2)
        X, Y, weight = training_rows(self, X, y, sample_weight)
        rng = check_random_state(self.random_state)
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.full_like(low, np.inf)
        if self.reach is not None:
            check_positive("reach", self.reach, zero_allowed=True)
            beyond = float(self.reach) * (high - low)
        self.lower_, self.upper_, self.range_ = low - beyond, high + beyond, np.stack([low, high])
        self.mean_, self.scale_ = mean_and_scale(X, weight)
        self.target_mean_, self.target_scale_ = target_mean_and_scale(Y, weight)
        Z, T = (X - self.mean_) / self.scale_, (Y - self.target_mean_) / self.target_scale_
        w = np.ones(len(X)) if weight is None else weight
        # The first of the known rows in one order, so that targets without blanks know the same rows.
        order = rng.permutation(len(Z))
        known = [order[~np.isnan(y[order])] for y in T.T]
        kept = [np.sort(rows[: int(self.n_components)]) for rows in known]
        tuned = [np.sort(rows[: int(self.max_rows)]) for rows in known]
        self._rows = np.unique(np.concatenate(kept))
        self.components_, self.noise_ = Z[self._rows], _NEXT_TO_NONE
        self.dual_coef_ = np.zeros((len(self._rows), T.shape[1]))
        with one_thread(len(Z) <= SMALL_MATRIX):
            self.theta_ = self._tune(Z, T, w, tuned, median_distance(Z[order[: int(self.max_rows)]]))
            for target, rows in enumerate(kept):
                if len(rows):
                    A = self._noisy(self.theta_[target], Z[rows], w[rows])
                    solved = solve(A, T[rows, target], assume_a="pos")
                    self.dual_coef_[np.isin(self._rows, rows), target] = solved
        self.noises_ = np.exp(self.theta_[:, 3])
        self.widths_ = np.exp(self.theta_[:, 4:5] + self.theta_[:, COMMON:])
        return self

    def _tune(self, Z: Array, T: Array, weight: Array, rows: list[Index], typical: float) -> Array:
        """Parameters (p, 5 + d) of the processes, by the likelihoods of some rows for each target."""
        start, found = self._start(T.shape[1], Z.shape[1]), np.empty((T.shape[1], COMMON + Z.shape[1]))
        for target, own in enumerate(rows):
            y = T[own, target][:, None]
            evidence = PenalisedEvidence(Z[own], y, weight[own], typical, "exponential", squares=True)
            theta = None if start is None else start[target]
            # A standardised constant target is zero up to rounding: there is nothing to search for.
            if np.abs(y).max(initial=0.0) > _ROUNDING:
                found[target] = evidence.best_optimum(theta, float(self.spread), _TOL)
            else:
                found[target] = np.append(evidence.prior, np.zeros(Z.shape[1])) if theta is None else theta
        return found

    def transform(self, X: Any) -> Array:
        """Predictions of rows, (n, p), in standard units of the targets."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z = (np.clip(X, self.lower_, self.upper_) - self.mean_) / self.scale_
        found = np.empty((len(Z), len(self.theta_)))
        for start in range(0, len(Z), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            for target, theta in enumerate(self.theta_):
                found[block, target] = self._kernel(theta, Z[block]) @ self.dual_coef_[:, target]
        return found

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, and targets in standard units, (n, p), with predictions where they are blank."""
        self.fit(X, y, sample_weight)
        known = self._standardised(y, (-1, len(self.theta_)))
        blank = np.isnan(known).any(axis=1)
        if blank.any():
            predicted = self.transform(_safe_indexing(X, np.flatnonzero(blank)))
            known[blank] = np.where(np.isnan(known[blank]), predicted, known[blank])
        return known

    def left_out(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Predictions (n, p) of the rows that the map was fitted on, of each row without it.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Notes
        -----
        With A the kernel matrix with the noise, (A^-1 y)_i / (A^-1)_ii is the error of row i in a process of
        all other rows. Rows that a process does not know, since they are many, are predicted as new ones. The
        parameters of the process have seen the row, so errors are somewhat too small.
        """
        Phi = self.transform(X)
        Z = (np.asarray(X, dtype=np.float64) - self.mean_) / self.scale_
        T = self._standardised(y, Phi.shape)
        w = np.ones(len(Z)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        places = np.flatnonzero((w > 0.0) & ~np.isnan(T).all(axis=1))[self._rows]
        for target, theta in enumerate(self.theta_):
            rows = places[self.dual_coef_[:, target] != 0.0]
            inverse = np.linalg.inv(self._noisy(theta, Z[rows], w[rows]))
            Phi[rows, target] = T[rows, target] - inverse @ T[rows, target] / np.diag(inverse)
        return Phi

    def warm_start(self) -> TargetProcessFeatures:
        """New features, not fitted, whose searches start from what was found here."""
        check_is_fitted(self)
        started: TargetProcessFeatures = clone(self)
        return started.set_params(start=self.theta_)  # type: ignore[no-any-return]

    def kernels(self, target: int) -> tuple[Array, tuple[Any, Any]]:
        """Widths of columns about one, (d,), and two kernels of standardised columns divided by them.

        The process of the target has the sum of both; the second, squares of inner products, sees columns
        within the range of the training rows.
        """
        return _kernels(self.theta_[target])

    def mean_features(self, X: Any) -> Array:
        """Features (n, m) whose inner products are the mean of the kernels of all processes."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z, R = (np.clip(X, self.lower_, self.upper_) - self.mean_) / self.scale_, self.components_
        between, own = (
            np.mean([self._kernel(theta, rows) for theta in self.theta_], axis=0) for rows in (Z, R)
        )
        return np.asarray(between @ inverse_root(own))

    def _kernel(self, theta: Array, Z: Array, R: Array | None = None) -> Array:
        """Kernel values of standardised rows with the rows that processes know, or with others."""
        relative, (near, squares) = _kernels(theta)
        R = (self.components_ if R is None else R) / relative
        within = np.clip(Z, *(self.range_ - self.mean_) / self.scale_)
        return np.asarray(near(Z / relative, R) + squares(within / relative, R))

    def _noisy(self, theta: Array, Z: Array, weight: Array) -> Array:
        """Kernel matrix of rows, with the noise."""
        A = self._kernel(theta, Z, Z)
        A[np.diag_indices(len(Z))] += np.exp(theta[3]) / weight
        return A

    def _standardised(self, y: Any, shape: tuple[int, ...]) -> Array:
        targets = np.asarray(y, dtype=np.float64).reshape(shape)  # (n, p)
        return np.asarray((targets - self.target_mean_) / self.target_scale_)

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
