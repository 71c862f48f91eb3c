"""Kernel ridge regression of several targets that learns the kernel between the targets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..convex import (
    PENALTIES,
    OutputPenalty,
    Result,
    fixed_output_kernel,
    learn_output_kernel,
    reduce_problem,
)
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_positive,
    check_range,
    check_real,
    check_settings,
    check_solver_params,
    validate_rows,
)
from .base import MultiTargetRegressor
from .kernel_parts import store_certificate

__all__ = ["OutputKernelRidge", "check_output_kernel"]

KERNELS = (*sorted(PAIRWISE_KERNEL_FUNCTIONS), "precomputed")
PENALTY_PARAMS = {"exponent": 4 / 3, "l1_ratio": 0.5, "level_bounds": (0.1, 10.0)}


def check_output_kernel(output_kernel: Any, p: int, name: str = "output_kernel") -> Array:
    """A given output kernel as an array, symmetric and psd, or an error that names it."""
    try:
        L = np.array(output_kernel, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be None or a matrix over the targets, got {output_kernel!r:.80}"
        ) from None
    if L.shape != (p, p):
        raise ValueError(
            f"{name} must be of shape ({p}, {p}), one row for every target, got {L.shape}"
        )
    if not np.isfinite(L).all() or not np.allclose(L, L.T, atol=1e-10 * np.abs(L).max()):
        raise ValueError(f"{name} must be finite and symmetric; use (L + L.T) / 2")
    levels = np.linalg.eigvalsh(L)
    if levels[0] < -1e-10 * max(levels[-1], 0.0):
        raise ValueError(
            f"{name} must be positive semi-definite, got an eigenvalue of {levels[0]:.3g}; add a "
            f"multiple of the identity, or graph_output_kernel for the adjacency matrix of a graph"
        )
    return 0.5 * (L + L.T)


def _check_bounds(level_bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in level_bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (0.0 < low <= 1.0 <= high < np.inf):
        raise ValueError(
            f"level_bounds must be two numbers, the first above 0 and at most 1, the second at "
            f"least 1, got {level_bounds!r}"
        )
    return low, high


def _check_exponent(name: str, exponent: Any) -> None:
    odd = name == "entrywise"
    need = (
        "2k / (2k - 1) for a whole number k, as 2, 4/3 or 6/5" if odd else "a number of at least 1"
    )
    value = check_real("exponent", exponent, need)
    k = value / (2.0 * (value - 1.0)) if value > 1.0 else np.inf
    if value < 1.0 or (odd and not (np.isfinite(k) and abs(k - round(k)) < 1e-6 and k > 0.9)):
        raise ValueError(f"exponent must be {need} with penalty={name!r}, got {exponent!r}")


class OutputKernelRidge(MultiTargetRegressor):
    """Kernel ridge regression that learns the kernel between the targets.

    The kernel is k(x, z) L, with k chosen as in `sklearn.kernel_ridge.KernelRidge` and L (p, p),
    the kernel between the targets, learned with the coefficients: output kernel learning.

    Parameters
    ----------
    kernel : str or callable, default="linear"
        Input kernel k, as in `sklearn.kernel_ridge.KernelRidge`: a name that
        `sklearn.metrics.pairwise.pairwise_kernels` knows, ``"precomputed"``, or a function of two
        rows. It has to be positive semi-definite.
    gamma : float or None, default=None
        For the kernels rbf, laplacian, poly, chi2 and sigmoid; None leaves it to the kernel.
    kernel_params : dict or None, default=None
        ``degree`` (3) of the polynomial kernel and ``coef0`` (1) of the polynomial and sigmoid
        kernels, or the arguments of a kernel that is a function.
    alpha : float, default=1.0
        Weight of both penalties, positive. It depends on the scale of kernel and targets, more than
        in `KernelRidge`: standardise the targets, or let `OutputKernelRidgeCV` choose.
    penalty : str, default="frobenius"
        Penalty P on L: ``"frobenius"``, ``"schatten"``, ``"trace"``, ``"elastic"``, ``"cluster"``
        or ``"entrywise"``; see Notes.
    penalty_params : dict or None, default=None
        ``exponent`` (4/3), q of ``"schatten"`` (at least 1) and ``"entrywise"`` (2k / (2k - 1) for
        a whole number k); ``l1_ratio`` (0.5), the share of the trace in ``"elastic"``, at least 0
        and below 1; ``level_bounds`` ((0.1, 10.0)), the smallest and largest eigenvalue of L in
        ``"cluster"``, with one between them.
    constraint : bool, default=False
        If true, P(L) is at most P(I) instead of a term of the objective. L = I, which is kernel
        ridge regression, is then one of the choices, and alpha means the same as there.
    output_kernel : array-like of shape (p, p) or None, default=None
        A positive semi-definite L to use; then L is not learned. See
        `entangled_kernels.convex.graph_output_kernel` for a graph of the targets.
    rank : int or None, default=None
        Largest rank of L. With a rank the penalty on L is its trace, which by itself already
        favours low ranks, instead of the squared Frobenius norm.
    fit_intercept : bool, default=True
        Whether each target has a constant that is not penalised. `KernelRidge` has none; here it is
        the default because without it the means of the targets are learned as if they were
        structure, and dominate L.
    solver_params : dict or None, default=None
        ``max_iter`` (1000), the largest number of updates of L, or of evaluations of the objective,
        and ``tol`` (1e-3): with ``"frobenius"`` the relative error allowed in L, with a rank the
        relative size of the gradient; with other penalties and constraints the duality gap is at
        most tol^2 times the objective.

    Attributes
    ----------
    output_kernel_ : ndarray of shape (p, p)
        The learned L, positive semi-definite.
    dual_coef_ : ndarray of shape (n_samples, p), or (n_samples,) when y was one-dimensional
        C of the rows of ``X_fit_``, with predictions K C L + intercept; almost zero for missing
        targets.
    intercept_ : ndarray of shape (p,)
        Zero without an intercept.
    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Training rows with a target, or the kernel between them when it is precomputed.
    duality_gap_ : float
        The objective is at most this much above its minimum (over all ranks).
    objective_history_ : ndarray
        Objective at the start and after every update of L, or round of updates; with missing
        targets, after every complete problem. It never rises.
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

        ||Y - K C L||^2 / (2 alpha) + tr(C^T K C L) / 2 + P(L)

    where K C L + alpha C = Y gives C, and the rest is convex in L. A sample weight w_i multiplies
    the squared errors of row i, so it counts as that many copies of the row, and the equation reads
    w_i (K C L - Y)_i + alpha C_i = 0. With weights w_io of single targets, zero if a target is
    missing, the squared errors are sum w_io (y_io - f_o(x_i))^2. Complete problems are
    solved, with values for the missing targets that improve each time, until the duality gap is at
    most tol^2 times the objective (with a rank, until these values agree with the fit). With
    l_1, ..., l_p the eigenvalues of L the penalties are

    - ``"frobenius"``: ||L||^2 / 2, and L = C^T K C / 2;
    - ``"schatten"``: sum l^q / 2, the Frobenius norm at q = 2 and the trace at q = 1;
    - ``"trace"``: tr(L) / 2, for targets that are mixtures of few functions;
    - ``"elastic"``: l1_ratio times the trace and the rest of the Frobenius penalty;
    - ``"cluster"``: l within ``level_bounds`` with sum at most p, the mean of the targets having
      one: targets fall into groups. It is a constraint with either value of ``constraint``;
    - ``"entrywise"``: sum |L_ij|^q / 2, for targets of which few pairs are related.

    `entangled_kernels.convex.learn_output_kernel` has the derivations.

    Time n^3 once for the eigenvalues of K, then n p^2 + p^3 for each of a few updates of L; with
    missing targets n^2 p more for every complete problem, and more of these for small alpha. A
    prediction takes n p and the kernel.

    References
    ----------
    F. Dinuzzo, C. S. Ong, P. Gehler and G. Pillonetto, "Learning output kernels with block
    coordinate descent", ICML 2011.

    F. Dinuzzo and K. Fukumizu, "Learning low-rank output kernels", ACML 2011.

    C. Ciliberto, Y. Mroueh, T. Poggio and L. Rosasco, "Convex learning of multiple tasks and their
    structure", ICML 2015.

    P. Jawanpuria, M. Lapin, M. Hein and B. Schiele, "Efficient output kernel learning for multiple
    tasks", NIPS 2015.

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
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        penalty: str = "frobenius",
        penalty_params: dict[str, Any] | None = None,
        constraint: bool = False,
        output_kernel: ArrayLike | None = None,
        rank: int | None = None,
        fit_intercept: bool = True,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.penalty = penalty
        self.penalty_params = penalty_params
        self.constraint = constraint
        self.output_kernel = output_kernel
        self.rank = rank
        self.fit_intercept = fit_intercept
        self.solver_params = solver_params

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the output kernel and the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel between all rows, (n_samples, n_samples).
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            The targets, Y in the formulas. NaN is a missing target; rows without any target are
            left out, and every target has a value in some row.
        sample_weight : float or array-like of shape (n_samples,) or (n_samples, p), optional
            Non-negative weights of the squared errors; they count as that many copies of the row or
            target, and a weight of zero is a missing target.

        Returns
        -------
        self
        """
        check_positive("alpha", self.alpha)
        penalty, settings = self._check_penalty(self.penalty), self._check_parameters()
        rows, used, Y, weight = self._take_rows(X, y, sample_weight)
        problem = reduce_problem(self._gram(rows, rows), Y, weight, centred=self.fit_intercept)
        alpha = float(self.alpha)
        if self.output_kernel is None:
            result = learn_output_kernel(problem, alpha, penalty=penalty, **settings)
        else:
            L = check_output_kernel(self.output_kernel, Y.shape[1])
            result = fixed_output_kernel(problem, alpha, L, **settings)
        self._store(rows, used, result)
        return self

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
        rows = self._validate(X, reset=False)
        if self.kernel == "precomputed":
            rows = rows[:, self._used_rows]
        return self._finish(self._gram(rows, self.X_fit_) @ self._coef + self.intercept_, X)

    def _validate(self, X: Any, *, reset: bool) -> Any:
        """Rows of X, or of a precomputed kernel, checked."""
        sparse = ("csr", "csc") if self.kernel != "precomputed" else False
        dtype = [np.float64, np.float32]
        rows = validate_rows(self, X, reset=reset, accept_sparse=sparse, dtype=dtype)
        if self.kernel != "precomputed":
            check_range("X", rows, 0.0)
        return rows

    def _take_rows(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray[np.bool_], Array, Array | None]:
        """Checked rows with a target, which rows of X they are, their targets, and weights."""
        targets = self._take_targets(y, missing=True)
        rows = self._validate(X, reset=True)
        used, Y, weights = self._measured(rows, targets, sample_weight)
        precomputed = self.kernel == "precomputed"
        if precomputed and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"X must be a square matrix with kernel='precomputed', got shape {rows.shape}; "
                f"pass the kernel between all training rows"
            )
        if self.rank is not None and self.rank > Y.shape[1]:
            raise ValueError(
                f"rank must be at most the number of targets, {Y.shape[1]}, got {self.rank}; use "
                f"rank=None for the full rank with the Frobenius penalty"
            )
        # Without a copy the last bits stay: scikit-learn computes distances between an array and
        # itself in another way than between two arrays.
        if not used.all():
            rows = rows[np.ix_(used, used) if precomputed else used]
        return rows, used, Y, weights

    def _gram(self, X: Any, Z: Any) -> Array:
        """Input kernel between new rows and training rows, or between all training rows."""
        settings = dict(self.kernel_params or {})
        if not callable(self.kernel) and self.gamma is not None:
            settings["gamma"] = float(self.gamma)
        K = pairwise_kernels(X, Z, metric=self.kernel, filter_params=True, **settings)
        return np.asarray(K, dtype=np.float64)

    def _check_parameters(self) -> dict[str, Any]:
        """Check kernel and rank; return the settings of the solver."""
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
            given = check_settings("kernel_params", self.kernel_params, {"degree": 3, "coef0": 1})
            for name, value in {
                **given,
                "gamma": 1.0 if self.gamma is None else self.gamma,
            }.items():
                check_real(name, value, "a number")
        check_flag("fit_intercept", self.fit_intercept)
        if self.rank is not None:
            check_integer("rank", self.rank, low=1)
        return check_solver_params(self.solver_params, zero_allowed=True)

    def _check_penalty(self, name: Any) -> OutputPenalty:
        """The penalty of this name with its settings, checked."""
        check_choice("penalty", name, PENALTIES)
        check_flag("constraint", self.constraint)
        if self.rank is not None and (name not in ("frobenius", "trace") or self.constraint):
            raise ValueError(
                f"rank must be None with penalty={name!r} and constraint={self.constraint}, got "
                f"{self.rank}; a rank needs penalty='frobenius' or 'trace', and constraint=False"
            )
        given = check_settings("penalty_params", self.penalty_params, PENALTY_PARAMS)
        exponent, l1_ratio = given["exponent"], given["l1_ratio"]
        if name in ("schatten", "entrywise"):
            _check_exponent(name, exponent)
        need = "a number of at least 0 and below 1"
        if not 0.0 <= check_real("l1_ratio", l1_ratio, need) < 1.0:
            raise ValueError(
                f"l1_ratio must be {need}, got {l1_ratio!r}; use penalty='trace' for 1"
            )
        bounds = _check_bounds(given["level_bounds"])
        return OutputPenalty(
            name, bool(self.constraint), float(exponent), float(l1_ratio), bounds, self.rank
        )

    def _store(self, rows: Any, used: NDArray[np.bool_], result: Result) -> None:
        """Keep a result for these training rows of X."""
        self.X_fit_, self._used_rows = rows, used
        self._coef = result.C @ result.L  # (n, p)
        self.dual_coef_ = self._targets_like_y(result.C)
        self.intercept_, self.output_kernel_ = result.intercept, result.L
        self.objective_history_ = result.history
        store_certificate(self, result, self.solver_params, "the output kernel has")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags
