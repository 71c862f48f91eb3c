"""Rows in batches: what a call that fails leaves behind, what fades, and the folds of groups."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, OperatorFourierFeatures, OperatorFourierRidge
from entangled_kernels.parameters import check_groups
from entangled_kernels.streams import group_folds


@pytest.mark.parametrize("feature_map", [None, StandardScaler()], ids=["columns", "waiting"])
@pytest.mark.parametrize("cuts", [[], [590], [100, 101, 300]])
def test_rows_that_faded_do_not_calibrate_however_they_are_cut(feature_map, cuts, rng):
    X, Y = rng.normal(size=(600, 3)), rng.normal(size=(600, 2))
    Y[:500] *= 100.0
    model = EntangledKernelRidge(feature_map)
    for rows in np.split(np.arange(600), cuts):
        model.partial_fit(X[rows], Y[rows], forget=0.9)
    # The weight of the last 66 rows is above a thousandth.
    expected = EntangledKernelRidge(feature_map if feature_map is None else StandardScaler().fit(X))
    expected.partial_fit(X[-66:], Y[-66:], forget=0.9)
    lower, upper = model.predict_interval(X[:5])
    low, high = expected.predict_interval(X[:5])
    assert (upper - lower < 1.5 * (high - low)).all()
    assert model.solve().model_.sample.Y.shape == (66, 2)


@pytest.mark.parametrize(
    "groups",
    [
        [1.0, 2.0, 3.0, 7.0],
        ["1", "2", "3", "7"],
        ["1.0", "2.0", "3.0", "7.0"],
        np.array([1, 2.0, "3", 7], dtype=object),
    ],
    ids=["floats", "texts", "decimals", "mixed"],
)
def test_a_group_has_its_fold_whatever_type_it_comes_as(groups):
    folds = group_folds(np.array([1, 2, 3, 7]), 50)
    np.testing.assert_array_equal(group_folds(check_groups(groups, 4), 50), folds)


def test_rows_are_given_back_where_solving_fails(rng):
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    features = OperatorFourierFeatures(n_frequencies=20, random_state=0)
    model = OperatorFourierRidge(features).fit(X[:20], Y[:20])
    before = model.predict(X)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="alpha must be large enough"):
        model.partial_fit(X[20:], 1e308 * np.sign(Y[20:]))
    assert model.n_samples_seen_ == 20
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X[20:], Y[20:])
    whole = OperatorFourierRidge(features).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)
