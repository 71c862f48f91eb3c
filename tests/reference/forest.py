"""A forest one step at a time: a row walks down a tree, two rows meet in a leaf or do not."""

import numpy as np


def leaf(trees, root, x):
    """Number of the leaf that x reaches from a root."""
    node = root
    while trees.children[node, 0] != node:
        node = trees.children[node, int(np.float32(x[trees.feature[node]]) > trees.threshold[node])]
    return node


def share_of_trees(forest, X, Z):
    """Share of the trees of scikit-learn's forest in which rows of X and of Z fall into one leaf."""
    K = np.zeros((len(X), len(Z)))
    for tree in forest.estimators_:
        first, second = tree.apply(X), tree.apply(Z)
        for i in range(len(X)):
            for j in range(len(Z)):
                K[i, j] += first[i] == second[j]
    return K / len(forest.estimators_)
