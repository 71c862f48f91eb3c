"""Nonlinear vector autoregression with alpha chosen on later steps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import TimeSeriesSplit

from ..linalg import Array
from ..parameters import check_grid, check_positive
from .operator_kernel_var import OperatorKernelVAR

__all__ = ["OperatorKernelVARCV"]

ALPHAS = tuple(10.0 ** np.arange(-3, 3))


class OperatorKernelVARCV(OperatorKernelVAR):
    """Vector autoregression with alpha chosen by errors on steps that come after those learned from.

    Parameters
    ----------
    kernel : {"hadamard", "additive"}, default="hadamard"
    alphas : array-like of float, default=(0.001, 0.01, 0.1, 1, 10, 100)
        Positive values to choose from.
    cv : int or splitter, default=4
        An integer stands for that many of scikit-learn's `TimeSeriesSplit`. Splits in which a step that is
        tested comes before one that is learned from are refused.
    lags, gamma, output_gamma, penalty, norm, max_iter, tol
        As in `OperatorKernelVAR`.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha, the largest of those with the best score.
    best_score_ : float
    cv_results_ : dict of ndarray
        ``alpha``, ``mean_test_score`` and ``split0_test_score``, ...
    n_splits_ : int
    granger_, output_kernel_, kernel_weights_, dual_coef_, X_fit_, mean_, scale_, last_, duality_gap_, \
objective_, n_iter_, converged_, stop_reason_
        Of the fit to the whole series, as in `OperatorKernelVAR`.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import OperatorKernelVARCV
    >>> rng = np.random.default_rng(0)
    >>> X = np.zeros((100, 2))
    >>> for t in range(99):
    ...     X[t + 1] = np.tanh(2 * X[t, [1, 0]]) + 0.3 * rng.normal(size=2)
    >>> model = OperatorKernelVARCV().fit(X)
    >>> bool(model.alpha_ in model.alphas)
    True
    """

    def __init__(
        self,
        kernel: str = "hadamard",
        *,
        alphas: ArrayLike = ALPHAS,
        cv: Any = 4,
        lags: int = 1,
        gamma: float | None = None,
        output_gamma: float | None = None,
        penalty: str = "frobenius",
        norm: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.cv = cv
        self.lags = lags
        self.gamma = gamma
        self.output_gamma = output_gamma
        self.penalty = penalty
        self.norm = norm
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose alpha on later steps, then learn from the whole series."""
        alphas = [float(alpha) for alpha in check_grid("alphas", self.alphas)]
        for alpha in alphas:
            check_positive("alphas", alpha)
        self._check_parameters()
        series = self._take_series(X)
        splits = self._splits(len(series))
        scores = np.array([[self._held_out(series, alpha, *split) for split in splits] for alpha in alphas])
        mean = scores.mean(axis=1)
        best = np.flatnonzero(mean == mean.max())
        self.alpha_ = max(alphas[i] for i in best)
        self.best_score_, self.n_splits_ = float(mean.max()), len(splits)
        self.cv_results_ = {
            "alpha": np.array(alphas),
            "mean_test_score": mean,
            **{f"split{i}_test_score": scores[:, i] for i in range(len(splits))},
        }
        self._learn(series, self.alpha_)
        self._warn_unless_converged()
        return self

    def _splits(self, n: int) -> list[tuple[Any, Any]]:
        splitter = TimeSeriesSplit(int(self.cv)) if isinstance(self.cv, int | np.integer) else self.cv
        try:
            splits = list(splitter.split(np.empty((n, 1))) if hasattr(splitter, "split") else splitter)
        except ValueError as error:
            raise ValueError(f"cv={self.cv!r} cannot split n_samples = {n} steps: {error}") from error
        for train, test in splits:
            if np.max(train) >= np.min(test):
                raise ValueError(
                    "cv must test on steps after all it learns from; use TimeSeriesSplit, or an int"
                )
            if len(train) < self.lags + 2:
                raise ValueError(
                    f"cv={self.cv!r} leaves {len(train)} of n_samples = {n} steps to learn from, and lags="
                    f"{self.lags} needs {self.lags + 2}; use fewer splits, or a longer series"
                )
        return splits

    def _held_out(self, series: Array, alpha: float, train: Any, test: Any) -> float:
        """Score of later steps; the last of those learned from are known when the first is predicted."""
        settings = {
            name: getattr(self, name)
            for name in ("kernel", "lags", "gamma", "output_gamma", "penalty", "norm", "max_iter", "tol")
        }
        model = OperatorKernelVAR(alpha=alpha, **settings)
        model._learn(series[train], alpha)
        model.n_features_in_ = series.shape[1]
        known = series[np.max(train) - self.lags + 1 : np.max(train) + 1]
        return model.score(np.vstack([known, series[test]]))
