"""Nystroem features of kernels that are tuned to the targets by evidence (marginal likelihood)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from scipy.special import boxcox1p
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array, rank_tolerance
from ..parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_positive,
    check_range,
)
from .evidence import (
    COMMON,
    SHAPES,
    WIDTHS,
    PenalisedEvidence,
    median_distance,
    tune_kernel,
    tune_widths,
)
from .training_rows import (
    distinct_rows,
    mean_and_scale,
    some_rows,
    standardised_targets,
    training_rows,
)

__all__ = [
    "POWERS",
    "ColumnPowers",
    "ColumnWidthFeatures",
    "EvidenceFeatures",
    "KernelFeatures",
    "inverse_root",
]

# Smoothness of Matern kernels, by the name of the shape.
SMOOTHNESS = {"matern": 2.5, "exponential": 0.5}
# Powers that are tried: 1 leaves a column as it is, 0 is a logarithm above the mean, 2 one below
# it. Far from the mean no power grows faster than a square.
POWERS = np.linspace(0.0, 2.0, 17)
# The powers are chosen on at most this many rows, drawn at random.
_MOST_ROWS = 1000


class KernelFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
    """Nystroem features of a scikit-learn kernel on standardised columns."""

    n_components: int
    # Whether columns are made symmetric first.
    warp: bool = False
    # Inputs are clipped at this many ranges of a column beyond the training rows.
    reach: float | None = None

    def _standardise(self, X: Array, weight: Array | None) -> Array:
        self.mean_, self.scale_ = mean_and_scale(X, weight)
        return np.asarray((X - self.mean_) / self.scale_)

    def _choose_components(self, X: Array, kernel: Any, rng: np.random.RandomState) -> None:
        """Choose the rows that the features of a kernel are built on."""
        # Distinct rows in sorted order, so that repeated rows change nothing.
        distinct = distinct_rows(X)
        distinct = distinct[some_rows(len(distinct), int(self.n_components), rng)]
        self.kernel_, self.components_ = kernel, (distinct - self.mean_) / self.scale_
        self._whitener = inverse_root(kernel(self.components_))

    def transform(self, X: Any) -> Array:
        """Features of rows, (n, number of features); their inner products approximate the kernel."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z = (self._columns(X) - self.mean_) / self.scale_
        check_range("X in units of the training rows", Z, smallest=0.0)
        return np.asarray(self.kernel_(Z, self.components_) @ self._whitener)

    def _fit_columns(self, X: Array, weight: Array | None, rng: np.random.RandomState) -> Array:
        """Find limits and powers of the columns, and apply them."""
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.full_like(low, np.inf)
        if self.reach is not None:
            check_positive("reach", self.reach, zero_allowed=True)
            beyond = float(self.reach) * (high - low)
        self.lower_, self.upper_ = low - beyond, high + beyond
        if self.warp:
            powers = ColumnPowers.of(X, weight, rng)
            self.column_mean_, self.column_scale_, self.powers_ = (
                powers.mean,
                powers.scale,
                powers.power,
            )
        return self._columns(X)

    def _columns(self, X: Array) -> Array:
        """Columns before they are standardised: clipped to their limits, then warped."""
        X = np.clip(X, self.lower_, self.upper_)
        return self._powers().apply(X) if self.warp else X

    def _column_slopes(self, X: Array) -> Array:
        """Derivatives (n, d) of `_columns`."""
        within = np.asarray((self.lower_ <= X) & (self.upper_ >= X), dtype=np.float64)
        if not self.warp:
            return within
        return within * self._powers().slope(np.clip(X, self.lower_, self.upper_))

    def _powers(self) -> ColumnPowers:
        return ColumnPowers(self.column_mean_, self.column_scale_, self.powers_)


