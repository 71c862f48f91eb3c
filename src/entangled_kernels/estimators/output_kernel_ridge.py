"""Kernel ridge regression of several targets that learns the kernel between the targets."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from ..output_kernel import OutputKernelResult, learn_output_kernel, reduce_problem
from ..parameters import check_choice, check_integer, check_positive, check_weights
from .targets import TargetsMixin

__all__ = ["OutputKernelModel", "OutputKernelRidge"]

Array = NDArray[np.float64]

KERNELS = (*sorted(PAIRWISE_KERNEL_FUNCTIONS), "precomputed")


class OutputKernelModel(TargetsMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """What the estimators of this family share: the input kernel, and predicting from dual coefficients."""

    kernel: Any
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    rank: int | None
    fit_intercept: bool
    max_iter: int
    tol: float

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            With ``kernel="precomputed"``, the kernel between new and training rows, (n, n_samples).

        Returns
        -------
        ndarray of shape (n, p), or (n,) when y was one-dimensional
            A frame when `set_output` asked for one.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return self._finish(self._gram(rows, self.X_fit_) @ self._coef + self.intercept_, X)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        sparse = ("csr", "csc") if self.kernel != "precomputed" else False
        return validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=[np.float64, np.float32])

    def _gram(self, X: Any, Z: Any) -> Array:
        """Input kernel between rows; new rows and training rows, or training rows and themselves."""
        if callable(self.kernel):
            settings = self.kernel_params or {}
        else:
            settings = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        K = pairwise_kernels(X, Z, metric=self.kernel, filter_params=True, **settings)
        return np.asarray(K, dtype=np.float64)

    def _take_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, Array, Array | None]:
        """Checked rows, targets (n, p) and weights."""
        self._check_parameters()
        targets = self._take_targets(y)
        rows = self._rows(X, reset=True)
        check_consistent_length(rows, targets)
        if self.kernel == "precomputed" and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"X must be a square matrix with kernel='precomputed', got shape {rows.shape}; pass "
                f"the kernel between all training rows"
            )
        targets = targets.reshape(len(targets), -1)
        if self.rank is not None and self.rank > targets.shape[1]:
            raise ValueError(
                f"rank must be at most the number of targets, {targets.shape[1]}, got {self.rank}; use "
                f"rank=None for the full rank with the Frobenius penalty"
            )
        return rows, targets, check_weights(sample_weight, len(targets))

    def _check_parameters(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_positive("tol", self.tol, zero_allowed=True)
        check_integer("max_iter", self.max_iter, low=1)
        if self.rank is not None:
            check_integer("rank", self.rank, low=1)

    def _store(self, rows: Any, result: OutputKernelResult) -> None:
        self.X_fit_ = rows
        self._coef = result.C @ result.L  # (n, p)
        flat = self._one_dimensional
        self.dual_coef_ = result.C[:, 0] if flat else result.C
        self.intercept_ = result.intercept
        self.output_kernel_ = result.L
        self.objective_history_ = result.history
        self.n_iter_, self.converged_, self.stop_reason_ = result.n_iter, result.converged, result.reason

    def _warn_unless_converged(self, result: OutputKernelResult) -> None:
        if result.converged:
            return
        ways = {
            "max_iter": f"after max_iter={self.max_iter} steps; raise max_iter or tol",
            "stalled": f"though no step lowers the objective any further, after {result.n_iter}; raise tol",
        }
        warnings.warn(
            f"the output kernel has not converged to tol={self.tol} {ways[result.reason]}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


class OutputKernelRidge(OutputKernelModel):
    """Kernel ridge regression that learns how the targets hang together.

    The kernel is k(x, z) L, with k chosen as in `sklearn.kernel_ridge.KernelRidge` and L (p, p), the kernel
    between the targets, learned with the coefficients: output kernel learning.

    Parameters
    ----------
    kernel : str or callable, default="linear"
        Input kernel k, as in `sklearn.kernel_ridge.KernelRidge`: a name that
        `sklearn.metrics.pairwise.pairwise_kernels` knows, ``"precomputed"``, or a function of two rows. It
        has to be positive semi-definite.
    gamma : float or None, default=None
        For the kernels rbf, laplacian, poly, chi2 and sigmoid; None leaves it to the kernel.
    degree : float, default=3
        For the polynomial kernel.
    coef0 : float, default=1
        For the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Further arguments of a kernel that is a function.
    alpha : float, default=1.0
        Weight of both penalties, positive. It depends on the scale of kernel and targets, more than in
        `KernelRidge`: standardise the targets, or let `OutputKernelRidgeCV` choose.
    rank : int or None, default=None
        Largest rank of L. With a rank the penalty on L is its trace, which by itself already favours low
        ranks, in the place of the squared Frobenius norm.
    max_iter : int, default=1000
        Largest number of updates of L.
    tol : float, default=1e-3
        Relative error allowed in L (without a rank); with a rank, relative size of the gradient.
    fit_intercept : bool, default=True
        Whether each target has a constant that is not penalised. `KernelRidge` has none; here it is the
        default because without it the means of the targets are learned as if they were structure, and take
        over L.

    Attributes
    ----------
    output_kernel_ : ndarray of shape (p, p)
        The learned L, positive semi-definite.
    dual_coef_ : ndarray of shape (n_samples, p), or (n_samples,) when y was one-dimensional
        C, with predictions K C L + intercept.
    intercept_ : ndarray of shape (p,)
        Zero without an intercept.
    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Training rows, or the kernel between them when it is precomputed.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after every update of L; it never rises.
    n_iter_ : int
    converged_ : bool
    stop_reason_ : str
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        When X had string column names.
    target_names_ : ndarray of shape (p,)
        When y was a data frame or a named series.

    See Also
    --------
    OutputKernelRidgeCV : Chooses alpha by cross-validation.
    sklearn.kernel_ridge.KernelRidge : L = I, and no intercept.

    Notes
    -----
    For centred K and Y the fit minimises, over C and positive semi-definite L,

        ||Y - K C L||^2 / (2 alpha) + tr(C^T K C L) / 2 + ||L||^2 / 2

    which has one minimum, with K C L + alpha C = Y and L = C^T K C / 2. A sample weight w_i multiplies the
    squared errors of row i, so it counts as that many copies of the row, and the equation reads w_i (K C L
    - Y)_i + alpha C_i = 0. `entangled_kernels.output_kernel.learn_output_kernel` has the derivation.

    Time n^3 once for the eigenvalues of K, then n p^2 + p^3 for an update of L, of which there are few;
    n p a row to predict, beside the kernel.

    References
    ----------
    F. Dinuzzo, C. S. Ong, P. Gehler and G. Pillonetto, "Learning output kernels with block coordinate
    descent", ICML 2011.

    F. Dinuzzo and K. Fukumizu, "Learning low-rank output kernels", ACML 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from entangled_kernels import OutputKernelRidge
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> Y = StandardScaler().fit_transform(Y)
    >>> model = make_pipeline(StandardScaler(), OutputKernelRidge(alpha=10.0)).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 3)
    >>> model[-1].output_kernel_.round(2)
    array([[ 0.15,  0.18, -0.06],
           [ 0.18,  0.26, -0.08],
           [-0.06, -0.08,  0.03]])
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        rank: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.rank = rank
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the output kernel and the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel between all rows, (n_samples, n_samples).
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            The targets, Y in the formulas.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative weights of the squared errors; they count as that many copies of the row.

        Returns
        -------
        self
        """
        check_positive("alpha", self.alpha)
        rows, Y, weight = self._take_rows(X, y, sample_weight)
        problem = reduce_problem(self._gram(rows, rows), Y, weight, centred=self.fit_intercept)
        result = learn_output_kernel(
            problem, float(self.alpha), rank=self.rank, max_iter=self.max_iter, tol=self.tol
        )
        self._warn_unless_converged(result)
        self._store(rows, result)
        return self
