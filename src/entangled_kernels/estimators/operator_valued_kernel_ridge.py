"""Kernel ridge regression with any operator-valued kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, gen_batches
from sklearn.utils.validation import check_is_fitted

from ..kernels import SOLVERS, BlockRidge, OperatorValuedKernel, SeparableKernel, lowest_eigenvalue
from ..linalg import Array, BlockOperator
from ..parameters import (
    check_alphas,
    check_choice,
    check_flag,
    check_integer,
    check_positive,
    validate_rows,
    warn_user,
)
from .base import MultiTargetRegressor, check_weighted_targets, drop_missing_rows

__all__ = ["OperatorValuedKernelRidge"]

INDEFINITE = ("error", "krein")
INDEFINITE_TOLERANCE = 1e-8
STD_CHUNK_NUMBERS = 2**22


class OperatorValuedKernelRidge(MultiTargetRegressor):
    """Ridge regression in the space of an operator-valued kernel, also with missing targets.

    Minimises ``sum_i ||y_i - f(x_i)||^2 + alpha ||f||^2`` over f(x) = sum_i K(x, x_i) c_i, that is,
    solves (G + alpha I) c = y with the block Gram matrix G. The solver uses the structure of the
    kernel. Targets may be missing (NaN), rows or single targets may have weights, and outputs may
    have intercepts.

    Parameters
    ----------
    kernel : OperatorValuedKernel, optional
        Any kernel of `entangled_kernels.kernels`. None is the separable linear kernel <x, z> I_p,
        which is scikit-learn's `KernelRidge` with its default kernel.
    alpha : float, default=1.0
        Ridge penalty, as in scikit-learn's `KernelRidge`.
    solver : {"auto", "kronecker", "low_rank_separable", "low_rank", "cg", "dense"}, default="auto"
        "auto" chooses by the structure of the block Gram matrix. `solver_` is the choice, and
        `entangled_kernels.kernels.select_solver` explains it. With missing targets, or weights that
        differ within rows, "kronecker" becomes "cg", which iterates in the eigenbasis of complete
        data.
    indefinite : {"error", "krein"}, default="error"
        What to do if the training Gram matrix has negative eigenvalues. "krein" solves the
        stabilised problem, with penalty c^T |G| c, by an eigendecomposition.
    tol : float, default=1e-10
        Relative residual at which the "cg" solver stops.
    max_iter : int, default=1000
        Largest number of iterations of the "cg" solver.
    fit_intercept : bool, default=False
        Whether each output has a constant that is not penalised. `KernelRidge` has none.

    Attributes
    ----------
    kernel_ : OperatorValuedKernel
        The kernel used.
    solver_ : str
        The solver used.
    dual_coef_ : array of shape (n, p) or (n,)
        Coefficients c_i of the rows of `X_fit_`, zero for missing targets.
    intercept_ : array of shape (p,)
        Constants of the outputs; zero without an intercept.
    X_fit_ : array of shape (n, d)
        Training points. Rows without a target, or with weight zero, are left out.
    indefinite_ : bool
        Whether the training Gram matrix had negative eigenvalues.
    n_iter_ : int
        Iterations of "cg"; 1 for the direct solvers.
    residual_ : float
        Relative residual of "cg"; 0.0 for the direct solvers, where it is not computed.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        When X had string column names.
    target_names_ : array of shape (p,)
        When y was a data frame or a named series.

    Notes
    -----
    With weights w_io, zero for missing targets, and intercepts b the fit minimises

        sum w_io (y_io - f_o(x_i) - b_o)^2 + alpha ||f||^2.

    c is zero for missing targets, and (G + alpha W^-1) c = y - b for all others.

    Time to fit complete data, also with weights of rows: n^3 + p^3 for "kronecker",
    m^3 + m^2 n + p^3 for "low_rank_separable", m^2 n + m p r^2 + r^3 for "low_rank", n^3 p^3 for
    "dense". If N of the n p targets are not missing: N^3 for "dense", n^3 + p^3 and n^2 p + n p^2
    per iteration for "cg" with a separable kernel, and m^2 n p + (m p)^3 for "low_rank_separable".
    An intercept costs p more right-hand sides.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.kernels import SeparableKernel
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> Y = np.hstack([np.sin(3 * X), np.cos(3 * X)])
    >>> model = OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(2)), alpha=1e-3).fit(X, Y)
    >>> model.solver_
    'kronecker'
    >>> bool(model.score(X, Y) > 0.99)
    True

    Half of the second output is missing:

    >>> Y[::2, 1] = np.nan
    >>> model.fit(X, Y).predict([[0.5]]).round(2)
    array([[1.  , 0.07]])
    """

    def __init__(
        self,
        kernel: OperatorValuedKernel | None = None,
        alpha: float = 1.0,
        solver: str = "auto",
        *,
        indefinite: str = "error",
        tol: float = 1e-10,
        max_iter: int = 1000,
        fit_intercept: bool = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.solver = solver
        self.indefinite = indefinite
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like or data frame of shape (n, p) or (n,)
            NaN is a missing target. Every column needs a value in some row.
        sample_weight : number or array-like of shape (n,) or (n, p), optional
            Weights of squared errors, not negative. A whole number counts as that many copies, zero
            as a missing target.

        Returns
        -------
        self
        """
        self._check_parameters()
        targets = self._take_targets(y, missing=True)
        names = getattr(self, "target_names_", None)
        Y, weights = check_weighted_targets(targets, sample_weight, names)
        points = np.asarray(validate_rows(self, X, dtype=np.float64))
        check_consistent_length(points, Y)
        self._kept_rows, Y, weights = drop_missing_rows(Y, weights, names)
        self.kernel_ = self._resolve_kernel(Y.shape[1])
        if not self._kept_rows.all():
            points = points[self._kept_rows]
        self.X_fit_, self._Y, self._weights = points, Y, weights
        operator = self.kernel_(points)
        self.indefinite_ = self._check_definite(operator)
        self.solver_ = self.solver
        self._make_ridge(operator)
        coefficients, self.intercept_ = self._ridge.coefficients(Y, self.alpha)
        self.n_iter_ = self._ridge.n_iter
        self.residual_ = self._ridge.residual
        self._warn_unless_solved()
        self.dual_coef_ = self._targets_like_y(coefficients)
        return self

    def _check_parameters(self) -> None:
        if self.kernel is not None and not isinstance(self.kernel, OperatorValuedKernel):
            raise TypeError(
                "kernel must be None or a kernel of entangled_kernels.kernels, got "
                f"{self.kernel!r}; for a scalar kernel k and p independent outputs use "
                "SeparableKernel(k, numpy.eye(p))"
            )
        check_positive("alpha", self.alpha)
        check_choice("solver", self.solver, ["auto", *SOLVERS])
        check_choice("indefinite", self.indefinite, INDEFINITE)
        check_positive("tol", self.tol)
        check_integer("max_iter", self.max_iter, low=1)
        check_flag("fit_intercept", self.fit_intercept)

    def _resolve_kernel(self, p: int) -> OperatorValuedKernel:
        if self.kernel is None:
            return SeparableKernel("linear", np.eye(p))
        if self.kernel.n_outputs != p:
            raise ValueError(
                f"y has {p} output(s), but kernel has {self.kernel.n_outputs}; give a kernel with "
                f"n_outputs={p}, or kernel=None for the linear kernel."
            )
        return self.kernel

    def _check_definite(self, operator: BlockOperator) -> bool:
        """Whether the Gram matrix is indefinite; raise in that case, unless indefinite="krein"."""
        if self.kernel_.guaranteed_psd:
            return False
        lowest, scale = lowest_eigenvalue(operator)
        indefinite = lowest < -INDEFINITE_TOLERANCE * scale
        if indefinite and self.indefinite == "error":
            raise ValueError(
                f"kernel is indefinite on the training points: its Gram matrix has eigenvalue "
                f"{lowest:.3g} (largest in size {scale:.3g}). Use indefinite='krein' for the "
                "stabilised problem, or a psd kernel."
            )
        if indefinite and self.fit_intercept:
            raise ValueError(
                "fit_intercept=True needs a psd kernel, got one that is indefinite on the training "
                "points; centre y, and use fit_intercept=False."
            )
        return indefinite

    def _make_ridge(self, operator: BlockOperator) -> None:
        """Factorise with the solver in `solver_`, and set it to the solver used."""
        self._ridge = BlockRidge(
            operator,
            self._weights,
            self.solver_,
            fit_intercept=self.fit_intercept,
            krein=self.indefinite_,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self.solver_ = self._ridge.solver

    def _ready_ridge(self) -> BlockRidge:
        """The factorisation of `fit`; after unpickling it is computed again."""
        check_is_fitted(self)
        if not hasattr(self, "_ridge"):
            self._make_ridge(self.kernel_(self.X_fit_))
        return self._ridge

    def __getstate__(self) -> dict[str, Any]:
        # The factorisation is larger than the model, and lazy operators may not be picklable.
        return {name: value for name, value in super().__getstate__().items() if name != "_ridge"}

    def _warn_unless_solved(self) -> None:
        residual, self._ridge.residual = self._ridge.residual, 0.0
        if residual > 10 * self.tol:
            warn_user(
                f"Conjugate gradients stopped at relative residual {residual:.2g}, above "
                f"tol={self.tol:.2g}; raise max_iter, alpha or tol, or use solver='dense'.",
                ConvergenceWarning,
            )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets, and their standard deviations in the Gaussian-process view.

        Parameters
        ----------
        X : array-like or data frame of shape (t, d)
        return_std : bool, default=False
            Also return the posterior standard deviation of f(x) + b. The noise variance is alpha
            divided by the weight, the prior covariance is K, and the prior on b is flat. The noise
            itself is not included. Needs a psd kernel.

        Returns
        -------
        y : array of shape (t, p) or (t,)
            A frame when `set_output` asked for one.
        std : array or frame of the same shape
            Only with ``return_std=True``.
        """
        check_is_fitted(self)
        points = np.asarray(validate_rows(self, X, reset=False, dtype=np.float64))
        mean = self.kernel_(points, self.X_fit_) @ self.dual_coef_.reshape(-1)
        mean = mean.reshape(len(points), self.kernel_.n_outputs) + self.intercept_
        if not return_std:
            return self._finish(mean, X)
        return self._finish(mean, X), self._finish(self._standard_deviation(points), X)

    def _standard_deviation(self, X: Array) -> Array:
        if self.indefinite_:
            raise ValueError(
                "return_std=True needs a psd kernel: an indefinite one is no covariance."
            )
        n, p = self._Y.shape
        ridge = self._ready_ridge()
        variance = np.array(np.einsum("ioo->io", self.kernel_.diag(X)))  # (t, p)
        for rows in gen_batches(len(X), max(1, STD_CHUNK_NUMBERS // (n * p * p))):
            cross = self.kernel_(self.X_fit_, X[rows]).to_dense().reshape(n, p, -1)  # (n, p, t*p)
            variance[rows] -= ridge.variance_reduction(cross, self.alpha)
        self._warn_unless_solved()
        return np.asarray(np.sqrt(np.clip(variance, 0.0, None)))

    def alpha_path(self, alphas: Sequence[float] | Array) -> Array:
        """Dual coefficients for other penalties, from the factorisation that `fit` made.

        For "kronecker" and "dense" all alphas share one tridiagonal reduction, for the low-rank
        solvers one eigendecomposition; "cg" solves again for each. `intercept_path` gives the
        intercepts.

        Parameters
        ----------
        alphas : sequence of positive floats

        Returns
        -------
        array of shape (len(alphas), n, p) or (len(alphas), n)
        """
        ridge, values = self._ready_ridge(), check_alphas(alphas)
        path = [ridge.coefficients(self._Y, alpha)[0] for alpha in values]
        self._warn_unless_solved()
        stacked = np.reshape(path, (len(values), *self._Y.shape))
        return stacked[:, :, 0] if self._one_dimensional else stacked

    def intercept_path(self, alphas: Sequence[float] | Array) -> Array:
        """Intercepts for other penalties, shape (len(alphas), p), to be used with `alpha_path`."""
        ridge, values = self._ready_ridge(), check_alphas(alphas)
        path = [ridge.intercepts(self._Y, alpha) for alpha in values]
        self._warn_unless_solved()
        return np.reshape(path, (len(values), self._Y.shape[1]))

    def loo_residuals(self, alpha: float | None = None) -> Array:
        """Leave-one-out residuals y_i - f_{-i}(x_i), with f_{-i} fitted without row i.

        Exact for a fixed kernel: with C = (G + alpha W^-1)^-1, the residual is C_ii^-1 c_i, where
        C_ii is the diagonal block of row i without its missing targets. The residuals are too small
        if the kernel was learned from these targets, or the feature map was fitted on these rows.
        "cg" solves once for every target: use solver="dense" if memory allows.

        Parameters
        ----------
        alpha : float, optional
            Penalty; that of the fit unless given.

        Returns
        -------
        array of shape (n, p) or (n,)
            Like y in `fit`, with NaN for missing targets. With an intercept also NaN if no other
            row has the target.
        """
        ridge = self._ready_ridge()
        if alpha is not None:
            check_positive("alpha", alpha)
        if self.indefinite_:
            raise ValueError(
                "loo_residuals needs a psd kernel: leaving a sample out changes the stabilised "
                "problem."
            )
        residuals = np.full((len(self._kept_rows), self._Y.shape[1]), np.nan)
        residuals[self._kept_rows] = ridge.loo_residuals(
            self._Y, self.alpha if alpha is None else alpha
        )
        self._warn_unless_solved()
        return self._targets_like_y(residuals)
