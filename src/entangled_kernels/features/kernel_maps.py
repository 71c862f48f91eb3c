"""Nystroem features of kernels that are tuned to the targets by evidence (marginal likelihood)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from scipy.special import boxcox1p
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linalg import Array, rank_tolerance
from ..parameters import check_choice, check_flag, check_positive, check_range
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
    SupervisedFeatures,
    distinct_rows,
    some_rows,
    standardise,
)

__all__ = [
    "POWERS",
    "ColumnWidthFeatures",
    "EvidenceFeatures",
    "KernelFeatures",
    "apply_powers",
    "choose_powers",
    "inverse_root",
    "power_slopes",
]

# Smoothness of Matern kernels, by the name of the shape.
SMOOTHNESS = {"matern": 2.5, "exponential": 0.5}
# Powers that are tried: 1 leaves a column as it is, 0 is a logarithm above the mean, 2 is one below
# the mean. No power grows faster than a square far from the mean.
POWERS = np.linspace(0.0, 2.0, 17)
# The powers are chosen on at most this many rows, drawn at random.
_MOST_ROWS = 1000


class KernelFeatures(SupervisedFeatures):
    """Nystroem features of a scikit-learn kernel on standardised columns."""

    n_components: int
    # Whether columns are made symmetric first.
    warp: bool = False

    def _fit_columns(self, X: Array, weight: Array, rng: np.random.RandomState) -> Array:
        """Fit the limits, powers and scales of the columns; the columns before standardisation."""
        self._fit_limits(X)
        if self.warp:
            U, self.column_mean_, self.column_scale_ = standardise(X, weight)
            self.powers_ = choose_powers(U, weight, rng)
        X = self._columns(X)
        _, self.mean_, self.scale_ = standardise(X, weight)
        return X

    def _fit_components(self, X: Array, kernel: Any, rng: np.random.RandomState) -> None:
        """Choose the rows that the features of a kernel are built on."""
        # Distinct rows in sorted order, so that repeated rows change nothing.
        distinct = distinct_rows(X)
        distinct = distinct[some_rows(len(distinct), int(self.n_components), rng)]
        self.kernel_, self.components_ = kernel, (distinct - self.mean_) / self.scale_
        self._whitener = inverse_root(kernel(self.components_))

    def transform(self, X: Any) -> Array:
        """Features (n, number of features), whose inner products approximate the kernel."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z = (self._columns(X) - self.mean_) / self.scale_
        check_range("X in units of the training rows", Z, smallest=0.0)
        return np.asarray(self.kernel_(Z, self.components_) @ self._whitener)

    def _columns(self, X: Array) -> Array:
        """Columns before they are standardised: clipped to their limits, then made symmetric."""
        X = np.clip(X, self.lower_, self.upper_)
        if not self.warp:
            return X
        return apply_powers((X - self.column_mean_) / self.column_scale_, self.powers_)

    def _column_slopes(self, X: Array) -> Array:
        """Derivatives (n, d) of `_columns`."""
        within = np.asarray((self.lower_ <= X) & (self.upper_ >= X), dtype=np.float64)
        if not self.warp:
            return within
        U = (np.clip(X, self.lower_, self.upper_) - self.column_mean_) / self.column_scale_
        return within * power_slopes(U, self.powers_) / self.column_scale_


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
            NaN where a target is missing.
        sample_weight : array-like of shape (n,), optional
        """
        check_positive("noise", self.noise)
        check_flag("warp", self.warp)
        X, Y, weight, _ = self._training_rows(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        X = self._fit_columns(X, weight, rng)
        rows = some_rows(len(X), int(self.max_rows), rng)
        Z, T = (X[rows] - self.mean_) / self.scale_, standardise(Y, weight)[0][rows]
        start = _default_kernel(Z) if self.kernel is None else clone(self.kernel)
        tuned = tune_kernel(start, Z, T, weight[rows], noise=float(self.noise))
        self.noise_, self.log_marginal_likelihood_ = tuned.noise, tuned.log_likelihood
        self._fit_components(X, tuned.kernel, rng)
        return self

    def warm_start(self) -> EvidenceFeatures:
        """New features, not fitted, whose search starts from the parameters of these."""
        check_is_fitted(self)
        start: EvidenceFeatures = clone(self)
        start.set_params(kernel=self.kernel_, noise=self.noise_)
        return start


class ColumnWidthFeatures(KernelFeatures):
    """Nystroem features of a kernel with a separate width for every column, chosen by evidence.

    Columns are standardised and divided by their widths. The kernel has three parts: a Gaussian or
    Matern one, a linear one, and their product, which lets slopes vary with the inputs. Their
    weights, the noise and the widths maximise the marginal likelihood of all targets together, with
    a penalty on the log widths about a common one; the evidence also decides the strength of this
    penalty. Columns get a large width only if the rows show that they are irrelevant; otherwise
    all widths are equal. The weights, the noise and the common width have weak penalties.

    Tables with more than 200 columns get one width for all columns.

    Parameters
    ----------
    shape : {"matern", "gaussian", "exponential"}, default="matern"
        Matern of smoothness 5/2, Gaussian, or exp(-distance), the Matern kernel of smoothness 1/2,
        for functions that bend sharply.
    spread : float or None, default=None
        Prior standard deviation of a log width about the common one; 0 is one width for all
        columns. None compares 0, 0.3 and 1 by evidence.
    start : ndarray of shape (5 + d,) or None, default=None
        Where the search starts, as ``theta_`` of fitted features; not used with another number of
        columns.
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
    penalty. Every target counts over the rows where it is not missing (NaN).

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
        check_flag("warp", self.warp)
        X, Y, weight, _ = self._training_rows(X, y, sample_weight)
        start = self._check_start((COMMON + X.shape[1],))
        rng = check_random_state(self.random_state)
        X = self._fit_columns(X, weight, rng)
        rows = some_rows(len(X), int(self.max_rows), rng)
        Z, T = (X[rows] - self.mean_) / self.scale_, standardise(Y, weight)[0][rows]
        evidence = PenalisedEvidence(Z, T, weight[rows], median_distance(Z), self.shape)
        spread = None if self.spread is None else float(self.spread)
        self.theta_, self.spread_, self.log_marginal_likelihood_ = tune_widths(
            evidence, start, spread
        )
        c1, c2, c3, self.noise_, width = map(float, np.exp(self.theta_[:COMMON]))
        self.widths_ = np.exp(self.theta_[4] + self.theta_[COMMON:])
        # Columns with a large width are shorter in the linear part too.
        self.scale_ = self.scale_ * np.exp(self.theta_[COMMON:])
        near = RBF(width) if self.shape == "gaussian" else Matern(width, nu=SMOOTHNESS[self.shape])
        linear = DotProduct(0.0, "fixed")
        local = ConstantKernel(c1) + ConstantKernel(c3) * linear
        self._fit_components(X, near * local + ConstantKernel(c2) * linear, rng)
        return self

    def warm_start(self) -> ColumnWidthFeatures:
        """New features, not fitted, whose search starts from the parameters and spread of these."""
        check_is_fitted(self)
        started: ColumnWidthFeatures = clone(self)
        started.set_params(start=self.theta_, spread=self.spread_)
        return started


