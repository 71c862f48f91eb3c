"""Kernel ridge regression that learns the weights of several kernels."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..convex import (
    Problem,
    Result,
    learn_diagonal,
    learn_separate,
    learn_shared,
    learn_weights,
    reduce_problem,
)
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_flag,
    check_numeric_columns,
    check_positive,
    check_range,
    check_real,
    check_solver_params,
    validate_rows,
)
from .base import MultiTargetRegressor, check_targets
from .kernel_parts import ColumnKernel, resolve_kernels, store_certificate
from .output_kernel_ridge import check_output_kernel

__all__ = ["MultipleKernelRidge"]

LEARNERS = {
    "identity": learn_weights,
    "diagonal": learn_diagonal,
    "shared": learn_shared,
    "own": learn_separate,
}


class MultipleKernelRidge(MultiTargetRegressor):
    """Ridge regression with a sum of kernels whose weights are learned, such as banded ridge.

    The kernel is sum_j k_j(x, z) T_j, with scalar kernels k_j, such as one for every group of
    columns, and positive semi-definite output kernels T_j (p, p), of which weights or more are
    learned.

    Parameters
    ----------
    kernels : list, dict or None, default=None
        The scalar kernels. A dictionary of named groups of columns, ``{"motion": [0, 1], "colour":
        [2, 3]}``, gives every group a linear kernel. A list has kernels on all columns, or tuples
        ``(name, kernel, columns)``; a kernel is a name that scikit-learn knows, a kernel of
        `sklearn.gaussian_process.kernels`, a function of two rows, or a transformer whose features
        are multiplied. Columns are indices, names or a slice. None is ``["linear", "rbf"]``.
    alpha : float, default=1.0
        Ridge penalty, positive. With one kernel of weight one it is that of
        `sklearn.kernel_ridge.KernelRidge`.
    norm : float, default=1.0
        r, at least 1, of the constraint |d|_r <= 1 on the weights: 1 chooses few kernels, 2 uses
        all.
    output_kernel : str, array or list of arrays, default="identity"
        What T_j is: ``"identity"``, ``"diagonal"``, ``"shared"``, ``"own"``, an array (p, p), or a
        list of arrays, one for each kernel; see Notes.
    normalize : bool, default=True
        Whether every (centred) Gram matrix is divided by the mean of its diagonal, so that weights
        do not depend on the units of columns.
    fit_intercept : bool, default=True
        Whether each target has a constant that is not penalised.
    solver_params : dict or None, default=None
        ``max_iter`` (1000), the largest number of evaluations of the objective, and ``tol``
        (1e-3): the duality gap is at most tol^2 times the objective.

    Attributes
    ----------
    kernel_names_ : list of str
    kernel_weights_ : ndarray of shape (m,), or (m, p) with ``"diagonal"``
        d_j; the share of the trace with ``"own"``.
    output_kernels_ : ndarray of shape (m, p, p)
        T_j, weights included.
    kernel_scales_ : ndarray of shape (m,)
        What the Gram matrices were divided by.
    duality_gap_ : float
        The objective is at most this much above its minimum; with ``"shared"``, above the minima
        over weights and over output kernels, each with the other held fixed.
    objective_ : float
    dual_coef_ : ndarray of shape (n_samples, p), or (n_samples,) when y was one-dimensional
        C, with predictions sum_j K_j C T_j / scale_j + intercept.
    intercept_ : ndarray of shape (p,)
    X_fit_ : ndarray of shape (n_samples, n_features)
    n_iter_ : int
    converged_ : bool
    stop_reason_ : str
    n_features_in_, feature_names_in_, target_names_
        As in `OutputKernelRidge`.

    See Also
    --------
    OutputKernelRidge : One kernel, and more penalties on the output kernel.
    OperatorKernelVAR : These models for time series.

    Notes
    -----
    The fit minimises y^T (G + alpha I)^-1 y / 2 over the parameters of the Gram matrix G, the same
    as

        sum_i ||y_i - sum_j f_j(x_i)||^2 / (2 alpha) + sum_j |f_j|^2 / 2

    with the norms of the kernels k_j T_j. The parameters are, for ``output_kernel``

    - ``"identity"`` or an array T: weights d_j of T_j = d_j T, with |d|_r <= 1;
    - a list of arrays: weights of T_j = d_j times the j-th one;
    - ``"diagonal"``: weights by target, T_j = diag(d_j1, ..., d_jp), with |d_.s|_r <= 1 for every
      target s;
    - ``"shared"``: T_j = d_j L, with L learned as well, tr L <= p. It is the one problem here that
      is not convex;
    - ``"own"``: any psd T_j, with traces that sum to at most p (for r = 1).

    Time n^3 / 3 + n^2 (m + p) for an evaluation with ``"identity"``; with linear kernels n is the
    number of columns in all, if that is smaller. ``"shared"`` takes an eigendecomposition,
    ``"own"`` m n p (n + p) without a ridge system to solve.

    Missing targets have no squared errors. ``"own"`` and ``"diagonal"`` leave them out; the others
    solve complete problems, with values for the missing targets that improve each time, until the
    duality gap is closed. ``"shared"``, which is not convex, also stops when new values no longer lower the
    objective, and its gap may stay larger.

    References
    ----------
    H. Kadri, A. Rakotomamonjy, F. Bach and P. Preux, "Multiple operator-valued kernel learning",
    NIPS 2012.

    V. Sindhwani, H. Q. Minh and A. C. Lozano, "Scalable matrix-valued kernel learning for
    high-dimensional nonlinear multivariate regression and Granger causality", UAI 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import MultipleKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = X[:, :2] @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(100, 3))
    >>> groups = {"first": [0, 1], "second": [2, 3], "third": [4, 5]}
    >>> model = MultipleKernelRidge(groups).fit(X, Y)
    >>> dict(zip(model.kernel_names_, model.kernel_weights_.round(2).tolist()))
    {'first': 1.0, 'second': 0.0, 'third': 0.0}
    >>> model.explained_variance(X, Y)[0].round(2)
    array([1.  , 1.  , 0.98])
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        alpha: float = 1.0,
        norm: float = 1.0,
        output_kernel: Any = "identity",
        normalize: bool = True,
        fit_intercept: bool = True,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        self.kernels = kernels
        self.alpha = alpha
        self.norm = norm
        self.output_kernel = output_kernel
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.solver_params = solver_params

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the weights, output kernels and coefficients.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN is a missing target; rows without any target are left out, and every target has a
            value in some row.
        sample_weight : float or array-like of shape (n_samples,) or (n_samples, p), optional
            Non-negative weights of the squared errors; they count as that many copies of the row or
            target, and a weight of zero is a missing target.

        Returns
        -------
        self
        """
        check_positive("alpha", self.alpha)
        for name in ("normalize", "fit_intercept"):
            check_flag(name, getattr(self, name))
        check_real("norm", self.norm, "a number of at least 1", 1.0)
        targets = self._take_targets(y, missing=True)
        check_numeric_columns(X)
        rows = self._validate(X, reset=True)
        used, Y, weight = self._measured(rows, targets, sample_weight)
        # A copy would change the last bits: scikit-learn takes distances between an array and
        # itself apart.
        rows = rows if used.all() else rows[used]
        given = resolve_kernels(
            self.kernels, rows.shape[1], getattr(self, "feature_names_in_", None)
        )
        learn = self._learner(len(given), Y.shape[1])
        parts = [part.fit(rows, Y, weight) for part in given]
        problem = reduce_problem(
            [part.part(rows) for part in parts],
            Y,
            weight,
            centred=self.fit_intercept,
            normalized=self.normalize,
        )
        self._store(rows, parts, problem, learn(problem))
        return self

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, p), or (n,) when y was one-dimensional
            A frame when `set_output` asked for one.
        """
        return self._finish(self.contributions(X).sum(axis=0) + self.intercept_, X)

    def contributions(self, X: Any) -> Array:
        """What every kernel adds to the prediction.

        Returns
        -------
        ndarray of shape (m, n, p)
            Summed over kernels, with `intercept_`, the prediction.
        """
        check_is_fitted(self)
        rows = self._validate(X, reset=False)
        return np.stack(
            [
                (part.features(rows) if part.is_features else part.gram(rows, self.X_fit_)) @ coef
                for part, coef in zip(self._parts, self._coefs, strict=True)
            ]
        )

    def explained_variance(self, X: Any, y: Any) -> Array:
        """R^2 of every target, split by kernel.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n, p) or (n,)
            NaN is a missing target, and left out.

        Returns
        -------
        ndarray of shape (m, p)
            Summed over kernels, R^2. A kernel that hurts has a negative share.

        Notes
        -----
        With f_j the contributions less their means, f their sum and y less its mean, the share is
        sum f_j (2 y - f) / sum y^2: these sum to 1 - sum (y - f)^2 / sum y^2. Where the mean of the
        prediction is off, what that costs is split evenly.
        """
        parts = self.contributions(X)  # (m, n, p)
        Y = check_targets(y).reshape(parts.shape[1], -1)
        present = np.isfinite(Y)
        share = present / np.maximum(present.sum(axis=0), 1)  # (n, p), sums to one by target
        Y = np.where(present, Y, 0.0)
        mean = np.sum(share * Y, axis=0)
        centred = np.where(present, Y - mean, 0.0)
        total = np.sum(centred**2, axis=0)
        total[total == 0.0] = 1.0
        means = np.sum(share * parts, axis=1)  # (m, p)
        deviations = np.where(present, parts - means[:, None], 0.0)
        shares = np.einsum("mnp,np->mp", deviations, 2.0 * centred - deviations.sum(axis=0)) / total
        off = means.sum(axis=0) + self.intercept_ - mean
        return np.asarray(shares - present.sum(axis=0) * off**2 / (total * len(parts)))

    def _validate(self, X: Any, *, reset: bool) -> Array:
        rows = np.asarray(validate_rows(self, X, reset=reset, dtype=np.float64))
        check_range("X", rows, 0.0)
        return rows

    def _learner(self, m: int, p: int) -> Any:
        """The function that learns from a problem with m kernels and p targets, checked."""
        given = self.output_kernel
        settings: dict[str, Any] = {}
        learn: Any = learn_weights
        if isinstance(given, str):
            check_choice("output_kernel", given, LEARNERS)
            learn = LEARNERS[given]
        elif isinstance(given, list | tuple) and len(given) and _is_matrix(given[0]):
            if len(given) != m:
                raise ValueError(
                    f"output_kernel must have one matrix for each of {m} kernels, got {len(given)}"
                )
            listed = [check_output_kernel(T, p, f"output_kernel[{j}]") for j, T in enumerate(given)]
            settings["output_kernel"] = np.stack(listed)
        else:
            settings["output_kernel"] = check_output_kernel(given, p)
        settings |= {"norm": float(self.norm), **check_solver_params(self.solver_params)}
        return partial(learn, alpha=float(self.alpha), **settings)

    def _store(
        self, rows: Array, parts: list[ColumnKernel], problem: Problem, result: Result
    ) -> None:
        self.X_fit_, self._parts = rows, parts
        self.kernel_names_ = [part.name for part in parts]
        self.kernel_weights_, self.output_kernels_ = result.weights, result.T
        self.kernel_scales_ = problem.scales
        self.dual_coef_ = self._targets_like_y(result.C)
        self.intercept_ = result.intercept
        scaled = result.T / problem.scales[:, None, None]
        self._coefs = [
            (part.features(rows).T @ result.C if part.is_features else result.C) @ T
            for part, T in zip(parts, scaled, strict=True)
        ]
        store_certificate(self, result, self.solver_params, "the weights of the kernels have")


def _is_matrix(value: Any) -> bool:
    """Whether a value is an array of two dimensions, or nested lists of that shape."""
    try:
        return np.ndim(value) == 2
    except ValueError:
        return False
