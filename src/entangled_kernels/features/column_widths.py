"""Features of a kernel with a width for every column, tuned to the targets by penalised evidence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..linalg import Array
from ..parameters import check_choice, check_flag, check_integer, check_positive
from .kernel_features import KernelFeatures, median_distance
from .nystroem import some_rows
from .training_rows import standardised_targets, training_rows
from .widths import COMMON, SHAPES, PenalisedEvidence, tune_widths

__all__ = ["ColumnWidthFeatures"]

# Of Matern kernels, by the name of the shape.
SMOOTHNESS = {"matern": 2.5, "exponential": 0.5}


class ColumnWidthFeatures(KernelFeatures):
    """Nystroem features of a kernel with a width of its own for every column, chosen by evidence.

    Columns are standardised and divided by their widths. The kernel has three parts: a Gaussian or Matern
    one, a linear one, and their product, which lets slopes vary from place to place. Their weights, the noise
    and the widths maximise the marginal likelihood of the targets, all outputs together, with a penalty
    on the log widths about a common one; how strong it is the evidence decides as well. So columns that do
    not matter fade out where the rows tell, and where they do not one width is left. Weak penalties keep the
    weights, the noise and the common width where they would be no surprise.

    Parameters
    ----------
    shape : {"matern", "gaussian", "exponential"}, default="matern"
        Matern of smoothness 5/2, Gaussian, or exp(-distance), the Matern kernel of smoothness 1/2, for what
        bends sharply.
    spread : float or None, default=None
        Prior standard deviation of a log width about the common one; 0 is one width for all columns. None
        compares 0, 0.3 and 1 by evidence.
    start : ndarray of shape (5 + d,) or None, default=None
        Where the search starts, as ``theta_`` of fitted features.
    n_components : int, default=300
        Rows that the features are built on. With as many as there are training rows they are exact.
    max_rows : int, default=150
        Rows, drawn at random, that the marginal likelihood is taken of; the time grows with their cube.
    warp : bool, default=False
        Make every column symmetric first, as in `EvidenceFeatures`.
    reach : float or None, default=None
        How far rows count beyond those that the map is fitted on, in units of the range of a column, as in
        `EvidenceFeatures`.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    noise_ : float
        Variance of the noise, in units of the variance of a target: the ridge penalty that goes with it.
    widths_ : ndarray of shape (d,)
        In standard deviations of the columns, symmetric where ``warp`` says so.
    column_mean_, column_scale_, powers_ : ndarray of shape (d,)
        Of the columns as given, and the powers; only there with ``warp``.
    lower_, upper_ : ndarray of shape (d,)
        Limits of the columns, infinite without a ``reach``.
    spread_ : float
    theta_ : ndarray of shape (5 + d,)
        Logarithms of the weights of the three parts, of the noise and of the common width, and what is added
        to the last for every column.
    log_marginal_likelihood_ : float
        Per output, of standardised targets.
    components_ : ndarray of shape (number of components, d)
        The rows, standardised.
    mean_, scale_ : ndarray of shape (d,)
        Of the columns; the scale times what the width of a column is over the common one.
    n_features_in_, feature_names_in_

    Notes
    -----
    See `entangled_kernels.features.widths` for the evidence, its slopes and the choice of the penalty. A
    target that is NaN is a blank: every target counts over the rows where it is known.

    Cost of a step of the search: n^3 + n^2 d for n rows of the likelihood; d of them for each spread.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import ColumnWidthFeatures
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> widths = ColumnWidthFeatures().fit(X, np.sin(3 * X[:, 0])).widths_
    >>> bool(widths[0] < widths[1:].min())
    True
    """

    # Targets may be NaN where they were not measured.
    takes_blanks = True

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
        random_state: Any = None,
    ) -> None:
        self.shape = shape
        self.spread = spread
        self.start = start
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
            NaN where a target is not known.
        sample_weight : array-like of shape (n,), optional
        """
        check_choice("shape", self.shape, SHAPES)
        if self.spread is not None:
            check_positive("spread", self.spread, zero_allowed=True)
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_rows", self.max_rows, low=2)
        check_flag("warp", self.warp)
        X, Y, weight = training_rows(self, X, y, sample_weight)
        rng = check_random_state(self.random_state)
        X = self._fit_columns(X, weight, rng)
        Z, targets = self._standardise(X, weight), standardised_targets(Y, weight)
        rows = some_rows(len(Z), int(self.max_rows), rng)
        own, median = None if weight is None else weight[rows], median_distance(Z[rows])
        evidence = PenalisedEvidence(Z[rows], targets[rows], own, median, self.shape)
        spread = None if self.spread is None else float(self.spread)
        found = tune_widths(evidence, self._start(Z.shape[1]), spread)
        self.theta_, self.spread_ = found.theta, found.spread
        self.log_marginal_likelihood_ = found.log_likelihood
        self.noise_ = float(np.exp(self.theta_[3]))
        self.widths_ = np.exp(self.theta_[4] + self.theta_[COMMON:])
        # Columns that count less are shorter, for the linear part too.
        self.scale_ = self.scale_ * np.exp(self.theta_[COMMON:])
        self._carry(X, self._tuned_kernel(), rng)
        return self

    def warm_start(self) -> ColumnWidthFeatures:
        """New features, not fitted, whose search starts from what was found here, with the same spread."""
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
