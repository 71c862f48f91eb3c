"""Ridge regression of several targets with a learned entangled kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..features import FeatureMapTraits, fit_and_map, fit_feature_map, map_features
from ..kernels import KrausKernel
from ..learning import (
    SOLVERS,
    Fit,
    FitSettings,
    Moments,
    Problem,
    Progress,
    RowSample,
    fit_problem,
    reduce_moments,
    reduce_rows,
)
from ..linalg import Array
from ..model import FIRST_BLOCK, FittedModel, InputRange, block_height, check_target_transform
from ..parameters import (
    check_choice,
    check_feature_map,
    check_flag,
    check_fraction,
    check_integer,
    check_penalty,
    check_range,
    check_rank,
    check_rank_fits,
    check_settings,
    is_dask,
    naming_columns,
    warn_user,
)
from ..streams.row_stream import Rows, RowStream, sampling_keys
from .base import MultiTargetRegressor
from .entangled import (
    COLUMN_ATTRIBUTES,
    EntangledRegressor,
    fitted_attribute,
)

__all__ = [
    "PREDICTIONS",
    "EntangledKernelRidge",
    "SolverParams",
    "check_solver_params",
    "warn_of_stall",
]

PREDICTIONS = ("entangled", "partial_trace", "reduced_rank")
# A step of an iterative solver with more multiplications than this takes seconds.
LARGE_STEP = 2e10


class EntangledKernelRidge(TransformerMixin, EntangledRegressor):
    """Kernel ridge regression with a learned entangled kernel.

    Learns an operator-valued kernel K(x, z) = phi(x)^T A phi(z) I + sum_i M_i phi(x) phi(z)^T M_i^T
    by aligning it with the targets, then solves the ridge problem with it. The features phi come
    from any scikit-learn transformer.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Gives the features phi(x); cloned, and fitted with X, y and, if it accepts them, the sample
        weights. None is the linear kernel; `Nystroem` and `RBFSampler` of scikit-learn approximate
        others.
    alpha : float, default=1.0
        Ridge penalty, positive. The learned kernel is scaled to the trace of the plain kernel on
        the training rows, so alpha means what it means in `sklearn.kernel_ridge.KernelRidge`.
    shrinkage : float, default=0.25
        Share, between 0 and 1, of the plain kernel phi(x)^T phi(z) I that is mixed into the learned
        one. With 1 the estimator is kernel ridge.
    alignment_mix : float, default=0.5
        Weight, between 0 and 1, of aligning the whole operator-valued kernel against aligning its
        partial trace over the outputs.
    target_alpha : float, default=0.1
        Ridge penalty of the fit that the closed form is made of, in units of the mean eigenvalue of
        the features' second moments. The iterative solvers do not use it.
    prediction : {"entangled", "partial_trace", "reduced_rank"}, default="entangled"
        Predict with the operator-valued kernel, or with the scalar kernel of its partial trace over
        the outputs (the paper's EKL and ptrEKL). ``"reduced_rank"`` does the latter in ``rank``
        directions of the targets; with ``shrinkage=1`` it is reduced-rank ridge regression.
    rank : int, float or None, default=None
        Largest number r of Kraus operators M_i: a count of up to features times outputs, or a
        fraction of ``full_rank_``. None is one operator and a metric A for the closed form, and
        full rank for the iterative solvers. For ``prediction="reduced_rank"`` it is the number of
        directions instead, a count of up to the outputs or a fraction of them; None is all.
    solver : {"closed-form", "ascent", "lbfgs"}, default="closed-form"
        How the kernel is learned. ``"closed-form"`` is a regularised optimum of the alignment;
        ``"ascent"`` is the published algorithm, steepest ascent on the unit sphere, which is
        regularised by stopping early; ``"lbfgs"`` runs to the optimum of the alignment.
    solver_params : dict or None, default=None
        Settings of the iterative solvers: ``init``, the start, is ``"identity"`` (default; the
        plain kernel, on the outputs that depend on the features) or ``"random"``; ``max_iter`` is
        the number of steps, 200 by default; the solver stops when the gradient on the unit sphere
        is at most ``tol``, 1e-6 by default; with ``verbose=True`` it prints the alignment.
    fit_intercept : bool, default=True
        Whether to centre features and targets.
    target_transform : {"log", "log1p"}, mapping, transformer or None, default=None
        Scale on which targets are learned: logarithms of positive targets, or of zero and positive
        ones; of some of them, as in ``{"zinc": "log"}``; or a transformer of each target by itself
        that has ``inverse_transform``, fitted to y. Predictions, deviations, intervals and
        ``given`` are in units of the targets; kernel, coefficients and noise are those of
        transformed targets.
    random_state : int, RandomState or None, default=None
        For a random start.

    Attributes
    ----------
    model_ : FittedModel
        The fitted model as one value.
    kraus_ : ndarray of shape (r, p, m)
        Kraus operators M_i for the features of the map: orthogonal to each other, the strongest
        first, with positive covariance with the targets. Computed at every access.
    metric_ : ndarray of shape (m, m) or None
        The matrix A, None when it is zero. Computed at every access.
    kernel_ : KrausKernel
        The learned kernel with these two; ``kernel_.entanglement()`` measures its entanglement.
    coef_ : ndarray of shape (p, m)
        The fitted model is f(x) = coef_ @ phi(x) + intercept_.
    intercept_ : ndarray of shape (p,)
    alignment_ : float
        Objective of the kernel that is used, including shrinkage, on the training rows.
    alignment_terms_ : tuple of float
        Its partial-trace and full terms.
    largest_alignment_ : float or None
        The largest alignment of any kernel, known for models with an intercept.
    alignment_history_ : ndarray
        Objective, before shrinkage, at the start of the solver and after every step.
    noise_variance_ : ndarray of shape (p,)
        Estimated variance of each target about the model; see Notes.
    rkhs_norm_ : float
        Norm of the fitted function without its intercept, in the space of the kernel.
    residual_covariance_, information_ : ndarray of shape (p, p)
        Covariance of leave-one-out residuals, and the share of the variance of target b that
        measuring target a removes, a in rows.
    n_iter_, converged_, stop_reason_, solver_ : int, bool, str and str
    full_rank_ : int
        Largest Kraus rank that can matter: rank of the features times that of their covariance with
        the targets.
    feature_map_ : transformer or None
    target_transform_ : object with ``transform`` and ``inverse_transform``, or None
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
    With C, B the second moments of features and of features with targets and W = (C + rho I)^-1 B
    the ridge fit for rho = target_alpha tr(C)/m, the closed form is

        D = tau I/(mp) + (1 - tau) [ (1 - mix) W W^T kron I/(p ||W||^2) + mix vec(W^T)
        vec(W^T)^T/||W||^2 ]

    for ``shrinkage`` tau, scaled to tr((C kron I) D) = p tr(C). The iterative solvers replace the
    bracket by their Q Q^T. Alignment, learning and ridge need only moments, so after one pass over
    the rows nothing depends on their number; see `entangled_kernels.learning.Moments`.

    The Gaussian-process view reads the kernel, times a variance s_o^2 for every output o, as a
    prior covariance and alpha s_o^2 as the variance of the noise. With e_o the weighted residuals
    of output o, n rows of total weight W and df_o the trace of its block of the hat matrix (plus
    one with an intercept),

        alpha s_o^2 = sum e_o^2 / (n - df_o),   noise_variance_[o] = alpha s_o^2 n / W

    Predictions of reduced rank have the coefficients W V V^T, where W = (C + alpha I)^-1 B is the
    ridge fit, for a learned kernel that with its partial trace, and V are the leading eigenvectors
    of B^T W, orthonormal directions of the targets. Since directions of large variance lead,
    targets of different units should be standardised. With missing targets W is the ridge fit to
    those that are present, and V has B with the others filled in by ridge regression.

    A row of weight zero is left out; scaling all weights has the effect of scaling alpha.

    Time n (m + p)^2 for the pass, m^3 + m^2 p for the closed form, m p a row to predict. Tables
    with more columns than rows are rotated first, so m and p are never above n there.

    References
    ----------
    R. Huusari and H. Kadri, "Entangled Kernels - Beyond Separability", Journal of Machine Learning
    Research 22 (2021), 1-40.

    A. J. Izenman, "Reduced-rank regression for the multivariate linear model", Journal of
    Multivariate Analysis 5 (1975), 248-264.

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
        alpha: float = 1.0,
        shrinkage: float = 0.25,
        alignment_mix: float = 0.5,
        target_alpha: float = 0.1,
        prediction: str = "entangled",
        rank: int | float | None = None,
        solver: str = "closed-form",
        solver_params: Any = None,
        fit_intercept: bool = True,
        target_transform: Any = None,
        random_state: Any = None,
    ) -> None:
        self.feature_map = feature_map
        self.alpha = alpha
        self.shrinkage = shrinkage
        self.alignment_mix = alignment_mix
        self.target_alpha = target_alpha
        self.prediction = prediction
        self.rank = rank
        self.solver = solver
        self.solver_params = solver_params
        self.fit_intercept = fit_intercept
        self.target_transform = target_transform
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the kernel and the coefficients.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            The targets, NaN where missing. Rows without any target are left out.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), or float, optional
            Non-negative weights of the squared errors, of rows or of single targets. A row of
            weight 2 counts as two rows. A target of weight zero is missing.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X, y, sample_weight):
            return self._fit_dask(X, y, sample_weight)
        self._stream = self._model = None
        rows, scale, _ = self._training_rows(X, y, sample_weight)
        feature_map, Phi = self._fit_and_map(rows)
        stream = RowStream(ready=True, feature_map=feature_map, n_outputs=rows.Y.shape[1])
        key, centred = sampling_keys(rows.X, rows.Y), bool(self.fit_intercept)
        if Phi is None:
            stream.add(rows._replace(key=key), self._fit_first_rows)
            problem = reduce_moments(stream.parts[0], centred=centred)
        else:
            problem, moments = reduce_rows(Phi, rows.Y, rows.weight, centred=centred)
            # Moments of more columns than rows are not kept.
            stream.parts = {} if moments is None else {0: moments}
            stream.sample = RowSample.of(Phi, rows.Y, key, rows.weight)
            stream.inputs = InputRange.of(rows.X)
        stream.scale, stream.n_rows = scale, _num_samples(X)
        self._model = self._solve_problem(problem, stream, stream.sample)
        self._stream = stream if stream.parts else None
        return self

    def _fit_and_map(self, rows: Rows) -> tuple[Any, Any]:
        """The fitted feature map, and the features of the rows, None if they exceed ``working_memory``."""
        feature_map, (n, p) = self.feature_map, rows.Y.shape
        X = self._check_columns(rows.X, [feature_map], ensure_min_samples=2)
        if feature_map is None:
            check_range("X", X)
            return None, X
        targets = self._targets_like_y(rows.Y)
        if n > FIRST_BLOCK and not FeatureMapTraits.of(feature_map).cross_fitted:
            feature_map = fit_feature_map(feature_map, X, targets, rows.weight)
            m = map_features(feature_map, _safe_indexing(X, slice(0, 1))).shape[1]
            # With more columns than rows, moments would take more memory than the features.
            if n > 2 * block_height(m) and m + p <= n:
                return feature_map, None
            Phi = map_features(feature_map, X)
        else:
            feature_map, Phi = fit_and_map(
                feature_map, X, targets, rows.weight, ensure_min_samples=2
            )
        check_range("the output of feature_map", Phi)
        return feature_map, Phi

    def _solve(
        self, stream: RowStream, parts: list[Moments], sample: RowSample | None
    ) -> FittedModel:
        problem = reduce_moments(sum(parts[1:], parts[0]), centred=bool(self.fit_intercept))
        return self._solve_problem(problem, stream, sample)

    def _solve_problem(
        self, problem: Problem, stream: RowStream, sample: RowSample | None
    ) -> FittedModel:
        """The model of a problem, with warnings about its size and convergence."""
        reduced = self.prediction == "reduced_rank"
        check_rank_fits(self.rank, problem.n_features, problem.n_outputs, reduced=reduced)
        params = check_solver_params(self.solver_params)
        settings = FitSettings(
            solver=self.solver,
            rank=self.rank,
            alignment_mix=float(self.alignment_mix),
            shrinkage=float(self.shrinkage),
            target_alpha=float(self.target_alpha),
            alpha=float(self.alpha),
            prediction=self.prediction,
            init=params.init,
            max_iter=params.max_iter,
            tol=params.tol,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
        )
        if SOLVERS[self.solver].iterative:
            operators = settings.n_operators(problem) or problem.full_rank
            if problem.full_rank * operators**2 > LARGE_STEP:
                warn_user(
                    f"every step of solver={self.solver!r} multiplies matrices of {problem.full_rank} x "
                    f"{operators}, which may take long; set rank to a smaller number, or use "
                    f"solver='closed-form'"
                )
        fit = fit_problem(
            problem, settings, _print_progress(params.max_iter) if params.verbose else None
        )
        if fit.stop_reason == "stalled":
            warn_of_stall(fit)
        return FittedModel(
            feature_map=stream.feature_map,
            linear=fit.linear,
            fit=fit,
            fit_map=stream.feature_map,
            scale=stream.scale,
            inputs=stream.inputs,
            sample=sample,
        )

    def adopt_model(self, model: FittedModel, other: Any) -> Self:
        """Use a fitted model of a search, for tables with the columns of the estimator ``other``."""
        for name in COLUMN_ATTRIBUTES:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        self._model, self._stream = model, None
        return self

    def project(self, X: Any) -> Array:
        """Supervised multi-task dimension reduction: r coordinates of every row for each output.

        Returns
        -------
        Z : ndarray of shape (n, p, r)
            Z[j, :, i] = M_i phi(x_j), so K(x_j, x_l) = Z[j] @ Z[l].T, plus the metric's part.
        """
        model, rows, _ = self._check_new_rows(X)
        if model.fit.n_operators == 0:
            raise ValueError(
                "the learned kernel has no Kraus operators to project on (shrinkage=1, alignment_mix=0 "
                "without a rank, or targets that do not depend on the features); use shrinkage below 1 "
                "and set rank"
            )
        with naming_columns(X):
            Phi = model.features(rows)
            model.learned_mean(Phi)  # raises where a feature is not finite
        return np.asarray(model.fit.project(Phi))

    def transform(self, X: Any) -> Array:
        """`project` with outputs and coordinates in one axis, (n, p * r), the coordinates last."""
        Z = self.project(X)
        return Z.reshape(len(Z), -1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: target and number of the Kraus operator."""
        # Displays call this, and must not start a solve.
        check_is_fitted(self, "intercept_")
        model = self._model_with("kraus_")
        names = self._output_names(model.n_targets)
        return np.array(
            [f"{o}_kraus{i}" for o in names for i in range(model.fit.n_operators)], dtype=object
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
        return MultiTargetRegressor.set_output(self, predict=predict)

    @property
    def kernel_(self) -> KrausKernel:
        """The learned kernel as an object, to look at its blocks or its entanglement."""
        return KrausKernel(self.kraus_, self.feature_map_, self.metric_)

    @property
    def kraus_(self) -> Array:
        """Kraus operators (r, p, m)."""
        return np.asarray(self._model_with("kraus_").fit.kraus())

    @property
    def metric_(self) -> Array | None:
        """The matrix A (m, m), or None."""
        return self._model_with("metric_").fit.metric()

    alignment_: float = fitted_attribute("alignment_", "_model.fit.alignment")
    alignment_terms_: tuple[float, float] = fitted_attribute(
        "alignment_terms_", "_model.fit.alignment_terms"
    )
    alignment_history_: Array = fitted_attribute(
        "alignment_history_", "_model.fit.alignment_history"
    )
    noise_variance_: Array = fitted_attribute(
        "noise_variance_", "_model.fit.posterior.noise_variance"
    )
    rkhs_norm_: float = fitted_attribute("rkhs_norm_", "_model.fit.rkhs_norm")
    n_iter_: int = fitted_attribute("n_iter_", "_model.fit.n_iter")
    converged_: bool = fitted_attribute("converged_", "_model.fit.converged")
    stop_reason_: str = fitted_attribute("stop_reason_", "_model.fit.stop_reason")
    solver_: str = fitted_attribute("solver_", "_model.fit.settings.solver")
    full_rank_: int = fitted_attribute("full_rank_", "_model.fit.problem.full_rank")

    @property
    def largest_alignment_(self) -> float | None:
        """The largest alignment that any kernel has, None without an intercept."""
        return self._model_with("largest_alignment_").fit.largest_alignment()

    def _check_parameters(self) -> None:
        check_flag("fit_intercept", self.fit_intercept)
        if self.target_transform is not None:
            check_target_transform(self.target_transform)
        check_choice("solver", self.solver, tuple(SOLVERS))
        check_solver_params(self.solver_params)
        check_choice("prediction", self.prediction, PREDICTIONS)
        check_fraction("alignment_mix", self.alignment_mix)
        check_fraction("shrinkage", self.shrinkage)
        check_penalty("target_alpha", self.target_alpha, zero_allowed=True)
        check_penalty("alpha", self.alpha)
        check_rank(self.rank)
        check_feature_map(self.feature_map)


class SolverParams(NamedTuple):
    """Keys of ``solver_params`` with their defaults; `EntangledKernelRidge` explains each."""

    init: str = "identity"
    max_iter: int = 200
    tol: float = 1e-6
    verbose: bool = False


def check_solver_params(params: Any) -> SolverParams:
    """Settings of the iterative solvers from the parameter ``solver_params``, a mapping or None."""
    if params is None:
        return SolverParams()
    values = SolverParams(**check_settings("solver_params", params, SolverParams()._asdict()))
    check_choice("solver_params['init']", values.init, ("identity", "random"))
    check_integer("solver_params['max_iter']", values.max_iter, low=1)
    check_penalty("solver_params['tol']", values.tol, zero_allowed=True)
    check_flag("solver_params['verbose']", values.verbose)
    return values._replace(max_iter=int(values.max_iter), tol=float(values.tol))


def warn_of_stall(fit: Fit) -> None:
    """Warn that a solver stopped before its tolerance, without progress."""
    warn_user(
        f"solver={fit.settings.solver!r} could not raise the alignment any further after {fit.n_iter} "
        f"steps, although the gradient is longer than tol={fit.settings.tol}; standardise the features "
        f"or raise tol",
        ConvergenceWarning,
    )


def _print_progress(max_iter: int) -> Callable[[Progress], None]:
    """A callback that prints the alignment of every tenth step."""

    def report(progress: Progress) -> None:
        if progress.n_iter % 10 == 0 or progress.n_iter == max_iter:
            print(
                f"[EntangledKernelRidge] step {progress.n_iter}/{max_iter}  "
                f"alignment {progress.value:.6f}  gradient {progress.gradient_norm:.1e}"
            )

    return report