class EvidenceFeatures(KernelFeatures):
    """Nystroem features of a Gaussian-process kernel whose hyper-parameters are chosen by evidence.

    Columns are standardised. The default kernel is a Gaussian one plus a linear one; their weights,
    the width and the noise maximise the marginal likelihood of the targets, with all outputs
    sharing them.

    Parameters
    ----------
    kernel : scikit-learn kernel or None, default=None
        Where the search starts, in standardised columns, without noise. None is
        ``ConstantKernel() * RBF(median distance) + ConstantKernel() * DotProduct(0)``.
    noise : float, default=0.1
        Where the search for the noise starts, in units of the variance of a target.
    n_components : int, default=300
        Rows that the features are built on. With as many as there are training rows they are exact.
    max_rows : int, default=300
        Rows, drawn at random, for the marginal likelihood; the time grows with the cube of their
        number.
    warp : bool, default=False
        Make every column symmetric first, by a power of Yeo and Johnson's family, so that a few
        large values of a skewed column do not set its scale.
    reach : float or None, default=None
        Inputs are clipped at this many ranges of a column beyond the training rows, so that a
        column which hardly varied among these cannot dominate predictions. A trend is not followed
        beyond it. None sets no limit.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    noise_ : float
        Variance of the noise, in units of the variance of a target: the ridge penalty that goes
        with it.
    log_marginal_likelihood_ : float
        Per output, of standardised targets.
    components_ : ndarray of shape (number of components, d)
        The rows, standardised.
    mean_, scale_ : ndarray of shape (d,)
        Of the columns, symmetric where ``warp`` says so.
    column_mean_, column_scale_, powers_ : ndarray of shape (d,)
        Of the columns as given, and the powers; only there with ``warp``.
    lower_, upper_ : ndarray of shape (d,)
        Limits of the columns, infinite without a ``reach``.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EvidenceFeatures
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> EvidenceFeatures(random_state=0).fit(X, Y).transform(X).shape[0]
    20
    """

    # Targets may be NaN.
    takes_missing_targets = True

    def __init__(
        self,
        kernel: Any = None,
        *,
        noise: float = 0.1,
        n_components: int = 300,
        max_rows: int = 300,
        warp: bool = False,
        reach: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.n_components = n_components
        self.max_rows = max_rows
        self.warp = warp
        self.reach = reach
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Tune the kernel to the targets and choose the rows that carry the features.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, p)
            NaN where a target is missing; the likelihood is that of the known targets.
        sample_weight : array-like of shape (n,), optional
        """
        check_positive("noise", self.noise)
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_rows", self.max_rows, low=2)
        check_flag("warp", self.warp)
        X, Y, weight = training_rows(self, X, y, sample_weight)
        rng = check_random_state(self.random_state)
        X = self._fit_columns(X, weight, rng)
        Z = self._standardise(X, weight)
        rows = some_rows(len(Z), int(self.max_rows), rng)
        start = _default_kernel(Z[rows]) if self.kernel is None else clone(self.kernel)
        targets = standardised_targets(Y, weight)[rows]
        some_weight = None if weight is None else weight[rows]
        tuned = tune_kernel(start, Z[rows], targets, some_weight, noise=float(self.noise))
        self.noise_, self.log_marginal_likelihood_ = tuned.noise, tuned.log_likelihood
        self._choose_components(X, tuned.kernel, rng)
        return self

    def warm_start(self) -> EvidenceFeatures:
        """New features, not fitted, whose search starts from the parameters of these."""
        check_is_fitted(self)
        start: EvidenceFeatures = clone(self)
        return start.set_params(kernel=self.kernel_, noise=self.noise_)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class ColumnWidthFeatures(KernelFeatures):
    """Nystroem features of a kernel with a separate width for every column, chosen by evidence.

    Columns are standardised and divided by their widths. The kernel has three parts: a Gaussian or
    Matern one, a linear one, and their product, which lets slopes vary from place to place. Their
    weights, the noise and the widths maximise the marginal likelihood of all targets together, with
    a penalty on the log widths about a common one; the evidence also decides the strength of this
    penalty. So irrelevant columns get a large width if the rows show that they are irrelevant, and
    otherwise one width is left. The weights, the noise and the common width have weak penalties.

    Tables with more than 200 columns get one width for all columns.

    Parameters
    ----------
    shape : {"matern", "gaussian", "exponential"}, default="matern"
        Matern of smoothness 5/2, Gaussian, or exp(-distance), the Matern kernel of smoothness 1/2,
        for what bends sharply.
    spread : float or None, default=None
        Prior standard deviation of a log width about the common one; 0 is one width for all
        columns. None compares 0, 0.3 and 1 by evidence.
    start : ndarray of shape (5 + d,) or None, default=None
        Where the search starts, as ``theta_`` of fitted features.
    n_components : int, default=300
        Rows that the features are built on. With as many as there are training rows they are exact.
    max_rows : int, default=150
        Rows, drawn at random, for the marginal likelihood; the time grows with the cube of their
        number.
    warp : bool, default=False
        Make every column symmetric first, as in `EvidenceFeatures`.
    reach : float or None, default=None
        Inputs are clipped at this many ranges of a column beyond the training rows, as in
        `EvidenceFeatures`.
    max_inputs : int or None, default=None
        A search among several feature maps leaves this one out where there are more inputs.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    noise_ : float
        Variance of the noise, in units of the variance of a target: the ridge penalty that goes
        with it.
    widths_ : ndarray of shape (d,)
        In standard deviations of the columns, symmetric where ``warp`` says so.
    column_mean_, column_scale_, powers_ : ndarray of shape (d,)
        Of the columns as given, and the powers; only there with ``warp``.
    lower_, upper_ : ndarray of shape (d,)
        Limits of the columns, infinite without a ``reach``.
    spread_ : float
    theta_ : ndarray of shape (5 + d,)
        Logarithms of the weights of the three parts, of the noise and of the common width, and for
        every column the log of its width over the common one.
    log_marginal_likelihood_ : float
        Per output, of standardised targets.
    components_ : ndarray of shape (number of components, d)
        The rows, standardised.
    mean_, scale_ : ndarray of shape (d,)
        Of the columns; the scale is multiplied by the width of a column over the common one.
    n_features_in_, feature_names_in_

    Notes
    -----
    `entangled_kernels.features.evidence` has the evidence, its slopes and the choice of the
    penalty. A target that is NaN is missing: every target counts over the rows where it is known.

    Cost of a step of the search: n^3 + n^2 d for n rows of the likelihood; d of them for each
    spread.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import ColumnWidthFeatures
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> widths = ColumnWidthFeatures().fit(X, np.sin(3 * X[:, 0])).widths_
    >>> bool(widths[0] < widths[1:].min())
    True
    """

    # Targets may be NaN.
    takes_missing_targets = True

    def __init__(
        self,
        shape: str = "matern",
        *,
        spread: float | None = None,
        start: Any = None,
        n_components: int = 300,
        max_rows: int = 150,
        warp: bool = False,
        reach: float | None = None,
        max_inputs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.shape = shape
        self.spread = spread
        self.start = start
        self.n_components = n_components
        self.max_rows = max_rows
        self.warp = warp
        self.reach = reach
        self.max_inputs = max_inputs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Tune the kernel to the targets and choose the rows that carry the features.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, p)
            NaN where a target is missing.
        sample_weight : array-like of shape (n,), optional
        """
        check_choice("shape", self.shape, SHAPES)
        if self.spread is not None:
            check_positive("spread", self.spread, zero_allowed=True)
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_rows", self.max_rows, low=2)
        check_flag("warp", self.warp)
        if self.max_inputs is not None:
            check_integer("max_inputs", self.max_inputs, low=1)
        X, Y, weight = training_rows(self, X, y, sample_weight)
        rng = check_random_state(self.random_state)
        X = self._fit_columns(X, weight, rng)
        Z, targets = self._standardise(X, weight), standardised_targets(Y, weight)
        rows = some_rows(len(Z), int(self.max_rows), rng)
        some_weight, median = None if weight is None else weight[rows], median_distance(Z[rows])
        evidence = PenalisedEvidence(Z[rows], targets[rows], some_weight, median, self.shape)
        spread = None if self.spread is None else float(self.spread)
        tuned = tune_widths(evidence, self._start(Z.shape[1]), spread)
        self.theta_, self.spread_ = tuned.theta, tuned.spread
        self.log_marginal_likelihood_ = tuned.log_likelihood
        self.noise_ = float(np.exp(self.theta_[3]))
        self.widths_ = np.exp(self.theta_[4] + self.theta_[COMMON:])
        # Columns with a large width are shorter in the linear part too.
        self.scale_ = self.scale_ * np.exp(self.theta_[COMMON:])
        self._choose_components(X, self._tuned_kernel(), rng)
        return self

    def warm_start(self) -> ColumnWidthFeatures:
        """New features, not fitted, whose search starts from the parameters of these, with their spread."""
        check_is_fitted(self)
        started: ColumnWidthFeatures = clone(self)
        return started.set_params(start=self.theta_, spread=self.spread_)  # type: ignore[no-any-return]

    def _start(self, d: int) -> Array | None:
        if self.start is None:
            return None
        start = np.asarray(self.start, dtype=np.float64)
        if start.shape != (COMMON + d,) or not np.isfinite(start).all():
            raise ValueError(
                f"start must be theta_ of features fitted on as many columns, {COMMON + d} finite numbers, "
                f"got shape {start.shape}"
            )
        return start

    def _tuned_kernel(self) -> Any:
        c1, c2, c3, _, width = np.exp(self.theta_[:COMMON])
        near = RBF(width) if self.shape == "gaussian" else Matern(width, nu=SMOOTHNESS[self.shape])
        linear = DotProduct(0.0, "fixed")
        local = ConstantKernel(c1) + ConstantKernel(c3) * linear
        return near * local + ConstantKernel(c2) * linear

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _default_kernel(Z: Array) -> Any:
    median = median_distance(Z)
    width = RBF(median, (WIDTHS[0] * median, WIDTHS[1] * median))
    slope = ConstantKernel(0.5 / Z.shape[1], (1e-6, 1e2)) * DotProduct(0.0, "fixed")
    return ConstantKernel(0.5, (1e-5, 1e3)) * width + slope


