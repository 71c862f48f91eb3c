"""The kernel of a forest, the forest itself if every leaf holds one row, and safe files."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from entangled_kernels import EntangledKernelRidge, ForestFeatures
from entangled_kernels.features.forest import AXES, PARTS
from entangled_kernels.io import ModelFileError, load_model, save_model

from reference.forest import share_of_trees


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(50, 4)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 50.0, 7.0, 0.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = (
        np.column_stack([np.sin(2.0 * Z[:, 0]), Z[:, 1] > 0.3, Z[:, 2] * Z[:, 3]])
        * [1.0, 20.0, 3.0]
        + 5.0
    )
    return X, Y + 0.1 * rng.normal(size=Y.shape)


def standard(X, like=None):
    like = X if like is None else like
    return (X - like.mean(axis=0)) / like.std(axis=0)


def forest_of(X, Y, **settings):
    """scikit-learn's forest for standard targets, rounded as the features round them."""
    forest = ExtraTreesRegressor(**{"n_estimators": 100, "random_state": 0} | settings)
    return forest.fit(standard(X), np.round(standard(Y) * PARTS) / PARTS)


@pytest.mark.parametrize("least", [1, 4])
def test_inner_products_are_shares_of_trees(rows, least):
    X, Y = rows
    features = ForestFeatures(20, min_samples_leaf=least, random_state=0).fit(X, Y)
    forest = forest_of(X, Y, n_estimators=20, min_samples_leaf=least)
    Phi = features.transform(X)
    expected = share_of_trees(forest, standard(X), standard(X))
    np.testing.assert_allclose(Phi @ Phi.T, expected, atol=1e-9)
    assert np.array_equal(expected, np.eye(50)) == (least == 1)


# New rows differ by a tenth of columns that lie far from zero, and so lie far out.
FAR_OUT = pytest.mark.filterwarnings("ignore::entangled_kernels.estimators.NoveltyWarning")


@FAR_OUT
def test_ridge_on_them_is_ridge_with_the_kernel_of_the_forest(rows, rng):
    X, Y = rows
    new = X[rng.integers(50, size=20)] * (1.0 + 0.1 * rng.normal(size=(20, 4)))
    features = ForestFeatures(20, min_samples_leaf=4, random_state=0)
    model = EntangledKernelRidge(features, shrinkage=1.0, alpha=0.3, fit_intercept=False).fit(X, Y)
    forest = forest_of(X, Y, n_estimators=20, min_samples_leaf=4)
    K = share_of_trees(forest, standard(X), standard(X))
    across = share_of_trees(forest, standard(new, X), standard(X))
    expected = across @ np.linalg.solve(K + 0.3 * np.eye(50), Y)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-7)


