"""Features of the kernel of a forest: the share of trees in which two rows are in one leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linalg import Array, Index, rank_tolerance
from ..parameters import check_integer
from .kernel_maps import inverse_root
from .training_rows import SupervisedFeatures, some_rows, standardise

__all__ = ["ForestFeatures", "Trees", "leaf_means", "shared_leaves"]

Leaves = NDArray[np.int32]

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
# Rows walked at a time, and rows times trees: small enough to stay in the cache, large enough for
# few calls.
ROWS, WALKERS = 4096, 2**16
# Rows that reached their leaf are dropped, every few steps, once they are this share of all.
STEPS, ARRIVED = 3, 0.25
# Factor of the smallest leaf, so that rounding of shares of the total weight refuses none.
_LEEWAY = 1.0 - 1e-9


class ForestFeatures(SupervisedFeatures):
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
        X, Y, weight, _ = self._training_rows(X, y, sample_weight)
        Z, self.mean_, self.scale_ = standardise(X, weight)
        rng = check_random_state(self.random_state)
        rows = some_rows(len(X), int(self.max_rows), rng)
        targets, weight = np.nan_to_num(standardise(Y, weight)[0][rows]), weight[rows]
        targets = np.round(_leading_axes(targets, weight) * PARTS) / PARTS
        least = 0.0
        if self.min_samples_leaf > 1:
            least = min(0.5, _LEEWAY * self.min_samples_leaf / float(weight.sum()))
        grown = _grow(Z[rows], targets, weight, int(self.n_estimators), least, rng)
        self.trees_ = Trees.from_estimators(grown)
        # Distinct rows in sorted order, so that repeated rows change nothing.
        leaves = np.unique(self.trees_.leaves(Z[rows]), axis=0)
        chosen = some_rows(len(leaves), int(self.n_components), rng)
        self.components_, self._forecasts = leaves[chosen], np.empty((0, 0))
        if len(chosen) < len(leaves):
            self._forecasts = np.vstack([tree.tree_.value[:, :, 0] for tree in grown])
        G = self._gram()
        # With one row in every leaf the products are the features.
        self._whitener = None if np.array_equal(G, np.eye(len(G))) else inverse_root(G)
        return self

    def transform(self, X: Any) -> Array:
        """Features (n, number of features), whose inner products give or approximate the kernel."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        with np.errstate(over="ignore"):
            Z = (X - self.mean_) / self.scale_
        products = self._products(self.trees_.leaves(Z))
        return products if self._whitener is None else np.asarray(products @ self._whitener)

    def _products(self, leaves: Leaves) -> Array:
        """Inner products of rows with the components: rows, and forecasts of the forest if used."""
        K = shared_leaves(leaves, self.components_, len(self.trees_.feature))
        if not self._forecasts.size:
            return K
        return np.hstack([K, leaf_means(leaves, self._forecasts)])

    def _gram(self) -> Array:
        """Inner products of the components with each other."""
        G, trees = self._products(self.components_), self.trees_
        if not self._forecasts.size:
            return G
        # Forecasts v, one number per leaf, are the vector v / sqrt(T) in the space of the kernel.
        inner = trees.children[:, 0] != np.arange(len(trees.feature))
        V = np.where(inner[:, None], 0.0, self._forecasts)
        return np.vstack([G, np.hstack([G[:, len(G) :].T, V.T @ V / len(trees.roots)])])


def _grow(
    Z: Array, targets: Array, weight: Array, n: int, least: float, rng: np.random.RandomState
) -> list[Any]:
    """The trees of scikit-learn's ExtraTreesRegressor, with the same seeds.

    Rows and settings are checked before. Checking them once more for every tree, as a forest does,
    takes as long as growing a tree of thirty rows. So does making a generator for each: one is
    seeded again instead. And so does checking weights, which are left out where all are one.
    """
    checked = None if (weight == 1.0).all() else weight
    cells, largest = np.ascontiguousarray(Z, dtype=np.float32), np.iinfo(np.int32).max
    tree_rng, targets = np.random.RandomState(0), np.ascontiguousarray(targets)
    most = min(Z.shape[1], MOST_COLUMNS)
    settings = {"max_features": most, "min_weight_fraction_leaf": least, "random_state": tree_rng}
    trees = []
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(n):
            tree_rng.seed(rng.randint(largest))
            trees.append(
                ExtraTreeRegressor(**settings).fit(cells, targets, checked, check_input=False)
            )
    return trees


