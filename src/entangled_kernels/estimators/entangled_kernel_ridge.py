"""Ridge regression of several targets with a kernel that learns how the targets hang together."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state

from ..kernels import KrausKernel
from ..moments import Moments
from ..posterior import Posterior, TargetPosteriors, fit_posterior, fit_target_posteriors
from ..reached import compress_for_fit
from ..reduction import Problem, reduce_moments
from ..ridge import KernelRidgeFactor
from ..solvers import SOLVERS, Progress, SolverOptions, solve
from .dask_tables import fit_dask, is_dask, predict_dask
from .feature_maps import FeatureMapMixin
from .out_of_core import OutOfCoreMixin
from .parameters import (
    check_choice,
    check_flag,
    check_fraction,
    check_integer,
    check_positive,
    check_range,
    check_rank,
    check_weights,
    resolve_rank,
)
from .streaming import PRODUCT_DTYPES, Solved, Stream
from .targets import TargetsMixin

__all__ = ["EntangledKernelRidge"]

Array = NDArray[np.float64]

PREDICTIONS = ("entangled", "partial_trace")
INITS = ("identity", "random")

# A step of an iterative solver with more multiplications than this takes seconds.
_LARGE_STEP = 2e10


class EntangledKernelRidge(
    OutOfCoreMixin,
    TransformerMixin,
    FeatureMapMixin,
    TargetsMixin,
    RegressorMixin,
    MultiOutputMixin,
    BaseEstimator,
):
    """Kernel ridge regression with a learned entangled kernel.

    Learns an operator-valued kernel K(x, z) = phi(x)^T A phi(z) I + sum_i M_i phi(x) phi(z)^T M_i^T by
    aligning it with the targets, then solves the ridge problem with it. The features phi come from any
    scikit-learn transformer.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Gives the features phi(x); cloned, and fitted with X, y and, where it takes them, the
        sample weights. None stands for the linear kernel,
        phi(x) = x. `sklearn.kernel_approximation.Nystroem` and `RBFSampler` approximate other kernels.
    solver : {"closed-form", "ascent", "lbfgs"}, default="closed-form"
        How the kernel is learned. ``"closed-form"`` writes down a regularised optimum of the alignment;
        ``"ascent"`` is the published algorithm, steepest ascent on the unit sphere, for which stopping
        early is what regularises; ``"lbfgs"`` runs to the optimum of the alignment.
    rank : int, float or None, default=None
        Largest number r of Kraus operators M_i: a count of up to features times outputs, or a fraction of the
        largest number that the data can use (`full_rank_`). None leaves it to the solver: one operator and a
        metric A for the closed form, full rank for the iterative ones.
    alignment_mix : float, default=0.5
        Weight, between 0 and 1, of aligning the whole operator-valued kernel against aligning its partial
        trace over the outputs.
    shrinkage : float, default=0.25
        Share, between 0 and 1, of the plain kernel phi(x)^T phi(z) I that is mixed into the learned one. With
        1 the estimator is kernel ridge.
    target_alpha : float, default=0.1
        Ridge of the fit whose shape the closed form takes on, in units of the mean eigenvalue of the
        features' second moments. The iterative solvers do not use it.
    alpha : float or array-like of shape (p,), default=1.0
        Ridge penalty, positive; one for each target is possible where the kernel treats them alike, with
        ``prediction="partial_trace"`` or ``shrinkage=1``. The learned kernel is scaled so that the trace of
        its training Gram matrix is the plain kernel's; so alpha means what it means in
        `sklearn.kernel_ridge.KernelRidge`.
    gain : float or array-like of shape (p,), default=1.0
        Factor on the coefficients that the ridge problem gives, positive; one for each target is possible
        where it is for alpha. Above one it undoes part of their shrinkage towards the mean.
    prediction : {"entangled", "partial_trace"}, default="entangled"
        Predict with the operator-valued kernel, or with the one scalar kernel that its partial trace over the
        outputs gives (the paper's EKL and ptrEKL).
    init : {"identity", "random"}, default="identity"
        Start of the iterative solvers: the plain kernel, on the outputs that the features reach, or a random
        one.
    max_iter : int, default=200
        Number of steps of the iterative solvers.
    tol : float, default=1e-6
        The iterative solvers stop when the gradient on the unit sphere is no longer than this.
    fit_intercept : bool, default=True
        Whether to centre features and targets; otherwise they are taken as they are.
    random_state : int, RandomState or None, default=None
        For ``init="random"``.
    verbose : bool, default=False
        Print the alignment as the iterative solvers go.
    max_memory : float, default=2**30
        Bytes that features may take while a feature map is applied: more rows than fit are mapped in blocks.
    product_dtype : {"float64", "float32"}, default="float64"
        Of the products of blocks of rows, which are added in float64. ``"float32"`` nearly halves the time of
        a pass over rows with many features or targets, and leaves about six digits of the moments.

    Attributes
    ----------
    kraus_ : ndarray of shape (r, p, m)
        Kraus operators M_i, in the coordinates of the feature map's output: orthogonal to each other, the
        strongest first, of positive covariance with the targets. Built at every access.
    metric_ : ndarray of shape (m, m) or None
        The matrix A, None when it is zero. Built at every access.
    kernel_ : KrausKernel
        The learned kernel of these two, which tells how entangled it is: ``kernel_.entanglement()``.
    coef_ : ndarray of shape (p, m)
        The fitted model is f(x) = coef_ @ phi(x) + intercept_.
    intercept_ : ndarray of shape (p,)
    alignment_ : float
        Objective of the kernel as finally used, shrinkage included, on the training rows.
    alignment_terms_ : tuple of float
        Its partial-trace and full terms.
    alignment_history_ : ndarray
        Objective, before shrinkage, at the start of the solver and after every step.
    noise_variance_ : ndarray of shape (p,)
        Estimated variance of each target about the model; see Notes. Found when first asked for.
    rkhs_norm_ : float
        Norm of the fitted function, less its intercept, in the space of the kernel it is predicted with.
    n_iter_ : int
    converged_ : bool
    stop_reason_ : str
    solver_ : str
    full_rank_ : int
        Largest Kraus rank that can matter: rank of the features times rank of what they reach in the
        outputs.
    feature_map_ : transformer or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        When X had string column names.
    target_names_ : ndarray of shape (p,)
        When y was a data frame or a named series.

    See Also
    --------
    sklearn.kernel_ridge.KernelRidge : What ``shrinkage=1`` gives.

    Notes
    -----
    With C, B the second moments of features and of features with targets and W = (C + rho I)^-1 B the ridge
    fit for rho = target_alpha tr(C)/m, the closed form is

        D = tau I/(mp) + (1 - tau) [ (1 - mix) W W^T kron I/(p ||W||^2) + mix vec(W^T) vec(W^T)^T/||W||^2 ]

    for ``shrinkage`` tau, scaled to tr((C kron I) D) = p tr(C). The iterative solvers put their Q Q^T in the
    place of the bracket. Alignment, learning and ridge need only moments, so after one pass over the rows
    nothing depends on their number; see `entangled_kernels.moments.Moments`.

    The Gaussian-process view reads the kernel, times a variance s_o^2 for every output o, as a prior
    covariance and alpha s_o^2 as the variance of the noise. With e_o the weighted residuals of output o,
    n rows of total weight W and df_o the trace of its block of the hat matrix (plus one with an intercept),

        alpha s_o^2 = sum e_o^2 / (n - df_o),   noise_variance_[o] = alpha s_o^2 n / W

    A row of zero weight is left out; scaling all weights changes no more than scaling alpha does. The view
    knows of no ``gain``: variances are those of gain one.

    Time n (m + p)^2 for the pass, m^3 + m^2 p for the closed form, m p a row to predict. Tables with more
    columns than rows are rotated first, so m and p are never above n there.

    References
    ----------
    R. Huusari and H. Kadri, "Entangled Kernels - Beyond Separability", Journal of Machine Learning Research
    22 (2021), 1-40.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from entangled_kernels import EntangledKernelRidge
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> features = make_pipeline(StandardScaler(), Nystroem(n_components=20, random_state=0))
    >>> model = EntangledKernelRidge(features).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 3)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> bool((std > 0).all())
    True
    """

    def __init__(
        self,
        feature_map: Any = None,
        *,
        solver: str = "closed-form",
        rank: int | float | None = None,
        alignment_mix: float = 0.5,
        shrinkage: float = 0.25,
        target_alpha: float = 0.1,
        alpha: Any = 1.0,
        gain: Any = 1.0,
        prediction: str = "entangled",
        init: str = "identity",
        max_iter: int = 200,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        max_memory: float = 2**30,
        product_dtype: str = "float64",
    ) -> None:
        self.feature_map = feature_map
        self.solver = solver
        self.rank = rank
        self.alignment_mix = alignment_mix
        self.shrinkage = shrinkage
        self.target_alpha = target_alpha
        self.alpha = alpha
        self.gain = gain
        self.prediction = prediction
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose
        self.max_memory = max_memory
        self.product_dtype = product_dtype

    # Of models saved before there was one.
    gain: Any = 1.0

    # What comes of the moments: found when first asked for, if rows came in by `partial_fit`.
    coef_, intercept_, rkhs_norm_ = Solved(), Solved(), Solved()
    alignment_, alignment_terms_, alignment_history_ = Solved(), Solved(), Solved()
    n_iter_, converged_, stop_reason_, solver_, full_rank_ = Solved(), Solved(), Solved(), Solved(), Solved()
    _problem, _kernel, _prediction, _alpha, _reduced_coef = Solved(), Solved(), Solved(), Solved(), Solved()

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the kernel and the coefficients.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            The targets, Y in the formulas.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative weights of the squared errors; kernel and predictions are those of a table where
            each row is repeated that many times.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X, y, sample_weight):
            fit_dask(self, X, y, sample_weight)
            return self
        self._forget()
        targets = self._take_targets(y)
        self._fit_map(X, targets, sample_weight)
        if self._exceeds_memory(X, targets):
            self._stream = Stream(n_outputs=targets[:1].size, parts=[None], n_rows=len(targets))
            self._add_rows(self._check_rows(X, targets, sample_weight))
            self._solve_stream()
            return self
        Phi, Y, weight = self._features_and_targets(X, targets, sample_weight)
        if weight is not None and not weight.all():
            keep = weight > 0.0
            Phi, Y, weight = Phi[keep], Y[keep], weight[keep]
        if len(Y) < 2:
            raise ValueError("at least 2 rows of positive sample_weight are needed, got 1")
        rows = compress_for_fit(Phi, Y, weight, centred=self.fit_intercept)
        moments = Moments.from_arrays(rows.Phi, rows.Y, weight, product_dtype=self.product_dtype)
        mix = float(self.alignment_mix)
        problem = reduce_moments(moments, centred=self.fit_intercept, mix=mix, rows=rows)
        self._fit_problem(problem.restored(rows, moments))
        # More rows can be added to moments of the features and targets as they are.
        if rows.outputs is None and Phi.shape[1] <= len(Y):
            if rows.features is not None:
                moments = Moments.from_arrays(Phi, Y, weight, product_dtype=self.product_dtype)
            self._stream = Stream(Y.shape[1], [moments], n_rows=len(Y))
        return self

    def _solve_parts(self, parts: list[Moments]) -> None:
        mix, centred = float(self.alignment_mix), bool(self.fit_intercept)
        self._fit_problem(reduce_moments(sum(parts[1:], parts[0]), centred=centred, mix=mix))

    def _take_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array | None]:
        """Features (n, m), targets (n, p) and weights, checked."""
        targets = self._take_targets(y)
        self._fit_map(X, targets, sample_weight)
        return self._features_and_targets(X, targets, sample_weight)

    def _features_and_targets(
        self, X: Any, targets: Array, sample_weight: Any
    ) -> tuple[Any, Array, Array | None]:
        Phi = self._training_features(X)
        check_consistent_length(X, targets)
        Y, weight = targets.reshape(len(targets), -1), check_weights(sample_weight, len(targets))
        check_range("X" if self.feature_map is None else "the output of feature_map", Phi)
        check_range("y", Y)
        return Phi, Y, weight

    def _fit_problem(self, problem: Problem) -> None:
        """Learn the kernel, scale it, solve the ridge problem, and store what came of it."""
        m, p = problem.n_features, problem.n_outputs
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rank = resolve_rank(self.rank, m, p, problem.full_rank)
        if self.solver != "closed-form":
            self._warn_of_size(problem.full_rank, rank)
        options = SolverOptions(
            rank=rank,
            target_alpha=float(self.target_alpha),
            shrinkage=float(self.shrinkage),
            init=self.init,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            rng=np.random.default_rng(seed),
            callback=self._print_progress if self.verbose else None,
        )
        result = solve(self.solver, problem, options)
        if result.reason == "stalled":
            warnings.warn(
                f"solver={self.solver!r} could not raise the alignment any further after {result.n_iter} "
                f"steps, although the gradient is longer than tol={self.tol}; standardise the features or "
                f"raise tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        kernel = problem.finished(result.kernel.canonical(problem.targets), float(self.shrinkage))
        self._problem, self._kernel, self._prediction = problem, kernel, self.prediction
        self.alignment_terms_ = problem.alignment_terms(kernel)
        self.alignment_ = float(
            (1.0 - self.alignment_mix) * self.alignment_terms_[0]
            + self.alignment_mix * self.alignment_terms_[1]
        )
        self.alignment_history_ = result.history
        self.n_iter_, self.converged_, self.stop_reason_ = result.n_iter, result.converged, result.reason
        self.solver_, self.full_rank_ = self.solver, problem.full_rank
        self._fit_ridge()

    def _fit_ridge(self) -> None:
        problem, factor = self._problem, self._ridge_factor()
        self._alpha, gain = self._resolved("alpha", factor), self._resolved("gain", factor)
        self.__dict__.pop("_posterior", None)
        if np.ndim(self._alpha) == np.ndim(gain) == 0:
            coef, targets = factor.coefficients(self._alpha)[0], problem.targets
            self._reduced_coef = coef
            self.coef_ = problem.expand_coef(gain * coef)
        else:
            self._alpha = np.broadcast_to(self._alpha, problem.n_outputs)
            coef = factor.target_coefficients(self._alpha)  # (m', p)
            targets = problem.targets @ problem.outputs.T
            self.coef_ = (gain * coef).T @ problem.features.T
        self.intercept_ = problem.mean_y - self.coef_ @ problem.mean_phi
        energy = np.sum(gain**2 * coef * (targets - problem.scale[:, None] * coef) / self._alpha)
        self.rkhs_norm_ = float(np.sqrt(max(energy, 0.0)))

    def _resolved(self, name: str, factor: KernelRidgeFactor) -> float | Array:
        """One alpha or gain, or one for each target where that is possible."""
        value, p = np.asarray(getattr(self, name), dtype=np.float64), self._problem.n_outputs
        if value.ndim == 0:
            return float(value)
        if value.shape != (p,):
            raise ValueError(f"{name} must be a number or {p} numbers, one a target; got shape {value.shape}")
        if factor.X.shape[2] > 0:
            raise ValueError(
                f"{name} must be one number where the kernel ties the targets together; use "
                f"prediction='partial_trace' or shrinkage=1 for one {name} a target"
            )
        return value

    def _ridge_factor(self) -> KernelRidgeFactor:
        kernel = self._kernel
        if self._prediction == "partial_trace":
            kernel = kernel.partial_trace(self._problem.n_outputs)
        return KernelRidgeFactor(self._problem, kernel)

    @cached_property
    def _posterior(self) -> Posterior | TargetPosteriors:
        if np.ndim(self._alpha) > 0:
            return fit_target_posteriors(self._ridge_factor(), np.asarray(self._alpha))
        return fit_posterior(self._ridge_factor(), float(self._alpha), self._reduced_coef)

    def __getstate__(self) -> dict[str, Any]:
        # The posterior is larger than the model, and made again when it is asked for.
        return {name: value for name, value in super().__getstate__().items() if name != "_posterior"}

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the targets, with their uncertainty on request.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation of every target.
        return_cov : bool, default=False
            Also return the covariance of a new observation of all targets, row by row.

        Returns
        -------
        mean : ndarray of shape (n, p), or (n,) when y was one-dimensional
        std : like mean, with ``return_std``
        cov : ndarray of shape (n, p, p), or (n,) when y was one-dimensional, with ``return_cov``

        Notes
        -----
        In the Gaussian-process view the covariance of the model at x is the posterior one; `noise_variance_`
        is added to it, and with an intercept its variance, noise over n. Subtract `noise_variance_` for the
        model alone.
        """
        self._check_solved()
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be true; the covariance holds both")
        if is_dask(X):
            return predict_dask(self, X, return_std, return_cov)
        blocks = [self._predict_block(block, return_std, return_cov) for block in self._row_blocks(X)]
        mean, spread = (
            part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*blocks, strict=True)
        )
        if return_cov:
            return self._finish(mean, X), spread[:, 0, 0] if self._one_dimensional else spread
        if return_std:
            return self._finish(mean, X), self._finish(spread, X)
        return self._finish(mean, X)

    def _predict_block(self, X: Any, return_std: bool, return_cov: bool) -> tuple[Array, Array]:
        """Mean, and standard deviation or covariance, or nothing, of some rows."""
        Phi = self._features(X)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = Phi @ self.coef_.T
            mean += self.intercept_
        self._check_finite(Phi, mean)
        if return_cov:
            return mean, self._posterior.covariance(Phi)
        return mean, np.sqrt(self._posterior.variance(Phi)) if return_std else np.empty(0)

    def project(self, X: Any) -> Array:
        """Supervised multi-task dimension reduction: every row as r coordinates for each output.

        Returns
        -------
        Z : ndarray of shape (n, p, r)
            Z[j, :, i] = M_i phi(x_j), so K(x_j, x_l) = Z[j] @ Z[l].T, plus the metric's part.
        """
        self._check_solved()
        if self._kernel.Q.shape[2] == 0:
            raise ValueError(
                "the learned kernel has no Kraus operators to project on (shrinkage=1, alignment_mix=0 "
                "without a rank, or targets that the features say nothing about); use shrinkage below 1 "
                "and set rank"
            )
        Phi = self._features(X)
        self._check_finite(Phi, Phi)
        reduced = Phi @ self._problem.features  # (n, m')
        return np.asarray(self._problem.outputs @ np.tensordot(reduced, self._kernel.Q, axes=1))

    def transform(self, X: Any) -> Array:
        """`project` with outputs and coordinates in one axis, (n, p * r), the coordinates running fastest."""
        Z = self.project(X)
        return Z.reshape(len(Z), -1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: target and number of the Kraus operator."""
        self._check_solved()
        r = self._kernel.Q.shape[2]
        return np.array(
            [f"{target}_kraus{i}" for target in self._output_names(len(self.coef_)) for i in range(r)],
            dtype=object,
        )

    def set_output(self, *, transform: str | None = None, predict: str | None = None) -> Self:
        """Choose the containers that `transform` and `predict` return.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
        predict : {"default", "pandas", "polars"} or None
            None leaves the choice as it is.
        """
        TransformerMixin.set_output(self, transform=transform)
        return TargetsMixin.set_output(self, predict=predict)

    @property
    def noise_variance_(self) -> Array:
        """Estimated variance of each target about the model, (p,)."""
        self._check_solved()
        return self._posterior.noise_variance

    @property
    def kernel_(self) -> KrausKernel:
        """The learned kernel as an object, to look at its blocks or its entanglement."""
        return KrausKernel(self.kraus_, self.feature_map_, self.metric_)

    @property
    def kraus_(self) -> Array:
        """Kraus operators (r, p, m)."""
        self._check_solved()
        return np.asarray(self._problem.expand_kraus(self._kernel.Q))

    @property
    def metric_(self) -> Array | None:
        """The matrix A (m, m), or None."""
        self._check_solved()
        metric: Array | None = self._problem.expand_metric(self._kernel)
        return metric

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_choice("prediction", self.prediction, PREDICTIONS)
        check_choice("init", self.init, INITS)
        check_fraction("alignment_mix", self.alignment_mix)
        check_fraction("shrinkage", self.shrinkage)
        check_positive("target_alpha", self.target_alpha, zero_allowed=True)
        for name, value in (("alpha", self.alpha), ("gain", self.gain)):
            for number in [value] if np.ndim(value) == 0 else np.ravel(value).tolist():
                check_positive(name, number)
        check_positive("tol", self.tol, zero_allowed=True)
        check_integer("max_iter", self.max_iter, low=1)
        check_rank(self.rank)
        check_flag("fit_intercept", self.fit_intercept)
        check_positive("max_memory", self.max_memory)
        check_choice("product_dtype", self.product_dtype, PRODUCT_DTYPES)
        self._check_feature_map()

    def _warn_of_size(self, full_rank: int, rank: int | None) -> None:
        rank = full_rank if rank is None else rank
        if full_rank * rank**2 > _LARGE_STEP:
            warnings.warn(
                f"every step of solver={self.solver!r} multiplies matrices of {full_rank} x {rank}, which "
                f"may take long; set rank to a smaller number, or use solver='closed-form'",
                UserWarning,
                stacklevel=4,
            )

    def _print_progress(self, progress: Progress) -> None:
        if progress.n_iter % 10 == 0 or progress.n_iter == self.max_iter:
            print(
                f"[EntangledKernelRidge] step {progress.n_iter}/{self.max_iter}  "
                f"alignment {progress.value:.6f}  gradient {progress.gradient_norm:.1e}"
            )
