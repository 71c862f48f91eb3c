"""Features of the kernel of a forest: the share of trees in which two rows fall into the same leaf."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array, rank_tolerance
from ..parameters import check_integer
from .kernel_maps import inverse_root
from .training_rows import mean_and_scale, some_rows, standardised_targets, training_rows
from .trees import Trees, leaf_means, shared_leaves

__all__ = ["ForestFeatures"]

# With more targets than this, trees are grown for this many principal axes of the targets.
AXES = 16
# Targets are rounded to this fraction of their standard deviation. Then sums of them are exact, and
# a choice between two equally good splits does not depend on the order of the rows, or on weights
# and repeated rows.
PARTS = 2.0**20
# With more columns than this, every split compares this many columns, drawn at random.
MOST_COLUMNS = 300
# More trees than this would take more memory than any machine has.
MOST_TREES = 100_000
# Factor of the smallest leaf, so that rounding of shares of the total weight refuses none.
_LEEWAY = 1.0 - 1e-9


class ForestFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
    """Features of the kernel of extremely randomised trees, grown for all targets together.

    The kernel of two rows is the share of trees in which they fall into one leaf. Kernel ridge on
    it is the forest itself in the limit of a small ridge where every leaf holds one training row,
    and a smoothed forest otherwise.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees, at most 100,000.
    min_samples_leaf : int, default=1
        Least total weight of the training rows in a leaf; without weights their number.
    n_components : int, default=300
        Rows that the features are built on. With as many as there are training rows that differ in
        some leaf, the features are exact.
    max_rows : int, default=1000
        Rows, drawn at random, that the trees are grown on.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    trees_ : Trees
        The trees as plain arrays.
    components_ : ndarray of shape (number of components, n_estimators)
        Leaves of the rows that the features are built on.
    mean_, scale_ : ndarray of shape (d,)
    n_features_in_, feature_names_in_

    Notes
    -----
    With F the indicators of the leaves, (n, leaves), the kernel is K = F F^T / T of T trees.
    Features are k(x, R) k(R, R)^-1/2 of training rows R: exact on the training rows, and so for
    ridge, if R are all of them. With more than ``n_components`` rows, R are drawn at random, and
    the predictions of the forest for its targets, which are linear in F too, are added to k(x, R).
    So ridge on the features can give the forest itself, whatever the number of rows.

    *Where ridge is the forest.* Let every leaf hold one training row, as with
    ``min_samples_leaf=1``, distinct rows and targets. Then K = I on the training rows, and ridge
    with an intercept gives

        f(x) = mean y + sum_i k(x, x_i) (y_i - mean y) / (1 + alpha)

    Since sum_i k(x, x_i) = 1, that is (forest(x) + alpha mean y) / (1 + alpha). With larger leaves
    the forest divides by the size of each leaf and ridge solves a system with K; they are not the
    same then.

    With more than 16 targets, trees are grown for the 16 leading principal axes. The gain of a
    split is a sum of squares over targets, which no rotation changes, so only the axes of least
    variance are left out. With more than 300 columns every split compares 300 of them, drawn at
    random. A missing target (NaN) is left out of the mean and variance of its target, and then
    replaced by that mean, so that it favours no split. Rows without any target are left out.

    Cost: trees times n log n times d to fit; to transform, rows times trees times depth.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidge, ForestFeatures
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidge(ForestFeatures(random_state=0), shrinkage=1.0, alpha=1e-9)
    >>> bool(abs(model.fit(X, Y).predict(X) - Y).max() < 1e-6)
    True
    """

    # Targets may be NaN.
    takes_missing_targets = True
    # With a tiny alpha the model is the forest.
    interpolates = True

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        min_samples_leaf: int = 1,
        n_components: int = 300,
        max_rows: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.n_components = n_components
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees and choose the rows that the features are built on.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, p)
            NaN where a target is missing.
        sample_weight : array-like of shape (n,), optional
            A row of weight w counts as w equal rows.
        """
        check_integer("n_estimators", self.n_estimators, low=1)
        if self.n_estimators > MOST_TREES:
            raise ValueError(f"n_estimators must be at most {MOST_TREES}, got {self.n_estimators}")
        check_integer("min_samples_leaf", self.min_samples_leaf, low=1)
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_rows", self.max_rows, low=2)
        X, Y, weight = training_rows(self, X, y, sample_weight)
        self.mean_, self.scale_ = mean_and_scale(X, weight)
        rng = check_random_state(self.random_state)
        rows = some_rows(len(X), int(self.max_rows), rng)
        known = np.nan_to_num(standardised_targets(Y, weight)[rows])
        Z, weight = self._standardised(X[rows]), None if weight is None else weight[rows]
        targets = np.round(_leading_axes(known, weight) * PARTS) / PARTS
        total = float(len(Z) if weight is None else weight.sum())
        least = (
            min(0.5, _LEEWAY * self.min_samples_leaf / total) if self.min_samples_leaf > 1 else 0.0
        )
        grown = _grow(Z, targets, weight, int(self.n_estimators), least, rng)
        self.trees_ = Trees.from_estimators(grown)
        # Distinct rows in sorted order, so that repeated rows change nothing.
        leaves = np.unique(self.trees_.leaves(Z), axis=0)
        chosen = some_rows(len(leaves), int(self.n_components), rng)
        self.components_ = leaves[chosen]
        nodes = [tree.tree_.value[:, :, 0] for tree in grown]
        self._forecasts = np.vstack(nodes) if len(chosen) < len(leaves) else np.empty((0, 0))
        G = self._gram()
        # With one row in every leaf nothing is left to do.
        self._whitener = None if np.array_equal(G, np.eye(len(G))) else inverse_root(G)
        return self

    def transform(self, X: Any) -> Array:
        """Features of rows, (n, number of features); their inner products give or approximate the kernel."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        products = self._products(self.trees_.leaves(self._standardised(X)))
        return products if self._whitener is None else np.asarray(products @ self._whitener)

    def _standardised(self, X: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray((X - self.mean_) / self.scale_)

    def _products(self, leaves: NDArray[np.int32]) -> Array:
        """Inner products of rows with the components: rows, and the predictions of the forest if used."""
        K = shared_leaves(leaves, self.components_, self.trees_.n_nodes)
        return (
            K if not self._forecasts.size else np.hstack([K, leaf_means(leaves, self._forecasts)])
        )

    def _gram(self) -> Array:
        """Inner products of the components with each other."""
        G = self._products(self.components_)
        if not self._forecasts.size:
            return G
        # Predictions v, one number per leaf, are the vector v / sqrt(T) in the space of the kernel.
        inner = self.trees_.children[:, 0] != np.arange(self.trees_.n_nodes)
        V = np.where(inner[:, None], 0.0, self._forecasts)
        return np.vstack([G, np.hstack([G[:, len(G) :].T, V.T @ V / len(self.trees_.roots)])])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _grow(
    Z: Array, targets: Array, weight: Array | None, n: int, least: float, rng: np.random.RandomState
) -> list[Any]:
    """The trees of scikit-learn's ExtraTreesRegressor, with the same seeds.

    Rows and settings are checked before. Checking them once more for every tree, as a forest does,
    takes as long as growing a tree of thirty rows. So does making a generator for each: one is
    seeded again instead.
    """
    cells, largest = np.ascontiguousarray(Z, dtype=np.float32), np.iinfo(np.int32).max
    own, targets = np.random.RandomState(0), np.ascontiguousarray(targets)
    most = min(Z.shape[1], MOST_COLUMNS)
    settings = {"max_features": most, "min_weight_fraction_leaf": least, "random_state": own}
    trees = []
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(n):
            own.seed(rng.randint(largest))
            trees.append(
                ExtraTreeRegressor(**settings).fit(cells, targets, weight, check_input=False)
            )
    return trees


def _leading_axes(Y: Array, weight: Array | None) -> Array:
    """The targets, or their leading principal axes if there are many, (n, at most AXES)."""
    if Y.shape[1] <= AXES:
        return Y
    weighted = Y if weight is None else Y * np.sqrt(weight)[:, None]
    if Y.shape[1] <= len(Y):
        return np.asarray(Y @ eigh(weighted.T @ weighted)[1][:, -AXES:])
    values, vectors = eigh(weighted @ weighted.T)
    scale = np.sqrt(np.maximum(values, values[-1] * rank_tolerance(len(Y))))[-AXES:]
    return np.asarray(Y @ (weighted.T @ (vectors[:, -AXES:] / scale)))