def _default_kernel(Z: Array) -> Any:
    median = median_distance(Z)
    width = RBF(median, (WIDTHS[0] * median, WIDTHS[1] * median))
    slope = ConstantKernel(0.5 / Z.shape[1], (1e-6, 1e2)) * DotProduct(0.0, "fixed")
    return ConstantKernel(0.5, (1e-5, 1e3)) * width + slope


def inverse_root(K: Array) -> Array:
    """K^-1/2, or its pseudo-inverse; k(x, R) k(R, R)^-1/2 are features of rows x."""
    values, vectors = eigh(K)
    keep = values > rank_tolerance(len(values)) * max(values[-1], np.finfo(float).tiny)
    return np.asarray((vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T)


def choose_powers(U: Array, weight: Array, rng: np.random.RandomState) -> Array:
    """Powers (d,) of standardised columns (n, d) that maximise the normal likelihood of the rows.

    See `apply_powers`. The power of a constant column is one.
    """
    rows = some_rows(len(U), _MOST_ROWS, rng)
    U, w = U[rows], weight[rows]
    total, leaning = w.sum(), w @ (np.sign(U) * np.log1p(np.abs(U)))
    likelihood = np.empty((len(POWERS), U.shape[1]))
    for row, power in enumerate(POWERS):
        values = apply_powers(U, power)
        variance = w @ (values - w @ values / total) ** 2 / total
        likelihood[row] = (power - 1.0) * leaning / total
        likelihood[row] -= 0.5 * np.log(np.maximum(variance, np.finfo(float).tiny))
    return np.where(np.ptp(U, axis=0) > 0.0, POWERS[likelihood.argmax(axis=0)], 1.0)


def apply_powers(U: Array, power: float | Array) -> Array:
    """Standardised columns u (n, d), made symmetric by a power for every column.

    A column becomes ((1 + u)^power - 1) / power above the mean, and below it the same of -u with
    the power 2 - power, mirrored; a logarithm if the power is zero. The slope at the mean is one.

    References
    ----------
    Yeo and Johnson (2000), A new family of power transformations to improve normality or symmetry.
    """
    size = boxcox1p(np.abs(U), np.where(U >= 0.0, power, 2.0 - power))
    return np.asarray(np.where(U >= 0.0, size, -size))


def power_slopes(U: Array, power: Array) -> Array:
    """Derivatives (n, d) of `apply_powers`."""
    return np.asarray((1.0 + np.abs(U)) ** (np.where(U >= 0.0, power, 2.0 - power) - 1.0))
