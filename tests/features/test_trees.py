"""Trees in arrays walk as scikit-learn's do, and arrays that are no trees are refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from entangled_kernels.features import forest as module
from entangled_kernels.features.forest import Trees, leaf_means, shared_leaves

from reference.forest import leaf, share_of_trees

FORESTS = {
    "extra trees": ExtraTreesRegressor(12, random_state=0),
    "random forest": RandomForestRegressor(12, min_samples_leaf=3, random_state=0),
    "stumps": ExtraTreesRegressor(3, max_depth=1, random_state=0),
    "no split": ExtraTreesRegressor(3, min_samples_leaf=40, random_state=0),
}


@pytest.fixture(params=FORESTS)
def grown(request, rng):
    X = rng.normal(size=(60, 4)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    forest = FORESTS[request.param].fit(X, np.sin(X) + rng.normal(size=X.shape))
    return forest, Trees.from_estimators(forest.estimators_), X


def test_rows_reach_the_leaves_of_the_forest(grown, rng):
    forest, trees, X = grown
    new = np.vstack([X, rng.normal(size=(30, 4))])
    np.testing.assert_array_equal(trees.leaves(new) - trees.roots, forest.apply(new))
    expected = [[leaf(trees, root, x) for root in trees.roots] for x in new]
    np.testing.assert_array_equal(trees.leaves(new), expected)
    assert trees.leaves(new[:0]).shape == (0, len(trees.roots))


def test_a_row_on_a_threshold_goes_where_the_forest_sends_it(grown):
    """Thresholds of the forest have more digits than the rows, and the last ones decide."""
    forest, trees, X = grown
    middle = np.unique(
        np.float32(np.concatenate([own.tree_.threshold for own in forest.estimators_]))
    )
    near = np.concatenate([np.nextafter(middle, -np.float32(9)), middle, np.nextafter(middle, 9)])
    rows = np.repeat(X[:1], 4 * len(near), axis=0)
    for feature in range(4):
        rows[feature * len(near) : (feature + 1) * len(near), feature] = near
    np.testing.assert_array_equal(trees.leaves(rows) - trees.roots, forest.apply(rows))


def test_rows_and_trees_in_parts(grown, monkeypatch):
    _, trees, X = grown
    expected = trees.leaves(X)
    monkeypatch.setattr(module, "ROWS", 7)
    monkeypatch.setattr(module, "WALKERS", 20)
    np.testing.assert_array_equal(trees.leaves(X), expected)


def test_rows_share_leaves_as_often_as_counted(grown, rng):
    forest, trees, X = grown
    new = rng.normal(size=(9, 4)).astype(np.float32)
    K = shared_leaves(trees.leaves(new), trees.leaves(X), len(trees.feature))
    np.testing.assert_allclose(K, share_of_trees(forest, new, X), atol=1e-12)


def test_one_row_to_a_leaf_is_counted_the_same(rng):
    """Where no leaf holds two of the rows, another way of counting is taken."""
    X = rng.normal(size=(30, 4)).astype(np.float32)
    forest = ExtraTreesRegressor(12, random_state=0).fit(X, rng.normal(size=30))
    trees, new = (
        Trees.from_estimators(forest.estimators_),
        rng.normal(size=(9, 4)).astype(np.float32),
    )
    for some in (X, X[:7]):
        K = shared_leaves(trees.leaves(new), trees.leaves(some), len(trees.feature))
        np.testing.assert_allclose(K, share_of_trees(forest, new, some), atol=1e-12)
    assert shared_leaves(trees.leaves(new[:0]), trees.leaves(X), len(trees.feature)).shape == (
        0,
        30,
    )


def test_leaf_means_are_the_forecasts(grown, rng):
    forest, trees, _ = grown
    new = rng.normal(size=(9, 4)).astype(np.float32)
    values = np.vstack([tree.tree_.value[:, :, 0] for tree in forest.estimators_])
    np.testing.assert_allclose(leaf_means(trees.leaves(new), values), forest.predict(new))


def test_rows_of_another_width_are_refused(grown):
    with pytest.raises(
        ValueError, match=r"X must have 4 columns as the trees do, got shape \(2, 3\)"
    ):
        grown[1].leaves(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="leaves must be nodes of the trees, 0 to 4"):
        shared_leaves(np.array([[7]], dtype=np.int32), np.array([[0]], dtype=np.int32), 5)


def parts(**changes):
    """Two trees: a stump, and one that splits twice."""
    arrays = {
        "feature": np.array([0, 0, 0, 1, 0, 0, 0, 0], dtype=np.int32),
        "threshold": np.array(
            [0.5, np.inf, np.inf, 0.1, 0.2, np.inf, np.inf, np.inf], dtype=np.float32
        ),
        "children": np.array(
            [[1, 2], [1, 1], [2, 2], [4, 5], [6, 7], [5, 5], [6, 6], [7, 7]], dtype=np.int32
        ),
        "roots": np.array([0, 3], dtype=np.int32),
        "n_features": 2,
    }
    return arrays | changes


def children(node, *pair):
    changed = parts()["children"].copy()
    changed[node] = pair
    return {"children": changed}


def test_the_parts_are_trees():
    trees = Trees(**parts())
    trees.check()
    np.testing.assert_array_equal(
        trees.leaves(np.array([[0.0, 0.0], [0.9, 0.5]])), [[1, 6], [2, 5]]
    )


CRAFTED = {
    "a circle": (children(4, 3, 7), "must come after their parent"),
    "one child itself": (children(4, 4, 7), "must come after their parent"),
    "a child below zero": (children(4, -1, 7), "must come after their parent"),
    "a child beyond the end": (children(4, 6, 8), "within the same tree"),
    "a child in another tree": (children(0, 1, 4), "within the same tree"),
    "a child twice": (children(4, 7, 7), "must have one parent"),
    "a child of two": (children(3, 4, 6), "must have one parent"),
    "a node of no parent": (children(4, 4, 4), "must have one parent"),
    "a feature beyond the columns": (
        {"n_features": 1},
        "feature of the trees must be between 0 and 0",
    ),
    "a feature below zero": (
        {"feature": -parts()["feature"]},
        "feature of the trees must be between",
    ),
    "no number": ({"threshold": parts()["threshold"] * np.float32(np.nan)}, "got NaN"),
    "roots that fall": (
        {"roots": np.array([3, 0], dtype=np.int32)},
        "start at 0 and rise to less than 8",
    ),
    "a root beyond the end": ({"roots": np.array([0, 8], dtype=np.int32)}, "rise to less than 8"),
    "no root": ({"roots": np.zeros(0, dtype=np.int32)}, "roots of the trees must be a int32 array"),
    "no nodes": ({"feature": np.zeros(0, dtype=np.int32)}, "feature of the trees .* not empty"),
    "another length": (
        {"threshold": np.zeros(9, dtype=np.float32)},
        r"shape \(8,\).* got float32 \(9,\)",
    ),
    "another shape": ({"children": np.zeros((8, 3), dtype=np.int32)}, r"shape \(8, 2\)"),
    "another type": ({"children": parts()["children"] * 1.0}, "int32 array .* got float64"),
    "objects": ({"feature": parts()["feature"].astype(object)}, "int32 array .* got object"),
    "no array": ({"feature": [0] * 8}, "feature of the trees .* got list"),
    "no columns": ({"n_features": 0}, "n_features of the trees must be a whole number"),
    "columns of no number": ({"n_features": "2"}, "n_features of the trees must be a whole number"),
}


@pytest.mark.parametrize("kind", CRAFTED)
def test_arrays_that_are_no_trees_are_refused(kind):
    changes, message = CRAFTED[kind]
    crafted = Trees(**parts(**changes))
    with pytest.raises(ValueError, match=message):
        crafted.check()
    with pytest.raises(ValueError, match=message):
        pickle.loads(pickle.dumps(crafted))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 1), st.integers(-1, 8)), max_size=3))
def test_whatever_is_accepted_ends_in_leaves(changes):
    changed = parts()["children"]
    for node, side, child in changes:
        changed[node, side] = child
    try:
        trees = Trees(**parts(children=changed))
        trees.check()
    except ValueError:
        assert changes
        return
    reached = trees.leaves(np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]]))
    np.testing.assert_array_equal(trees.children[reached, 0], reached)