@FAR_OUT
@pytest.mark.parametrize("alpha", [1e-9, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_one_row_in_a_leaf_ridge_is_the_forest(rows, rng, fit_intercept, alpha):
    """It is (forest + alpha * mean) / (1 + alpha), and so the forest for a small alpha."""
    X, Y = rows
    new = X[rng.integers(50, size=30)] * (1.0 + 0.1 * rng.normal(size=(30, 4)))
    forecast = forest_of(X, Y).predict(standard(new, X)) * Y.std(axis=0) + Y.mean(axis=0)
    level = Y.mean(axis=0) if fit_intercept else 0.0
    features = ForestFeatures(random_state=0)
    model = EntangledKernelRidge(features, shrinkage=1.0, alpha=alpha, fit_intercept=fit_intercept)
    expected = (forecast + alpha * level) / (1.0 + alpha)
    # Trees see targets that are rounded to a millionth of their deviation.
    np.testing.assert_allclose(model.fit(X, Y).predict(new), expected, atol=1e-4)


@FAR_OUT
@pytest.mark.parametrize("least", [1, 3])
def test_with_few_components_the_forest_is_within_reach(rows, rng, least):
    """Its forecasts are linear in the features, whatever the rows that carry them."""
    X, Y = rows
    new = X[rng.integers(50, size=80)] * (1.0 + 0.1 * rng.normal(size=(80, 4)))
    features = ForestFeatures(min_samples_leaf=least, n_components=12, random_state=0).fit(X, Y)
    forecast = forest_of(X, Y, min_samples_leaf=least).predict(standard(new, X))
    Phi = features.transform(new)
    assert Phi.shape == (80, 15)
    np.testing.assert_allclose(
        Phi @ np.linalg.lstsq(Phi, forecast, rcond=None)[0], forecast, atol=1e-9
    )
    if least == 1:
        model = EntangledKernelRidge(features, shrinkage=1.0, alpha=1e-9).fit(X, Y)
        expected = forecast * Y.std(axis=0) + Y.mean(axis=0)
        np.testing.assert_allclose(model.predict(new), expected, atol=1e-4)


def test_many_targets_count_through_their_leading_axes(rows, rng):
    """As many targets as rows, spanned by three: trees see the three axes that are there."""
    X, Y = rows
    wide = standard(Y) @ rng.normal(size=(3, 60)) + 1e-9 * rng.normal(size=(50, 60))
    for p in (AXES + 4, 60):
        own = ForestFeatures(5, random_state=0).fit(X, wide[:, :p])
        Phi = own.transform(X)
        np.testing.assert_allclose(Phi @ Phi.T, np.eye(50), atol=1e-9)
        model = EntangledKernelRidge(own, shrinkage=1.0, alpha=1e-9)
        np.testing.assert_allclose(model.fit(X, wide[:, :p]).predict(X), wide[:, :p], atol=1e-6)


def test_leaves_are_as_large_as_asked(rows):
    X, Y = rows
    for weight in (None, np.full(50, 2.0)):
        features = ForestFeatures(10, min_samples_leaf=6, random_state=0).fit(X, Y, weight)
        leaves = features.trees_.leaves(standard(X))
        sizes = [np.unique(tree, return_counts=True)[1].min() for tree in leaves.T]
        assert min(sizes) == (6 if weight is None else 3)
    alone = ForestFeatures(3, min_samples_leaf=80, random_state=0).fit(X, Y)
    assert len(alone.trees_.feature) == 3


def test_missing_targets_are_replaced_by_the_mean(rows):
    X, Y = rows
    Y[:9, 1] = np.nan
    features = ForestFeatures(10, min_samples_leaf=3, random_state=0).fit(X, Y)
    known = np.nan_to_num((Y - np.nanmean(Y, axis=0)) / np.nanstd(Y, axis=0))
    forest = ExtraTreesRegressor(10, min_samples_leaf=3, random_state=0)
    forest.fit(standard(X), np.round(known * PARTS) / PARTS)
    Phi = features.transform(X)
    np.testing.assert_allclose(
        Phi @ Phi.T, share_of_trees(forest, standard(X), standard(X)), atol=1e-9
    )


def test_targets_that_are_all_missing_do_not_count(rows):
    X, Y = rows
    features = ForestFeatures(10, min_samples_leaf=3, random_state=0)
    expected = features.fit(X, Y).transform(X)
    never = np.column_stack([Y, np.full(50, np.nan)])
    np.testing.assert_allclose(features.fit(X, never).transform(X), expected, atol=1e-12)


def test_of_many_rows_some_grow_the_trees(rows):
    X, Y = rows
    features = ForestFeatures(10, max_rows=20, random_state=0).fit(X, Y)
    assert features.components_.shape == (20, 10)
    # A leaf for every row, in every tree.
    assert len(features.trees_.feature) == 10 * (2 * 20 - 1)
    np.testing.assert_allclose(features.mean_, X.mean(axis=0))


def test_streams_take_forests(rows):
    X, Y = rows
    features = ForestFeatures(10, random_state=0)
    model = EntangledKernelRidge(features.fit(X, Y), shrinkage=1.0)
    for part in np.array_split(np.arange(50), 3):
        model.partial_fit(X[part], Y[part])
    whole = EntangledKernelRidge(features, shrinkage=1.0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-7)


@pytest.mark.parametrize("settings", [{}, {"n_components": 9, "min_samples_leaf": 2}], ids=str)
def test_files_hold_forests_and_refuse_crafted_ones(rows, settings, tmp_path):
    X, Y = rows
    model = EntangledKernelRidge(ForestFeatures(10, random_state=0, **settings)).fit(X, Y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    trees = model.feature_map_.trees_
    circle = trees.children.copy()
    circle[np.flatnonzero(circle[:, 0] != np.arange(len(circle)))[-1]] = 0
    trees.__dict__["children"] = circle
    save_model(model, tmp_path / "crafted")
    with pytest.raises(ModelFileError, match="children of the trees must come after their parent"):
        load_model(tmp_path / "crafted")


def test_leaves_that_are_not_there_are_refused(rows):
    X, Y = rows
    features = ForestFeatures(10, random_state=0).fit(X, Y)
    features.components_ = features.components_ + len(features.trees_.feature)
    with pytest.raises(ValueError, match="leaves must be nodes of the trees"):
        features.transform(X)


@pytest.mark.parametrize("name", ["n_estimators", "min_samples_leaf"])
def test_bad_input(rows, name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        ForestFeatures(**{name: 0}).fit(*rows)


def test_too_many_trees_are_refused_at_once(rng):
    with pytest.raises(ValueError, match="n_estimators must be at most 100000, got 10000"):
        ForestFeatures(n_estimators=10**30).fit(rng.normal(size=(9, 2)), rng.normal(size=9))