def inverse_root(K: Array) -> Array:
    """K^-1/2, pseudo-inverse where K has no full rank: k(x, R) k(R, R)^-1/2 are features of rows x."""
    values, vectors = eigh(K)
    keep = values > rank_tolerance(len(values)) * max(values[-1], np.finfo(float).tiny)
    return np.asarray((vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T)


@dataclass(frozen=True, eq=False)
class ColumnPowers:
    """A power for every standardised column.

    With u = (x - mean) / scale a column becomes ((1 + u)^power - 1) / power above the mean, and
    below it the same of -u with 2 - power, mirrored; a logarithm where the power is zero. The slope
    at the mean is one.

    Attributes
    ----------
    mean, scale, power : ndarray of shape (d,)

    References
    ----------
    Yeo and Johnson (2000), A new family of power transformations to improve normality or symmetry.
    """

    mean: Array
    scale: Array
    power: Array

    @classmethod
    def of(cls, X: Array, weight: Array | None, rng: np.random.RandomState) -> ColumnPowers:
        """Powers that maximise the normal likelihood of rows (n, d) with positive weights (n,)."""
        mean, scale = mean_and_scale(X, weight)
        some = some_rows(len(X), _MOST_ROWS, rng)
        U, w = (X[some] - mean) / scale, np.ones(len(some)) if weight is None else weight[some]
        total, leaning = w.sum(), w @ (np.sign(U) * np.log1p(np.abs(U)))
        likelihood = np.empty((len(POWERS), U.shape[1]))
        for place, power in enumerate(POWERS):
            values = _apply(U, power)
            variance = w @ (values - w @ values / total) ** 2 / total
            likelihood[place] = (power - 1.0) * leaning / total
            likelihood[place] -= 0.5 * np.log(np.maximum(variance, np.finfo(float).tiny))
        varies = np.ptp(U, axis=0) > 0.0
        return cls(mean, scale, np.where(varies, POWERS[likelihood.argmax(axis=0)], 1.0))

    def apply(self, X: Array) -> Array:
        """Columns (n, d) of rows."""
        return _apply((X - self.mean) / self.scale, self.power)

    def slope(self, X: Array) -> Array:
        """Derivatives (n, d) of the columns."""
        U = (X - self.mean) / self.scale
        power = np.where(U >= 0.0, self.power, 2.0 - self.power)
        return np.asarray((1.0 + np.abs(U)) ** (power - 1.0) / self.scale)


def _apply(U: Array, power: float | Array) -> Array:
    size = boxcox1p(np.abs(U), np.where(U >= 0.0, power, 2.0 - power))
    return np.asarray(np.where(U >= 0.0, size, -size))
