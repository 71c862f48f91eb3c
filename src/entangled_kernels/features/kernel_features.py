"""Features of Gaussian kernels, of median width or tuned to the targets by marginal likelihood."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_numeric_columns,
    check_positive,
    check_weights,
)
from .evidence import tune_kernel
from .nystroem import inverse_root, some_rows
from .powers import ColumnPowers
from .training_rows import mean_and_scale, standardised_targets, training_rows

__all__ = ["EvidenceFeatures", "GaussianFeatures", "KernelFeatures", "median_distance"]

APPROXIMATIONS = ("nystroem", "fourier")
# Factors by which the width may leave the median distance.
WIDTHS = (0.05, 50.0)
# Rows whose distances give the median.
_MEDIAN_ROWS = 1000


class KernelFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
    """Nystroem features of a scikit-learn kernel on standardised columns."""

    n_components: int
    # Whether columns are made symmetric first.
    warp: bool = False
    # How far rows count beyond those that the map is fitted on, in units of the range of a column.
    reach: float | None = None
    # Limits of columns, those of models from before there were any.
    lower_: Any = -np.inf
    upper_: Any = np.inf

    def _standardise(self, X: Array, weight: Array | None) -> Array:
        self.mean_, self.scale_ = mean_and_scale(X, weight)
        return np.asarray((X - self.mean_) / self.scale_)

    def _carry(self, X: Array, kernel: Any, rng: np.random.RandomState) -> None:
        """Choose the rows that carry the features of a kernel."""
        # Distinct and in order, so that repeated rows change nothing.
        distinct = np.unique(X, axis=0)
        distinct = distinct[some_rows(len(distinct), int(self.n_components), rng)]
        self.kernel_, self.components_ = kernel, (distinct - self.mean_) / self.scale_
        self._whitener = inverse_root(kernel(self.components_))

    def transform(self, X: Any) -> Array:
        """Features of rows, (n, number of features); their inner products approximate the kernel."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z = (self._columns(X) - self.mean_) / self.scale_
        return np.asarray(self.kernel_(Z, self.components_) @ self._whitener)

    def _fit_columns(self, X: Array, weight: Array | None, rng: np.random.RandomState) -> Array:
        """What is standardised, with the limits and powers that are to be found on these rows."""
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.full_like(low, np.inf)
        if self.reach is not None:
            check_positive("reach", self.reach, zero_allowed=True)
            beyond = float(self.reach) * (high - low)
        self.lower_, self.upper_ = low - beyond, high + beyond
        if self.warp:
            found = ColumnPowers.of(X, weight, rng)
            self.column_mean_, self.column_scale_, self.powers_ = found.mean, found.scale, found.power
        return self._columns(X)

    def _columns(self, X: Array) -> Array:
        """What is standardised: the columns within their limits, or powers of them."""
        X = np.clip(X, self.lower_, self.upper_)
        return self._powers().apply(X) if self.warp else X

    def _column_slopes(self, X: Array) -> Array:
        """Derivatives (n, d) of what is standardised by the columns."""
        within = np.asarray((self.lower_ <= X) & (self.upper_ >= X), dtype=np.float64)
        if not self.warp:
            return within
        return within * self._powers().slope(np.clip(X, self.lower_, self.upper_))

    def _powers(self) -> ColumnPowers:
        return ColumnPowers(self.column_mean_, self.column_scale_, self.powers_)


