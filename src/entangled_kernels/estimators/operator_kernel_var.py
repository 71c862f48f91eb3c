"""Nonlinear vector autoregression with operator-valued kernels, and its causal network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..convex import (
    AdditiveModel,
    HadamardModel,
    OutputPenalty,
    lag_windows,
    learn_additive,
    learn_hadamard,
)
from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_integer,
    check_numeric_columns,
    check_positive,
    check_range,
    check_real,
    check_solver_params,
    validate_rows,
)
from .kernel_parts import store_certificate

__all__ = ["OperatorKernelVAR"]

KERNELS = ("hadamard", "additive")
# Penalties on B whose conjugate is smooth, as the dual solver needs.
PENALTIES = ("frobenius", "schatten", "elastic", "entrywise")


class OperatorKernelVAR(DocLinkMixin, BaseEstimator):
    """Vector autoregression x_(t+1) = h(x_t, x_(t-1), ...) + noise, h of an operator-valued kernel.

    Parameters
    ----------
    kernel : {"hadamard", "additive"}, default="hadamard"
        ``"hadamard"`` has B_ij exp(-gamma |x - z|^2) exp(-output_gamma |x_i - z_j|^2) in row i and
        column j, with B learned (Lim et al. 2015). ``"additive"`` has a function of every
        variable's past for every target, with sparse weights that are learned (Gregorova et al.
        2017).
    lags : int, default=1
        Steps that the next one depends on.
    alpha : float, default=1.0
        Ridge penalty, positive.
    gamma : float or None, default=None
        Of the kernel between windows; None is 2 / (p lags) for ``"hadamard"`` and 1 / (2 lags) for
        ``"additive"``.
    output_gamma : float or None, default=None
        Of the kernel between variables; None is 0.2 / lags. Not used by ``"additive"``.
    penalty : {"frobenius", "schatten", "elastic", "entrywise"}, default="frobenius"
        Penalty that bounds B by its value at the identity; see `OutputKernelRidge` with ``constraint=True``.
    norm : float, default=1.0
        Of the constraint on the weights of ``"additive"``, at least 1.
    solver_params : dict or None, default=None
        ``max_iter`` (1000), the largest number of evaluations of the dual problem, and ``tol``
        (1e-3): the duality gap is at most tol^2 times the objective.

    Attributes
    ----------
    granger_ : ndarray of shape (p, p)
        Strength of the influence of variable j, in columns, on variable i, in rows, in units of
        their standard deviations: the mean over rows of |d h_i / d x_j| (of its norm over lags), or
        with ``"additive"`` the weight.
    output_kernel_ : ndarray of shape (p, p)
        B; with ``"hadamard"`` only.
    kernel_weights_ : ndarray of shape (p, p)
        Weights of variables, in rows, by target; with ``"additive"`` only.
    dual_coef_ : ndarray of shape (n, p)
    X_fit_ : ndarray of shape (n, p, lags)
        Standardised training windows.
    mean_, scale_ : ndarray of shape (p,)
        Of the training series.
    last_ : ndarray of shape (lags, p)
        The last steps of the training series, from which `forecast` continues.
    duality_gap_, objective_ : float
    n_iter_ : int
    converged_ : bool
    stop_reason_ : str
    n_features_in_, feature_names_in_

    Notes
    -----
    The rows of X are steps in time, one apart. They are standardised, so that influences can be
    compared. With ``gamma=0`` the Jacobian of ``"hadamard"`` is diagonal and says nothing about the
    network.

    Time n^2 p r for an evaluation with ``"hadamard"``, r about 20 features of the kernel between
    variables; p n^3 for ``"additive"``.

    References
    ----------
    N. Lim, F. d'Alche-Buc, C. Auliac and G. Michailidis, "Operator-valued kernel-based vector
    autoregressive models for network inference", Machine Learning 2015.

    M. Gregorova, A. Kalousis and S. Marchand-Maillet, "Forecasting and Granger modelling with
    non-linear dynamical dependencies", ECML PKDD 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import OperatorKernelVAR
    >>> rng = np.random.default_rng(0)
    >>> X = np.zeros((150, 3))
    >>> for t in range(149):
    ...     X[t + 1] = 1.5 * np.tanh(2 * X[t, [2, 0, 1]]) + 0.5 * rng.normal(size=3)
    >>> model = OperatorKernelVAR().fit(X)
    >>> model.granger_.argmax(axis=1)
    array([2, 0, 1])
    >>> model.forecast(5).shape
    (5, 3)
    """

    def __init__(
        self,
        kernel: str = "hadamard",
        *,
        lags: int = 1,
        alpha: float = 1.0,
        gamma: float | None = None,
        output_gamma: float | None = None,
        penalty: str = "frobenius",
        norm: float = 1.0,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.lags = lags
        self.alpha = alpha
        self.gamma = gamma
        self.output_gamma = output_gamma
        self.penalty = penalty
        self.norm = norm
        self.solver_params = solver_params

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a series.

        Parameters
        ----------
        X : array-like or data frame of shape (n_steps, p)
            One row for every step, in their order.
        y : ignored
        """
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("penalty", self.penalty, PENALTIES)
        check_integer("lags", self.lags, low=1)
        check_positive("alpha", self.alpha)
        for name in ("gamma", "output_gamma"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), zero_allowed=True)
        check_real("norm", self.norm, "a number of at least 1", 1.0)
        settings = check_solver_params(self.solver_params)
        check_numeric_columns(X)
        series = np.asarray(validate_rows(self, X, dtype=np.float64, ensure_min_samples=2))
        if len(series) < self.lags + 2:
            raise ValueError(
                f"X must have at least lags + 2 = {self.lags + 2} steps, got n_samples = "
                f"{len(series)}; use fewer lags or a longer series"
            )
        check_range("X", series)
        self.mean_ = series.mean(axis=0)
        spread = series.std(axis=0)
        self.scale_ = np.where(spread > 10 * np.finfo(float).eps * np.abs(self.mean_), spread, 1.0)
        self.last_ = series[-self.lags :]
        self._learn((series - self.mean_) / self.scale_, settings)
        return self

    def forecast(self, steps: int, X: Any = None) -> Array:
        """Predict the steps after the training series, or after another series.

        Parameters
        ----------
        steps : int
        X : array-like of shape (n_steps, p), optional
            At least ``lags`` rows; the forecast continues from the last ones.

        Returns
        -------
        ndarray of shape (steps, p)
        """
        check_is_fitted(self)
        check_integer("steps", steps, low=1)
        recent = self.last_ if X is None else self._series_of(X, self.lags)[-self.lags :]
        path = list((recent - self.mean_) / self.scale_)
        for _ in range(steps):
            window = lag_windows(np.array(path[-self.lags :]), self.lags)
            path.append(self._model.predict(window)[0])
        return np.asarray(np.array(path[self.lags :]) * self.scale_ + self.mean_)

    def one_step(self, X: Any) -> Array:
        """Predict every step of a series from the steps before it.

        Returns
        -------
        ndarray of shape (n_steps - lags, p)
            For rows ``lags``, ``lags + 1``, ... of X.
        """
        check_is_fitted(self)
        series = self._series_of(X, self.lags + 1)
        windows = lag_windows((series - self.mean_) / self.scale_, self.lags)[:-1]
        return np.asarray(self._model.predict(windows) * self.scale_ + self.mean_)

    def score(self, X: Any, y: Any = None) -> float:
        """One minus the squared error of `one_step` over the variances of training, averaged."""
        predicted = self.one_step(X)
        actual = self._series_of(X, self.lags + 1)[self.lags :]
        return 1.0 - float(np.mean(((actual - predicted) / self.scale_) ** 2))

    def jacobian(self, X: Any) -> Array:
        """Derivatives of the next step by the steps before it.

        Parameters
        ----------
        X : array-like of shape (n_steps, p)

        Returns
        -------
        ndarray of shape (n_steps - lags + 1, p, p, lags)
            Of target i by variable j and lag k, lag 0 being the last step of a window, one for
            every window.
        """
        check_is_fitted(self)
        series = self._series_of(X, self.lags)
        slopes = self._model.jacobian(lag_windows((series - self.mean_) / self.scale_, self.lags))
        units = self.scale_[:, None] / self.scale_  # d (scale_i h_i) / d (scale_j x_j)
        return np.asarray(slopes * units[:, :, None])

    def _series_of(self, X: Any, least: int) -> Array:
        """Checked steps of X, at least ``least`` of them."""
        series = np.asarray(validate_rows(self, X, reset=False, dtype=np.float64))
        if len(series) < least:
            raise ValueError(
                f"X must have at least {least} steps with lags={self.lags}, got {len(series)}"
            )
        return series

    def _learn(self, series: Array, settings: dict[str, Any]) -> None:
        """Learn from the standardised series, and store the result."""
        windows, targets = lag_windows(series, self.lags)[:-1], series[self.lags :]
        p, lags = windows.shape[1:]
        self._model: AdditiveModel | HadamardModel
        if self.kernel == "additive":
            gamma = 0.5 / lags if self.gamma is None else float(self.gamma)
            self._model, result = learn_additive(
                windows, targets, float(self.alpha), gamma=gamma, norm=float(self.norm), **settings
            )
            self.kernel_weights_, self.granger_ = result.weights, result.weights.T.copy()
        else:
            self._model, result = learn_hadamard(
                windows,
                targets,
                float(self.alpha),
                gamma=2.0 / (p * lags) if self.gamma is None else float(self.gamma),
                output_gamma=0.2 / lags if self.output_gamma is None else float(self.output_gamma),
                penalty=OutputPenalty(self.penalty, constraint=True),
                **settings,
            )
            self.output_kernel_ = result.L
            slopes = self._model.jacobian(windows)  # (n, p, p, lags)
            self.granger_ = np.linalg.norm(slopes, axis=3).mean(axis=0)
        self.X_fit_, self.dual_coef_ = windows, result.C
        store_certificate(self, result, self.solver_params, "the kernel has")