def _leading_axes(Y: Array, weight: Array) -> Array:
    """The targets, or their leading principal axes if there are many, (n, at most AXES)."""
    if Y.shape[1] <= AXES:
        return Y
    weighted = Y * np.sqrt(weight)[:, None]
    if Y.shape[1] <= len(Y):
        return np.asarray(Y @ eigh(weighted.T @ weighted)[1][:, -AXES:])
    values, vectors = eigh(weighted @ weighted.T)
    scale = np.sqrt(np.maximum(values, values[-1] * rank_tolerance(len(Y))))[-AXES:]
    return np.asarray(Y @ (weighted.T @ (vectors[:, -AXES:] / scale)))


@dataclass(frozen=True, eq=False)
class Trees:
    """Decision trees as plain arrays, whose nodes are numbered through, tree after tree.

    A row at a node goes to the first child where its feature is at most the threshold, else to the
    second. Both children of a leaf are the leaf itself.

    Attributes
    ----------
    feature : ndarray of int32, shape (nodes,)
        Zero in leaves.
    threshold : ndarray of float32, shape (nodes,)
        Infinite in leaves.
    children : ndarray of int32, shape (nodes, 2)
    roots : ndarray of int32, shape (trees,)
    n_features : int

    Notes
    -----
    Every child comes after its parent in the same tree and has no other parent, so each path ends
    in a leaf. Arrays from a file that break this rule are refused when it is read.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    children: NDArray[np.int32]
    roots: NDArray[np.int32]
    n_features: int

    @classmethod
    def from_estimators(cls, estimators: Sequence[Any]) -> Self:
        """Fitted trees of scikit-learn, which send every row of float32 to the same leaves."""
        features, thresholds, children, roots = [], [], [], [0]
        for estimator in estimators:
            tree = estimator.tree_
            nodes, both = np.arange(tree.node_count), [tree.children_left, tree.children_right]
            leaf = tree.children_left < 0
            # Rounded down, so that x <= threshold keeps its answer for every x of float32.
            rounded = tree.threshold.astype(np.float32)
            below = np.nextafter(rounded, np.float32(-np.inf))
            rounded = np.where(rounded > tree.threshold, below, rounded)
            features.append(np.where(leaf, 0, tree.feature))
            thresholds.append(np.where(leaf, np.float32(np.inf), rounded))
            children.append(np.where(leaf, nodes, both).T + roots[-1])
            roots.append(roots[-1] + tree.node_count)
        return cls(
            feature=np.concatenate(features).astype(np.int32),
            threshold=np.concatenate(thresholds),
            children=np.concatenate(children).astype(np.int32),
            roots=np.array(roots[:-1], dtype=np.int32),
            n_features=int(estimators[0].tree_.n_features),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """State from a file, which is not to be trusted, is checked."""
        type(self).__init__(self, **state)
        self.check()

    def check(self) -> None:
        """Raise unless the arrays have their types and shapes, and every path ends in a leaf."""
        n = len(self.feature) if np.ndim(self.feature) == 1 else 0
        n_trees = len(self.roots) if np.ndim(self.roots) == 1 else 0
        wanted = {
            "feature": (np.int32, (n,)),
            "threshold": (np.float32, (n,)),
            "children": (np.int32, (n, 2)),
            "roots": (np.int32, (n_trees,)),
        }
        for name, (kind, shape) in wanted.items():
            array = getattr(self, name)
            got = type(array).__name__
            if isinstance(array, np.ndarray):
                got = f"{array.dtype} {array.shape}"
                if array.dtype == kind and array.shape == shape and array.size:
                    continue
            raise ValueError(
                f"{name} of the trees must be a {np.dtype(kind)} array of shape {shape} that is "
                f"not empty, got {got}"
            )
        if type(self.n_features) is not int or self.n_features < 1:
            raise ValueError(
                f"n_features of the trees must be a whole number of at least 1, "
                f"got {self.n_features!r}"
            )
        nodes, roots = np.arange(n), self.roots
        if roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= n:
            raise ValueError(f"roots of the trees must start at 0 and rise to less than {n}")
        end = np.repeat(np.append(roots[1:], n), np.diff(np.append(roots, n)))
        inner = (self.children != nodes[:, None]).any(axis=1)
        children = self.children[inner]
        if (children <= nodes[inner, None]).any() or (children >= end[inner, None]).any():
            raise ValueError(
                "children of the trees must come after their parent, within the same tree"
            )
        parents = np.bincount(children.reshape(-1), minlength=n)  # (inner nodes * 2,)
        if (parents != ~np.isin(nodes, roots)).any():
            raise ValueError("every node of the trees but the roots must have one parent")
        if self.feature.min() < 0 or self.feature.max() >= self.n_features:
            raise ValueError(f"feature of the trees must be between 0 and {self.n_features - 1}")
        if np.isnan(self.threshold).any():
            raise ValueError("threshold of the trees must hold numbers, got NaN")

    def leaves(self, X: Array) -> Leaves:
        """Number of the leaf that each row reaches in each tree, (n, trees).

        Cost: rows times trees times the mean depth, in a few array operations a level.
        """
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have {self.n_features} columns as the trees do, got shape {X.shape}"
            )
        with np.errstate(over="ignore"):
            cells = np.ascontiguousarray(X, dtype=np.float32)
        reached = np.empty((len(X), len(self.roots)), dtype=np.int32)
        # Node i is numbered 2 i here, so that node + 1 is where its second child is stored.
        feature, threshold = (
            np.repeat(self.feature.astype(np.intp), 2),
            np.repeat(self.threshold, 2),
        )
        children = 2 * self.children.astype(np.intp).reshape(-1)  # (nodes * 2,)
        roots = 2 * self.roots.astype(np.intp)
        for start in range(0, len(X), ROWS):
            rows = cells[start : start + ROWS]
            many = max(1, WALKERS // len(rows))
            for tree in range(0, len(roots), many):
                leaves = _walk(rows, roots[tree : tree + many], feature, threshold, children)
                reached[start : start + ROWS, tree : tree + many] = leaves.T
        return reached


def _walk(
    X: NDArray[np.float32],
    roots: Index,
    feature: Index,
    threshold: NDArray[np.float32],
    children: Index,
) -> Leaves:
    """Leaves of rows in some trees, (trees, n): all walkers take a step at once."""
    n, d = X.shape
    cells, end = X.reshape(-1), np.empty(len(roots) * n, dtype=np.int32)  # (n * d,)
    node, first, walker = (
        np.repeat(roots, n),
        np.tile(np.arange(n) * d, len(roots)),
        np.arange(len(end)),
    )
    while len(node):
        for _ in range(STEPS):
            before = node
            # All numbers are within bounds, and clipping them is faster than checking.
            cell = feature.take(node, mode="clip")
            cell += first
            right = cells.take(cell, mode="clip") > threshold.take(node, mode="clip")
            node = children.take(node + right, mode="clip")
        moving = np.flatnonzero(node != before)
        if len(moving) <= (1.0 - ARRIVED) * len(node):
            end[walker] = node >> 1
            node, first, walker = node[moving], first[moving], walker[moving]
    return end.reshape(len(roots), n)


def shared_leaves(first: Leaves, second: Leaves, n_nodes: int) -> Array:
    """Share of trees in which two rows are in one leaf, (n, m), for leaves (n or m, trees).

    Cost: one step for each pair of rows and tree where they meet.
    """
    _check_leaves(first, n_nodes)
    _check_leaves(second, n_nodes)
    (n, trees), m = first.shape, len(second)
    if np.bincount(second.reshape(-1)).max() > 1:  # (m * trees,)
        meetings = (
            _leaf_indicators(first, n_nodes) @ _leaf_indicators(second, n_nodes).T
        ).toarray()
        return np.asarray(meetings / trees)
    # No leaf holds two rows of the second: the one that it holds, or m for none, is all there is to
    # count.
    column = np.full(n_nodes, m)
    column[second] = np.arange(m)[:, None]
    cells = column.take(first)
    cells += (m + 1) * np.arange(n)[:, None]
    counts = np.bincount(cells.reshape(-1), minlength=n * (m + 1))  # (n * trees,)
    return np.asarray(counts.reshape(n, m + 1)[:, :m] / trees)


def leaf_means(leaves: Leaves, values: Array) -> Array:
    """Mean over trees of the values (nodes, q) in the leaves of rows, (n, q)."""
    _check_leaves(leaves, len(values))
    return np.asarray(_leaf_indicators(leaves, len(values)) @ values / leaves.shape[1])


def _leaf_indicators(leaves: Leaves, n_nodes: int) -> csr_array:
    n, trees = leaves.shape
    parts = (
        np.ones(leaves.size),
        leaves.reshape(-1),
        np.arange(n + 1, dtype=np.int32) * trees,
    )  # (n * trees,)
    return csr_array(parts, shape=(n, n_nodes))


def _check_leaves(leaves: Leaves, n_nodes: int) -> None:
    """Raise unless leaves are nodes; compiled code uses them as indices unchecked."""
    if leaves.size and not 0 <= leaves.min() <= leaves.max() < n_nodes:
        raise ValueError(f"leaves must be nodes of the trees, 0 to {n_nodes - 1}")
