"""Decision trees as plain arrays: checked whenever they are made or loaded, walked level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..linalg import Array, Index

__all__ = ["Trees", "leaf_means", "shared_leaves"]

Leaves = NDArray[np.int32]

# Rows walked at a time, and rows times trees: small enough to stay in the cache, large enough for
# few calls.
ROWS, WALKERS = 4096, 2**16
# Walkers that have arrived are dropped, every few steps, once they are this share of all.
STEPS, ARRIVED = 3, 0.25


@dataclass(frozen=True, eq=False)
class Trees:
    """Decision trees whose nodes are numbered through, tree after tree.

    A row at a node goes to the first child where its feature is at most the threshold, else to the
    second. A leaf is its own child on both sides.

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
    Every child comes after its parent in the same tree and has no other parent. So each path ends
    in a leaf whatever the numbers are, and arrays from a file that break the rule are refused when
    it is read.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    children: NDArray[np.int32]
    roots: NDArray[np.int32]
    n_features: int

    def __post_init__(self) -> None:
        _check_arrays(self)
        _check_paths(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """State from a file, which is not to be trusted, goes through the checks of any new trees."""
        type(self).__init__(self, **state)

    @classmethod
    def from_estimators(cls, estimators: Sequence[Any]) -> Self:
        """Fitted trees of scikit-learn, which send every row of float32 to the same leaves."""
        grown = [estimator.tree_ for estimator in estimators]
        sizes = [tree.node_count for tree in grown]
        roots = np.cumsum([0, *sizes[:-1]])
        left, right = (
            np.concatenate([getattr(tree, side) for tree in grown])
            for side in ("children_left", "children_right")
        )
        leaf, first = left < 0, np.repeat(roots, sizes)
        threshold = np.concatenate([tree.threshold for tree in grown])
        # Rounded down, so that x <= threshold keeps its answer for every x of float32.
        rounded = threshold.astype(np.float32)
        rounded = np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)
        own = np.arange(len(left))[:, None]
        children = np.where(leaf[:, None], own, np.column_stack([left, right]) + first[:, None])
        return cls(
            feature=np.where(leaf, 0, np.concatenate([tree.feature for tree in grown])).astype(
                np.int32
            ),
            threshold=np.where(leaf, np.inf, rounded).astype(np.float32),
            children=children.astype(np.int32),
            roots=roots.astype(np.int32),
            n_features=int(grown[0].n_features),
        )

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together."""
        return len(self.feature)

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
        # Node i is 2 i here, and 2 i + 1 its second child's place: one number finds whatever a step
        # needs.
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
                found = _walk(rows, roots[tree : tree + many], feature, threshold, children)
                reached[start : start + ROWS, tree : tree + many] = found.T
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
    """Share of trees in which two rows are in one leaf, (n, m), of leaves (n, trees) and (m, trees).

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
    """Raise unless leaves are nodes; compiled code takes them as places in memory."""
    if leaves.size and not 0 <= leaves.min() <= leaves.max() < n_nodes:
        raise ValueError(f"leaves must be nodes of the trees, 0 to {n_nodes - 1}")


def _check_arrays(trees: Trees) -> None:
    """Raise unless every array has its type and shape."""
    n = (
        len(trees.feature)
        if isinstance(trees.feature, np.ndarray) and trees.feature.ndim == 1
        else 0
    )
    count = len(trees.roots) if isinstance(trees.roots, np.ndarray) and trees.roots.ndim == 1 else 0
    wanted = {
        "feature": (np.int32, (n,)),
        "threshold": (np.float32, (n,)),
        "children": (np.int32, (n, 2)),
        "roots": (np.int32, (count,)),
    }
    for name, (kind, shape) in wanted.items():
        array = getattr(trees, name)
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != kind
            or array.shape != shape
            or not array.size
        ):
            found = (
                f"{array.dtype} {array.shape}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise ValueError(
                f"{name} of the trees must be a {np.dtype(kind)} array of shape {shape} that is not empty, "
                f"got {found}"
            )
    if type(trees.n_features) is not int or trees.n_features < 1:
        raise ValueError(
            f"n_features of the trees must be a whole number of at least 1, got {trees.n_features!r}"
        )


def _check_paths(trees: Trees) -> None:
    """Raise unless every path from a root goes on to nodes of the same tree and ends in a leaf."""
    n, roots, children = trees.n_nodes, trees.roots, trees.children
    if roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= n:
        raise ValueError(f"roots of the trees must start at 0 and rise to less than {n}")
    own = np.arange(n)
    end = np.repeat(np.append(roots[1:], n), np.diff(np.append(roots, n)))
    leaf = (children == own[:, None]).all(axis=1)
    inner = children[~leaf]
    if (inner <= own[~leaf, None]).any() or (inner >= end[~leaf, None]).any():
        raise ValueError("children of the trees must come after their parent, within the same tree")
    parents = np.bincount(inner.reshape(-1), minlength=n)  # (inner nodes * 2,)
    if (parents != ~np.isin(own, roots)).any():
        raise ValueError("every node of the trees but the roots must have one parent")
    if trees.feature.min() < 0 or trees.feature.max() >= trees.n_features:
        raise ValueError(f"feature of the trees must be between 0 and {trees.n_features - 1}")
    if np.isnan(trees.threshold).any():
        raise ValueError("threshold of the trees must hold numbers, got NaN")
