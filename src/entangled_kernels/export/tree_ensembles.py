"""Features and predictions of trees, as sums over trees of numbers in the leaf that a row reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..features.trees import Trees
from ..linalg import Array
from .columns import Columns
from .graph import DOUBLE, FLOAT, Graph

__all__ = ["LeafColumns"]


class LeafColumns(Columns):
    """Columns F V, where F are the indicators of the leaves that rows reach, (n, nodes).

    Parameters
    ----------
    graph : Graph
    x : str
        Tensor that the trees look at, doubles.
    trees : Trees
    width : int
    values : function
        From a matrix W (width, p) to V W, (nodes, p).
    blank_left : ndarray of shape (nodes,), optional
        Whether NaN goes to the first child, as trees of scikit-learn know it. Without it a row that has NaN
        or infinity gets NaN, as it would from any other step.

    Notes
    -----
    Trees compare numbers of float32, so the tensor is rounded to them first, as `Trees.leaves` does.
    """

    def __init__(
        self,
        graph: Graph,
        x: str,
        trees: Trees,
        width: int,
        values: Callable[[Array], Array],
        blank_left: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(graph, width)
        self.x, self.trees, self.values, self.blank_left = x, trees, values, blank_left

    def times(self, W: Array) -> str:
        """The tensor of the product with a matrix (width, p), (n, p): one number a leaf and target."""
        graph = self.graph
        cells = graph.add("Cast", graph.add("Cast", self.x, to=FLOAT), to=DOUBLE)
        # Sums are of doubles, and rounded to float32 at the end.
        attributes = ensemble_attributes(self.trees, self.values(W))
        if self.blank_left is not None:
            attributes["nodes_missing_value_tracks_true"] = self.blank_left.astype(int).tolist()
        sums = graph.add("TreeEnsembleRegressor", cells, domain="ai.onnx.ml", **attributes)
        if self.blank_left is not None:
            return graph.add("Cast", sums, to=DOUBLE)
        nothing = graph.add("ReduceSum", graph.add("Mul", cells, 0.0), [1], keepdims=1)
        return graph.add("Add", graph.add("Cast", sums, to=DOUBLE), nothing)


def ensemble_attributes(trees: Trees, values: Array) -> dict[str, Any]:
    """Attributes of ONNX's TreeEnsembleRegressor for numbers (nodes, p) in the leaves.

    Examples
    --------
    >>> one = Trees(
    ...     feature=np.zeros(3, np.int32),
    ...     threshold=np.array([0.5, np.inf, np.inf], np.float32),
    ...     children=np.array([[1, 2], [1, 1], [2, 2]], np.int32),
    ...     roots=np.zeros(1, np.int32),
    ...     n_features=1,
    ... )
    >>> ensemble_attributes(one, np.array([[0.0], [3.0], [4.0]]))["nodes_modes"]
    ['BRANCH_LEQ', 'LEAF', 'LEAF']
    """
    nodes, p = values.shape
    sizes = np.diff(np.append(trees.roots, nodes))
    tree, first = np.repeat(np.arange(len(sizes)), sizes), np.repeat(trees.roots, sizes)
    own = np.arange(nodes) - first
    leaf = trees.children[:, 0] == np.arange(nodes)
    # A leaf has no children, which are numbered 0.
    children = np.where(leaf[:, None], 0, trees.children - first[:, None])
    ends = np.flatnonzero(leaf)
    return {
        "n_targets": p,
        "aggregate_function": "SUM",
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": own.tolist(),
        "nodes_featureids": trees.feature.tolist(),
        "nodes_values_as_tensor": np.where(leaf, 0.0, trees.threshold).astype(np.float64),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": children[:, 0].tolist(),
        "nodes_falsenodeids": children[:, 1].tolist(),
        "target_treeids": np.repeat(tree[ends], p).tolist(),
        "target_nodeids": np.repeat(own[ends], p).tolist(),
        "target_ids": np.tile(np.arange(p), len(ends)).tolist(),
        "target_weights_as_tensor": values[ends].reshape(-1).astype(np.float64),  # (leaves * p,)
    }
