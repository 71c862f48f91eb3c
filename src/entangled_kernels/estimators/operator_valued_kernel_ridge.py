"""Kernel ridge regression with any operator-valued kernel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..block_solvers import SOLVERS, Factor, factorize, lowest_eigenvalue
from ..kernels import OperatorValuedKernel, SeparableKernel
from ..linalg import BlockOperator
from ..parameters import check_choice, check_integer, check_positive

__all__ = ["OperatorValuedKernelRidge"]

Array = NDArray[np.float64]

INDEFINITE = ("error", "krein")
INDEFINITE_TOLERANCE = 1e-8
STD_CHUNK_NUMBERS = 2**22


class OperatorValuedKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Ridge regression in the space of an operator-valued kernel.

    Minimises ``sum_i ||y_i - f(x_i)||^2 + alpha ||f||^2`` over f(x) = sum_i K(x, x_i) c_i, that is, solves
    (G + alpha I) c = y with the block Gram matrix G, by a solver that suits the structure of the kernel.

    Parameters
    ----------
    kernel : OperatorValuedKernel, optional
        Any kernel of `entangled_kernels.kernels`. None is the separable linear kernel <x, z> I_p, which is
        scikit-learn's `KernelRidge` with its default kernel.
    alpha : float, default=1.0
        Ridge penalty, as in scikit-learn's `KernelRidge`.
    solver : {"auto", "kronecker", "low_rank_separable", "low_rank", "cg", "dense"}, default="auto"
        "auto" chooses by the structure of the block Gram matrix; the choice is in `solver_`.
    indefinite : {"error", "krein"}, default="error"
        What to do when the training Gram matrix has negative eigenvalues. "krein" solves the stabilised
        problem, with penalty c^T |G| c, by an eigendecomposition.
    tol : float, default=1e-10
        Relative residual at which the "cg" solver stops.
    max_iter : int, default=1000
        Largest number of iterations of the "cg" solver.

    Attributes
    ----------
    kernel_ : OperatorValuedKernel
        The kernel used.
    solver_ : str
        The solver used.
    dual_coef_ : array of shape (n, p) or (n,)
        Coefficients c_i.
    X_fit_ : array of shape (n, d)
        Training points.
    indefinite_ : bool
        Whether the training Gram matrix had negative eigenvalues.
    n_iter_ : int
        Iterations of "cg"; 1 for the direct solvers.
    residual_ : float
        Relative residual of "cg"; 0.0 for the direct solvers, where it is not measured.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    Time to fit: n^3 + p^3 for "kronecker", m^3 + m^2 n + p^3 for "low_rank_separable",
    m^2 n + m p r^2 + r^3 for "low_rank", n^3 p^3 for "dense".

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
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.solver = solver
        self.indefinite = indefinite
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n, p) or (n,)

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        self._one_dimensional = y.ndim == 1
        Y = y.reshape(len(y), -1)
        self.kernel_ = self._resolve_kernel(Y.shape[1])
        self.X_fit_ = np.asarray(X)
        operator = self.kernel_(X)
        self.indefinite_ = self._check_definite(operator)
        self._factor: Factor
        self._factor, self.solver_ = factorize(
            operator, self.solver, krein=self.indefinite_, tol=self.tol, max_iter=self.max_iter
        )
        self._Y = Y
        coefficients = self._solve(Y[:, :, None], self.alpha)[:, :, 0]
        self.n_iter_ = max(1, getattr(self._factor, "n_iter", 1))
        self.residual_ = float(getattr(self._factor, "residual", 0.0))
        self.dual_coef_ = self._like_y(coefficients)
        return self

    def _check_parameters(self) -> None:
        if self.kernel is not None and not isinstance(self.kernel, OperatorValuedKernel):
            raise TypeError(
                f"kernel must be None or a kernel of entangled_kernels.kernels, got {self.kernel!r}; for a "
                "scalar kernel k and p independent outputs use SeparableKernel(k, numpy.eye(p))"
            )
        check_positive("alpha", self.alpha)
        check_choice("solver", self.solver, ["auto", *SOLVERS])
        check_choice("indefinite", self.indefinite, INDEFINITE)
        check_positive("tol", self.tol)
        check_integer("max_iter", self.max_iter, low=1)

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
        """Whether the Gram matrix is indefinite; then an error, unless indefinite="krein"."""
        if self.kernel_.guaranteed_psd:
            return False
        lowest, scale = lowest_eigenvalue(operator)
        indefinite = lowest < -INDEFINITE_TOLERANCE * scale
        if indefinite and self.indefinite == "error":
            raise ValueError(
                f"kernel is indefinite on the training points: its Gram matrix has eigenvalue {lowest:.3g} "
                f"(largest in size {scale:.3g}). Use indefinite='krein' for the stabilised problem, or a psd "
                "kernel."
            )
        return indefinite

    def _ready_factor(self) -> Factor:
        """Return the factorisation of `fit`, made again after unpickling."""
        if not hasattr(self, "_factor"):
            self._factor, _ = factorize(
                self.kernel_(self.X_fit_),
                self.solver_,
                krein=self.indefinite_,
                tol=self.tol,
                max_iter=self.max_iter,
            )
        return self._factor

    def __getstate__(self) -> dict[str, Any]:
        # The factorisation is larger than the model, and lazy operators hold functions that do not pickle.
        return {name: value for name, value in super().__getstate__().items() if name != "_factor"}

    def _solve(self, R: Array, alpha: float) -> Array:
        factor = self._ready_factor()
        solved = factor.solve(R, alpha)
        residual = getattr(factor, "residual", 0.0)
        if residual > 10 * self.tol:
            warnings.warn(
                f"Conjugate gradients stopped at relative residual {residual:.2g}, above tol={self.tol:.2g}; "
                "raise max_iter, alpha or tol, or use solver='dense'.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solved

    def _like_y(self, A: Array) -> Array:
        return A[..., 0] if self._one_dimensional else A

    def _check_points(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict targets, and their standard deviations in the Gaussian-process view.

        Parameters
        ----------
        X : array of shape (t, d)
        return_std : bool, default=False
            Also return the posterior standard deviation of f(x) for noise variance alpha and prior
            covariance K. The noise itself is not included. Needs a psd kernel.

        Returns
        -------
        y : array of shape (t, p) or (t,)
        std : array of the same shape
            Only with ``return_std=True``.
        """
        points = self._check_points(X)
        mean = self.kernel_(points, self.X_fit_) @ self.dual_coef_.reshape(-1)
        mean = self._like_y(mean.reshape(len(points), self.kernel_.n_outputs))
        return (mean, self._like_y(self._standard_deviation(points))) if return_std else mean

    def _standard_deviation(self, X: Array) -> Array:
        if self.indefinite_:
            raise ValueError("return_std=True needs a psd kernel: an indefinite one is no covariance.")
        n, p = len(self.X_fit_), self.kernel_.n_outputs
        variance = np.array(np.einsum("ioo->io", self.kernel_.diag(X)))  # (t, p)
        step = max(1, STD_CHUNK_NUMBERS // (n * p * p))
        for start in range(0, len(X), step):
            rows = slice(start, min(start + step, len(X)))
            cross = self.kernel_(self.X_fit_, X[rows]).to_dense().reshape(n, p, -1)  # (n, p, t*p)
            explained = np.einsum("noc,noc->c", cross, self._solve(cross, self.alpha))
            variance[rows] -= explained.reshape(-1, p)
        return np.asarray(np.sqrt(np.clip(variance, 0.0, None)))

    def alpha_path(self, alphas: Sequence[float] | Array) -> Array:
        """Dual coefficients for other penalties, from the factorisation that `fit` made.

        "kronecker" and "dense" share one tridiagonal reduction and the low-rank solvers one
        eigendecomposition between all alphas; "cg" solves again for each.

        Parameters
        ----------
        alphas : sequence of positive floats

        Returns
        -------
        array of shape (len(alphas), n, p) or (len(alphas), n)
        """
        check_is_fitted(self)
        values = np.asarray(alphas, dtype=np.float64).ravel()
        if not (values > 0).all():
            raise ValueError(f"alphas must be positive, got {values.min():.3g}.")
        path = [self._solve(self._Y[:, :, None], float(alpha))[:, :, 0] for alpha in values]
        return self._like_y(np.reshape(path, (len(values), *self._Y.shape)))

    def loo_residuals(self, alpha: float | None = None) -> Array:
        """Leave-one-out residuals y_i - f_{-i}(x_i), with f_{-i} fitted without sample i and all its outputs.

        Exact for a fixed kernel: with C = (G + alpha I)^-1, the residual is C_ii^-1 c_i, by the p x p
        diagonal block of sample i. A kernel that was itself learned from the targets, or a feature map
        that was fitted on all samples, has seen sample i, and then these residuals are too small.

        Parameters
        ----------
        alpha : float, optional
            Another penalty than that of the fit.

        Returns
        -------
        array of shape (n, p) or (n,)
        """
        check_is_fitted(self)
        if self.indefinite_:
            raise ValueError(
                "loo_residuals needs a psd kernel: leaving a sample out changes the stabilised problem."
            )
        alpha = self.alpha if alpha is None else alpha
        coefficients = self._solve(self._Y[:, :, None], alpha)
        blocks = self._ready_factor().inverse_diagonal_blocks(alpha)
        return self._like_y(np.asarray(np.linalg.solve(blocks, coefficients)[:, :, 0], dtype=np.float64))