class GaussianFeatures(KernelFeatures):
    """Features of a Gaussian kernel as wide as the median distance between standardised rows.

    The kernel is exp(-distance^2 / (width * median)^2).

    Parameters
    ----------
    width : float, default=1.0
        In units of the median distance.
    n_components : int, default=300
        Rows that the features are built on; with as many as there are training rows they are exact. Of
        Fourier features, their number.
    approximation : {"nystroem", "fourier"}, default="nystroem"
        Features built on rows of the table, or random Fourier features
        (`sklearn.kernel_approximation.RBFSampler`), which see nothing of the table but the width.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    components_ : ndarray of shape (number of components, d)
        The rows, standardised; not there with Fourier features.
    mean_, scale_ : ndarray of shape (d,)
    n_features_in_, feature_names_in_
    """

    def __init__(
        self,
        width: float = 1.0,
        *,
        n_components: int = 300,
        approximation: str = "nystroem",
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.n_components = n_components
        self.approximation = approximation
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the width, and choose the rows that carry the features.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), optional
        """
        check_positive("width", self.width)
        check_integer("n_components", self.n_components, low=1)
        check_choice("approximation", self.approximation, APPROXIMATIONS)
        check_numeric_columns(X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        weight = check_weights(sample_weight, len(X))
        if weight is not None:
            X, weight = X[weight > 0.0], weight[weight > 0.0]
        Z, rng = self._standardise(X, weight), check_random_state(self.random_state)
        median = median_distance(Z[some_rows(len(Z), _MEDIAN_ROWS, rng)])
        # scikit-learn's length scale l is that of exp(-distance^2 / (2 l^2)).
        kernel = RBF(self.width * median / np.sqrt(2.0))
        if self.approximation == "nystroem":
            self._carry(X, kernel, rng)
        else:
            gamma = 1.0 / (self.width * median) ** 2
            sampler = RBFSampler(gamma=gamma, n_components=int(self.n_components), random_state=rng)
            self.kernel_, self._sampler = kernel, sampler.fit(Z)
        return self

    def transform(self, X: Any) -> Array:
        """Features of rows, (n, number of features); their inner products approximate the kernel."""
        if self.approximation == "nystroem":
            return super().transform(X)
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self._sampler.transform((X - self.mean_) / self.scale_))


class EvidenceFeatures(KernelFeatures):
    """Nystroem features of a Gaussian-process kernel whose hyper-parameters are chosen by evidence.

    Columns are standardised. The default kernel is a Gaussian one plus a linear one; their weights, the width
    and the noise maximise the marginal likelihood of the targets, with all outputs sharing them.

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
        Rows, drawn at random, that the marginal likelihood is taken of; the time grows with their cube.
    warp : bool, default=False
        Make every column symmetric first, by a power of Yeo and Johnson's family, so that a few large values
        of a skewed column do not set its scale.
    reach : float or None, default=None
        How far rows count beyond those that the map is fitted on, in units of the range of a column: what
        lies farther out is taken for what lies there, so that a column which hardly varied among these rows
        cannot carry predictions away. A trend is not followed beyond it. None sets no limit.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    noise_ : float
        Variance of the noise, in units of the variance of a target: the ridge penalty that goes with it.
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

    # Targets may be NaN where they were not measured.
    takes_blanks = True

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
            NaN where a target was not measured; the likelihood is that of the others.
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
        found = tune_kernel(
            start, Z[rows], targets, None if weight is None else weight[rows], noise=float(self.noise)
        )
        self.noise_, self.log_marginal_likelihood_ = found.noise, found.log_likelihood
        self._carry(X, found.kernel, rng)
        return self

    def warm_start(self) -> EvidenceFeatures:
        """New features, not fitted, whose search starts from what was found here."""
        check_is_fitted(self)
        start: EvidenceFeatures = clone(self)
        return start.set_params(kernel=self.kernel_, noise=self.noise_)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def median_distance(Z: Array) -> float:
    """Median distance between distinct rows, one where there is but one: the width of a Gaussian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> median_distance(np.array([[0.0], [1.0], [1.0], [3.0]]))
    2.0
    """
    distances = euclidean_distances(np.unique(Z, axis=0))
    apart = distances[distances > 0.0]
    return float(np.median(apart)) if apart.size else 1.0


def _default_kernel(Z: Array) -> Any:
    median = median_distance(Z)
    width = RBF(median, (WIDTHS[0] * median, WIDTHS[1] * median))
    slope = ConstantKernel(0.5 / Z.shape[1], (1e-6, 1e2)) * DotProduct(0.0, "fixed")
    return ConstantKernel(0.5, (1e-5, 1e3)) * width + slope
