"""Ridge regression of several targets with a kernel that learns how the targets hang together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..kernels import KrausKernel
from ..learning import SOLVERS, Fit, FitSettings, Moments, RowSample, fit_problem
from ..learning.cell_moments import CellMoments
from ..learning.input_range import InputRange
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_feature_map,
    check_fraction,
    check_positive,
    check_rank,
    check_rank_fits,
    naming_columns,
)
from ..streams.stream import Stream
from .dask_tables import is_dask
from .explaining import ExplainingMixin
from .notices import print_progress, warn_if_stalled, warn_of_size
from .out_of_core import OutOfCoreMixin
from .prediction import solved_attribute
from .streaming import COLUMN_ATTRIBUTES
from .targets import TargetsMixin
from .training import Training, check_solver_params

__all__ = ["PREDICTIONS", "EntangledKernelRidge"]

PREDICTIONS = ("entangled", "partial_trace")


class EntangledKernelRidge(
    OutOfCoreMixin, ExplainingMixin, TransformerMixin, RegressorMixin, MultiOutputMixin, BaseEstimator
):
    """Kernel ridge regression with a learned entangled kernel.

    Learns an operator-valued kernel K(x, z) = phi(x)^T A phi(z) I + sum_i M_i phi(x) phi(z)^T M_i^T by
    aligning it with the targets, then solves the ridge problem with it. The features phi come from any
    scikit-learn transformer.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Gives the features phi(x); cloned, and fitted with X, y and, where it takes them, the sample weights.
        None is the linear kernel; `Nystroem` and `RBFSampler` of scikit-learn approximate others.
    alpha : float, default=1.0
        Ridge penalty, positive. The learned kernel is scaled so that the trace of its training Gram matrix is
        the plain kernel's; so alpha means what it means in `sklearn.kernel_ridge.KernelRidge`.
    shrinkage : float, default=0.25
        Share, between 0 and 1, of the plain kernel phi(x)^T phi(z) I that is mixed into the learned one. With
        1 the estimator is kernel ridge.
    alignment_mix : float, default=0.5
        Weight, between 0 and 1, of aligning the whole operator-valued kernel against aligning its partial
        trace over the outputs.
    target_alpha : float, default=0.1
        Ridge of the fit whose shape the closed form takes on, in units of the mean eigenvalue of the
        features' second moments. The iterative solvers do not use it.
    prediction : {"entangled", "partial_trace"}, default="entangled"
        Predict with the operator-valued kernel, or with the one scalar kernel that its partial trace over the
        outputs gives (the paper's EKL and ptrEKL).
    rank : int, float or None, default=None
        Largest number r of Kraus operators M_i: a count of up to features times outputs, or a fraction of the
        largest number that the data can use (`full_rank_`). None leaves it to the solver: one operator and a
        metric A for the closed form, full rank for the iterative ones.
    solver : {"closed-form", "ascent", "lbfgs"}, default="closed-form"
        How the kernel is learned. ``"closed-form"`` writes down a regularised optimum of the alignment;
        ``"ascent"`` is the published algorithm, steepest ascent on the unit sphere, for which stopping
        early is what regularises; ``"lbfgs"`` runs to the optimum of the alignment.
    solver_params : dict or None, default=None
        Settings of the iterative solvers: ``init``, the start, is ``"identity"`` (the plain kernel, on the
        outputs that the features reach; default) or ``"random"``; ``max_iter`` is the number of steps, 200
        by default; the solver stops when the gradient on the unit sphere is no longer than ``tol``, 1e-6 by
        default; with ``verbose=True`` it prints the alignment as it goes.
    fit_intercept : bool, default=True
        Whether to centre features and targets; otherwise they are taken as they are.
    target_transform : {"log", "log1p"}, mapping, transformer or None, default=None
        Scale to learn the targets on: logarithms of positive targets, or of zero and positive ones; of some
        of them, as in ``{"zinc": "log"}``; or any transformer with ``inverse_transform``, fitted to y, also
        one with another number of columns, such as a basis of curves. Predictions, deviations, intervals and
        ``given`` are in units of the targets; kernel, coefficients and noise are those of transformed ones.
    random_state : int, RandomState or None, default=None
        For a random start.

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
    largest_alignment_ : float or None
        The largest alignment that any kernel has, which is known for models with an intercept.
    alignment_history_ : ndarray
        Objective, before shrinkage, at the start of the solver and after every step.
    noise_variance_ : ndarray of shape (p,)
        Estimated variance of each target about the model; see Notes. Found when first asked for.
    rkhs_norm_ : float
        Norm of the fitted function, less its intercept, in the space of the kernel it is predicted with.
    residual_covariance_, information_ : ndarray of shape (p, p)
        Of leave-one-out residuals, and what measuring each target says of the others; see `predict`.
    n_iter_, converged_, stop_reason_, solver_ : int, bool, str and str
    full_rank_ : int
        Largest Kraus rank that can matter: rank of the features times that of what they reach in the outputs.
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
    With C, B the second moments of features and of features with targets and W = (C + rho I)^-1 B the ridge
    fit for rho = target_alpha tr(C)/m, the closed form is

        D = tau I/(mp) + (1 - tau) [ (1 - mix) W W^T kron I/(p ||W||^2) + mix vec(W^T) vec(W^T)^T/||W||^2 ]

    for ``shrinkage`` tau, scaled to tr((C kron I) D) = p tr(C). The iterative solvers put their Q Q^T in the
    place of the bracket. Alignment, learning and ridge need only moments, so after one pass over the rows
    nothing depends on their number; see `entangled_kernels.learning.Moments`.

    The Gaussian-process view reads the kernel, times a variance s_o^2 for every output o, as a prior
    covariance and alpha s_o^2 as the variance of the noise. With e_o the weighted residuals of output o,
    n rows of total weight W and df_o the trace of its block of the hat matrix (plus one with an intercept),

        alpha s_o^2 = sum e_o^2 / (n - df_o),   noise_variance_[o] = alpha s_o^2 n / W

    A row of zero weight is left out; scaling all weights changes no more than scaling alpha does.

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

    coef_ = solved_attribute("coef_", "linear.coef", "Coefficients (p, m) of the features.")
    intercept_ = solved_attribute("intercept_", "linear.intercept", "Constant of every target, (p,).")
    alignment_ = solved_attribute("alignment_", "alignment", "Objective of the kernel as used.")
    alignment_terms_ = solved_attribute("alignment_terms_", "alignment_terms", "Its two terms.")
    alignment_history_ = solved_attribute("alignment_history_", "alignment_history", "Objective by step.")
    rkhs_norm_ = solved_attribute("rkhs_norm_", "rkhs_norm", "Norm of the fitted function.")
    n_iter_ = solved_attribute("n_iter_", "n_iter", "Steps of the solver.")
    converged_ = solved_attribute("converged_", "converged", "Whether the solver met its tolerance.")
    stop_reason_ = solved_attribute("stop_reason_", "stop_reason", "Why the solver stopped.")
    solver_ = solved_attribute("solver_", "settings.solver", "The solver used.")
    noise_variance_ = solved_attribute(
        "noise_variance_", "noise_variance", "Estimated variance of each target about the model."
    )
    full_rank_ = solved_attribute("full_rank_", "problem.full_rank", "Largest Kraus rank that can matter.")

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the kernel and the coefficients.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            The targets, Y in the formulas; NaN where one was not measured. Rows without any target count
            for nothing.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), or float, optional
            Non-negative weights of the squared errors, of rows or of cells; kernel and predictions are those
            of a table where each row is repeated that many times. A cell of weight zero is a blank.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X, y, sample_weight):
            return self._fit_dask(X, y, sample_weight)
        self._reset()
        table = self._check_table(X, y, sample_weight)
        feature_map, Phi = self._fit_map(self.feature_map, *self._map_targets(table))
        training = self._training(feature_map, table, Phi)
        fit = self._calibrate_in_target_units(self._fit_training(training), table)
        fit = replace(fit, inputs=InputRange.of(table.X))
        self.feature_map_, self._fit, self._stream = feature_map, fit, self._stream_kept(training)
        if self._stream is not None:
            self._stream.inputs = fit.inputs
        return self

    def _solve_moments(self, parts: list[Moments | CellMoments], sample: RowSample | None) -> Fit:
        fit = self._fit_training(self._training_of_moments(sum(parts[1:], parts[0]), sample))
        return replace(fit, inputs=None if self._stream is None else self._stream.inputs)

    def _fit_training(self, training: Training) -> Fit:
        """Learn the kernel and solve the ridge problem, with warnings of what a user should know."""
        problem = training.problem
        check_rank_fits(self.rank, problem.n_features, problem.n_outputs)
        if SOLVERS[self.solver].iterative:
            warn_of_size(problem, self.solver, self.rank)
        params = check_solver_params(self.solver_params)
        progress = print_progress(params.max_iter) if params.verbose else None
        fit = fit_problem(problem, self._settings(), progress, cells=training.cells)
        warn_if_stalled(fit)
        return training.sampled(fit)

    def _settings(self) -> FitSettings:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        params = check_solver_params(self.solver_params)
        return FitSettings(
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
            seed=int(seed),
        )

    def _adopt(self, other: Any, feature_map: Any, fit: Fit, stream: Stream | None) -> Self:
        """Become the model that another estimator has found, on tables with its columns."""
        for name in (*COLUMN_ATTRIBUTES, "target_transform_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        self.feature_map_, self._fit, self._stream = feature_map, fit, stream
        return self

    def _predict_block(
        self, X: Any, return_std: bool, return_cov: bool, given: Array | None
    ) -> tuple[Array, Array]:
        if given is not None:
            return self._calibrated_block(X, return_std, return_cov, given)
        Phi, mean = self._features_and_mean(X)
        if return_cov:
            return mean, self._fit.posterior.covariance(Phi)
        return mean, np.sqrt(self._fit.posterior.variance(Phi)) if return_std else np.empty(0)

    def project(self, X: Any) -> Array:
        """Supervised multi-task dimension reduction: every row as r coordinates for each output.

        Returns
        -------
        Z : ndarray of shape (n, p, r)
            Z[j, :, i] = M_i phi(x_j), so K(x_j, x_l) = Z[j] @ Z[l].T, plus the metric's part.
        """
        self._ensure_solved()
        if self._fit.n_operators == 0:
            raise ValueError(
                "the learned kernel has no Kraus operators to project on (shrinkage=1, alignment_mix=0 "
                "without a rank, or targets that the features say nothing about); use shrinkage below 1 "
                "and set rank"
            )
        Phi = self._features(X)
        with naming_columns(X):
            self._check_finite(Phi, Phi, self._fit.linear.coef)
        return np.asarray(self._fit.project(Phi))

    def transform(self, X: Any) -> Array:
        """`project` with outputs and coordinates in one axis, (n, p * r), the coordinates running fastest."""
        Z = self.project(X)
        return Z.reshape(len(Z), -1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: target and number of the Kraus operator."""
        # Asked for by displays, so it must not start a solve.
        check_is_fitted(self, "intercept_")
        numbers = range(self._fit.n_operators)
        return np.array([f"{name}_kraus{i}" for name in self._learned_names() for i in numbers], dtype=object)

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
    def kernel_(self) -> KrausKernel:
        """The learned kernel as an object, to look at its blocks or its entanglement."""
        return KrausKernel(self.kraus_, self.feature_map_, self.metric_)

    @property
    def largest_alignment_(self) -> float | None:
        """The largest alignment that any kernel has, None without an intercept."""
        largest: float | None = self._solved_fit("largest_alignment_").largest_alignment()
        return largest

    @property
    def kraus_(self) -> Array:
        """Kraus operators (r, p, m)."""
        return np.asarray(self._solved_fit("kraus_").kraus())

    @property
    def metric_(self) -> Array | None:
        """The matrix A (m, m), or None."""
        metric: Array | None = self._solved_fit("metric_").metric()
        return metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, tuple(SOLVERS))
        check_solver_params(self.solver_params)
        check_choice("prediction", self.prediction, PREDICTIONS)
        check_fraction("alignment_mix", self.alignment_mix)
        check_fraction("shrinkage", self.shrinkage)
        check_positive("target_alpha", self.target_alpha, zero_allowed=True)
        check_positive("alpha", self.alpha)
        check_rank(self.rank)
        check_feature_map(self.feature_map)
