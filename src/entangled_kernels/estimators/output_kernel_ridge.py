"""Kernel ridge regression of several targets that learns the kernel between the targets."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..output_kernel import (
    PENALTIES,
    OutputKernelResult,
    OutputPenalty,
    fixed_output_kernel,
    learn_output_kernel,
    reduce_cells,
)
from ..parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_positive,
    check_real,
    validate_rows,
)
from .targets import TargetsMixin

__all__ = ["OutputKernelModel", "OutputKernelRidge", "check_output_kernel"]

KERNELS = (*sorted(PAIRWISE_KERNEL_FUNCTIONS), "precomputed")


class OutputKernelModel(TargetsMixin, MultiOutputMixin, RegressorMixin, DocLinkMixin, BaseEstimator):
    """What the estimators of this family share: the input kernel, and predicting from dual coefficients."""

    def __init__(
        self,
        kernel: Any,
        *,
        gamma: float | None,
        degree: float,
        coef0: float,
        kernel_params: dict[str, Any] | None,
        constraint: bool,
        exponent: float,
        l1_ratio: float,
        level_bounds: tuple[float, float],
        rank: int | None,
        max_iter: int,
        tol: float,
        fit_intercept: bool,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.constraint = constraint
        self.exponent = exponent
        self.l1_ratio = l1_ratio
        self.level_bounds = level_bounds
        self.rank = rank
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept

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
        if self.kernel == "precomputed":
            rows = rows[:, self._measured_rows]
        return self._finish(self._gram(rows, self.X_fit_) @ self._coef + self.intercept_, X)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        sparse = ("csr", "csc") if self.kernel != "precomputed" else False
        return validate_rows(self, X, reset=reset, accept_sparse=sparse, dtype=[np.float64, np.float32])

    def _gram(self, X: Any, Z: Any) -> Array:
        """Input kernel between rows; new rows and training rows, or training rows and themselves."""
        named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        settings = (self.kernel_params or {}) if callable(self.kernel) else named
        K = pairwise_kernels(X, Z, metric=self.kernel, filter_params=True, **settings)
        return np.asarray(K, dtype=np.float64)

    def _take_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, Array, Array | None]:
        """Checked rows with a measured target, their targets (n, p), and weights of rows or cells."""
        self._check_parameters()
        targets = self._take_targets(y, blanks=True)
        rows = self._rows(X, reset=True)
        measured, Y, weights = self._measured(rows, targets, sample_weight)
        if self.kernel == "precomputed" and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"X must be a square matrix with kernel='precomputed', got shape {rows.shape}; pass "
                f"the kernel between all training rows"
            )
        if self.rank is not None and self.rank > Y.shape[1]:
            raise ValueError(
                f"rank must be at most the number of targets, {Y.shape[1]}, got {self.rank}; use "
                f"rank=None for the full rank with the Frobenius penalty"
            )
        self._measured_rows = measured
        # A copy would change the last bits: scikit-learn takes distances between an array and itself apart.
        if not measured.all():
            rows = rows[np.ix_(measured, measured) if self.kernel == "precomputed" else measured]
        return rows, Y, weights

    def _check_parameters(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_positive("tol", self.tol, zero_allowed=True)
        check_integer("max_iter", self.max_iter, low=1)
        if self.rank is not None:
            check_integer("rank", self.rank, low=1)

    def _penalty(self, name: Any) -> OutputPenalty:
        """The penalty of this name with the settings of the estimator, checked."""
        check_choice("penalty", name, PENALTIES)
        check_flag("constraint", self.constraint)
        if self.rank is not None and (name not in ("frobenius", "trace") or self.constraint):
            raise ValueError(
                f"rank must be None with penalty={name!r} and constraint={self.constraint}, got {self.rank}; "
                f"a rank goes with the trace, without a constraint"
            )
        if name in ("schatten", "entrywise"):
            _check_exponent(name, self.exponent)
        need = "a number of at least 0 and below 1"
        if not 0.0 <= check_real("l1_ratio", self.l1_ratio, need) < 1.0:
            raise ValueError(f"l1_ratio must be {need}, got {self.l1_ratio!r}; penalty='trace' is that of 1")
        return OutputPenalty(
            name, bool(self.constraint), float(self.exponent), float(self.l1_ratio), self._bounds()
        )

    def _bounds(self) -> tuple[float, float]:
        try:
            low, high = (float(bound) for bound in self.level_bounds)
        except (TypeError, ValueError):
            low = high = np.nan
        if not (0.0 < low <= 1.0 <= high < np.inf):
            raise ValueError(
                f"level_bounds must be two numbers, the first above 0 and at most 1, the second at least 1, "
                f"got {self.level_bounds!r}"
            )
        return low, high

    def _store(self, rows: Any, result: OutputKernelResult) -> None:
        self.X_fit_ = rows
        self._coef = result.C @ result.L  # (n, p)
        self.dual_coef_ = self._targets_like_y(result.C)
        self.intercept_ = result.intercept
        self.output_kernel_ = result.L
        self.duality_gap_, self.objective_history_ = result.gap, result.history
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


def check_output_kernel(output_kernel: Any, p: int, name: str = "output_kernel") -> Array:
    """A given output kernel as an array, symmetric and psd, or an error that names it."""
    try:
        L = np.array(output_kernel, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be None or a matrix over the targets, got {output_kernel!r:.80}"
        ) from None
    if L.shape != (p, p):
        raise ValueError(f"{name} must be of shape ({p}, {p}), one row for every target, got {L.shape}")
    if not np.isfinite(L).all() or not np.allclose(L, L.T, atol=1e-10 * np.abs(L).max()):
        raise ValueError(f"{name} must be finite and symmetric; use (L + L.T) / 2")
    levels = np.linalg.eigvalsh(L)
    if levels[0] < -1e-10 * max(levels[-1], 0.0):
        raise ValueError(
            f"{name} must be positive semi-definite, got an eigenvalue of {levels[0]:.3g}; add a multiple of "
            f"the identity, or use graph_output_kernel for the adjacency matrix of a graph"
        )
    return 0.5 * (L + L.T)


def _check_exponent(name: str, exponent: Any) -> None:
    odd = name == "entrywise"
    need = "2k / (2k - 1) for a whole number k, as 2, 4/3 or 6/5" if odd else "a number of at least 1"
    value = check_real("exponent", exponent, need)
    k = value / (2.0 * (value - 1.0)) if value > 1.0 else np.inf
    if value < 1.0 or (odd and not (np.isfinite(k) and abs(k - round(k)) < 1e-6 and k > 0.9)):
        raise ValueError(f"exponent must be {need} with penalty={name!r}, got {exponent!r}")


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
    penalty : {"frobenius", "schatten", "trace", "elastic", "cluster", "entrywise"}, default="frobenius"
        Penalty P on L; see Notes.
    constraint : bool, default=False
        Whether P(L) is kept to P(I) rather than added to the objective. L = I, which is kernel ridge
        regression, is then among the choices, and alpha means what it means there.
    exponent : float, default=4/3
        q of ``"schatten"`` (at least 1) and ``"entrywise"`` (2k / (2k - 1) for a whole number k).
    l1_ratio : float, default=0.5
        Share of the trace in ``"elastic"``, at least 0 and below 1.
    level_bounds : tuple of two floats, default=(0.1, 10.0)
        Smallest and largest eigenvalue of L in ``"cluster"``, with one between them.
    output_kernel : array-like of shape (p, p) or None, default=None
        A positive semi-definite L to be used as it is; nothing is learned then. See
        `entangled_kernels.output_kernel.graph_output_kernel` for that of a graph of the targets.
    rank : int or None, default=None
        Largest rank of L. With a rank the penalty on L is its trace, which by itself already favours low
        ranks, in the place of the squared Frobenius norm.
    max_iter : int, default=1000
        Largest number of updates of L, or of evaluations of the objective.
    tol : float, default=1e-3
        Relative error allowed in L with ``"frobenius"``; with a rank, relative size of the gradient; with
        other penalties and constraints the duality gap is at most tol^2 times the objective.
    fit_intercept : bool, default=True
        Whether each target has a constant that is not penalised. `KernelRidge` has none; here it is the
        default because without it the means of the targets are learned as if they were structure, and take
        over L.

    Attributes
    ----------
    output_kernel_ : ndarray of shape (p, p)
        The learned L, positive semi-definite.
    dual_coef_ : ndarray of shape (n_samples, p), or (n_samples,) when y was one-dimensional
        C of the rows of ``X_fit_``, with predictions K C L + intercept; next to zero in blanks.
    intercept_ : ndarray of shape (p,)
        Zero without an intercept.
    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Training rows with a measured target, or the kernel between them when it is precomputed.
    duality_gap_ : float
        The objective is at most this much above its minimum (over all ranks); with blanks as well.
    objective_history_ : ndarray
        Objective at the start and after every update of L, or round of updates; with blanks, over measured
        cells, after every complete problem. It never rises.
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

    where K C L + alpha C = Y gives C, and what is left is convex in L. A sample weight w_i multiplies the
    squared errors of row i, so it counts as that many copies of the row, and the equation reads w_i (K C L
    - Y)_i + alpha C_i = 0. With weights w_io of cells, zero in blanks, the squared errors are sum
    w_io (y_io - f_o(x_i))^2 over measured cells: complete problems, with the blanks filled in ever better,
    are solved until the duality gap over measured cells is at most tol^2 times the objective (with a rank,
    until blanks agree with what is fitted there). With l_1, ..., l_p the eigenvalues of L the penalties are

    - ``"frobenius"``: ||L||^2 / 2, and L = C^T K C / 2;
    - ``"schatten"``: sum l^q / 2, the Frobenius norm at q = 2 and the trace at q = 1;
    - ``"trace"``: tr(L) / 2, for targets that are mixtures of few functions;
    - ``"elastic"``: l1_ratio times the trace and the rest of the Frobenius penalty;
    - ``"cluster"``: l within ``level_bounds`` with sum at most p, the mean of the targets having one: targets
      fall into groups. It is a constraint with either value of ``constraint``;
    - ``"entrywise"``: sum |L_ij|^q / 2, for targets of which few pairs hang together.

    `entangled_kernels.output_kernel.learn_output_kernel` and ``learn_penalised`` have the derivations.

    Time n^3 once for the eigenvalues of K, then n p^2 + p^3 for an update of L, of which there are few; with
    blanks n^2 p more for every complete problem, of which there are the more the smaller alpha is;
    n p a row to predict, beside the kernel.

    References
    ----------
    F. Dinuzzo, C. S. Ong, P. Gehler and G. Pillonetto, "Learning output kernels with block coordinate
    descent", ICML 2011.

    F. Dinuzzo and K. Fukumizu, "Learning low-rank output kernels", ACML 2011.

    C. Ciliberto, Y. Mroueh, T. Poggio and L. Rosasco, "Convex learning of multiple tasks and their
    structure", ICML 2015.

    P. Jawanpuria, M. Lapin, M. Hein and B. Schiele, "Efficient output kernel learning for multiple tasks",
    NIPS 2015.

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
        penalty: str = "frobenius",
        constraint: bool = False,
        exponent: float = 4 / 3,
        l1_ratio: float = 0.5,
        level_bounds: tuple[float, float] = (0.1, 10.0),
        output_kernel: ArrayLike | None = None,
        rank: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
    ) -> None:
        super().__init__(
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            constraint=constraint,
            exponent=exponent,
            l1_ratio=l1_ratio,
            level_bounds=level_bounds,
            rank=rank,
            max_iter=max_iter,
            tol=tol,
            fit_intercept=fit_intercept,
        )
        self.alpha = alpha
        self.penalty = penalty
        self.output_kernel = output_kernel

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the output kernel and the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel between all rows, (n_samples, n_samples).
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            The targets, Y in the formulas. NaN is a blank, a cell that was not measured; rows of blanks are
            left out, and every target has to be measured in some row.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs) or float, optional
            Non-negative weights of the squared errors; they count as that many copies of the row or cell, and
            zero makes a blank.

        Returns
        -------
        self
        """
        check_positive("alpha", self.alpha)
        penalty = self._penalty(self.penalty)
        rows, Y, weight = self._take_rows(X, y, sample_weight)
        given = None if self.output_kernel is None else check_output_kernel(self.output_kernel, Y.shape[1])
        problem = reduce_cells(self._gram(rows, rows), Y, weight, centred=self.fit_intercept)
        if given is None:
            result = learn_output_kernel(
                problem,
                float(self.alpha),
                rank=self.rank,
                penalty=penalty,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        else:
            result = fixed_output_kernel(
                problem, float(self.alpha), given, max_iter=self.max_iter, tol=self.tol
            )
        self._warn_unless_converged(result)
        self._store(rows, result)
        return self
