"""Weights, targets and inputs in other units: what an estimator predicts stays the same.

The kernel estimators are in test_fuzz_family.py; moments and single fits in tests/learning.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    TargetProcessFeatures,
)

FACTORS = [1e-6, 1e6]
# Over 16 decades.
UNITS = 10.0 ** np.linspace(-8, 8, 4)
RIDGE_ONLY = {"shrinkage": [1.0]}
SMALL = {"cv": 2, "param_grid": {"shrinkage": [0.25, 1.0]}, "random_state": 0}
# Maps are tuned again in every split.
ONCE = SMALL | {"cv": [(np.arange(15), np.arange(15, 30))]}
SEARCHES = {
    "average": EntangledKernelRidgeCV(None, cv=3, random_state=0),
    "best": EntangledKernelRidgeCV(None, selection="best", **SMALL),
    "one_se": EntangledKernelRidgeCV(None, selection="one_se", fit_intercept=False, **SMALL),
    "two maps": EntangledKernelRidgeCV([None, StandardScaler()], **SMALL),
    "one width": EntangledKernelRidgeCV(EvidenceFeatures(max_rows=20, random_state=0), **ONCE),
    "column widths": EntangledKernelRidgeCV(ColumnWidthFeatures(random_state=0), **ONCE),
    "forest": EntangledKernelRidgeCV(ForestFeatures(10, random_state=0), **ONCE),
    "target processes": EntangledKernelRidgeCV(TargetProcessFeatures(random_state=0), **ONCE),
}


@pytest.fixture
def table(rng):
    X = rng.normal(size=(30, 3))
    Y = np.tanh(X @ rng.normal(size=(3, 4))) + 0.1 * rng.normal(size=(30, 4))
    return X, Y, rng.uniform(0.5, 2.0, 30)


def assert_same(found, expected, Y, tolerance=1e-6):
    assert (np.abs(found - expected) < tolerance * np.nanstd(Y, axis=0)).all()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_does_not_see_units_of_weights_targets_and_scaled_inputs(table, name):
    (X, Y, w), model = table, SEARCHES[name]
    expected = model.fit(X, Y, w).predict(X)
    scaled = make_pipeline(StandardScaler(), model)
    plain = scaled.fit(X, Y).predict(X)
    for factor in FACTORS:
        assert_same(model.fit(X, Y, factor * w).predict(X), expected, Y)
        assert_same(model.fit(X, factor**2 * Y, w).predict(X) / factor**2, expected, Y)
        unit = 1e8 if factor > 1.0 else 1e-8
        assert_same(scaled.fit(unit * X, Y).predict(unit * X), plain, Y)


@pytest.mark.parametrize("factor", FACTORS)
def test_batches_of_a_search_in_any_unit(table, factor):
    X, Y, w = table
    model = EntangledKernelRidgeCV(StandardScaler(), cv=2, random_state=0)
    one, other, in_units = clone(model), clone(model), clone(model)
    for rows in np.split(np.arange(30), 3):
        # The folds of rows are found from their values, so only weights may change in a stream.
        one.partial_fit(X[rows], Y[rows], w[rows])
        other.partial_fit(X[rows], Y[rows], factor * w[rows])
        in_units.partial_fit(X[rows], 2.0**40 * Y[rows], w[rows])
    assert_same(other.predict(X), one.predict(X), Y)
    assert np.isfinite(in_units.predict(X)).all()


@pytest.mark.parametrize("name", ["columns", "without an intercept", "one width", "learned"])
def test_a_search_does_not_see_units_of_single_targets(table, name):
    """Kernel ridge by itself; learned kernels with a scale for every target.

    Without one they relate targets in the units in which these are given.
    """
    X, Y, w = table
    model = {
        "columns": EntangledKernelRidgeCV(None, cv=3, param_grid=RIDGE_ONLY),
        "without an intercept": EntangledKernelRidgeCV(
            None, cv=3, param_grid=RIDGE_ONLY, fit_intercept=False
        ),
        "one width": EntangledKernelRidgeCV(
            EvidenceFeatures(random_state=0), cv=2, param_grid=RIDGE_ONLY
        ),
        "learned": EntangledKernelRidgeCV(None, target_transform=StandardScaler(), **SMALL),
    }[name].set_params(random_state=0)
    expected = model.fit(X, Y, w).predict(X)
    for unit in (UNITS, UNITS[::-1]):
        assert_same(model.fit(X, unit * Y, w).predict(X) / unit, expected, Y)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_kernel_ridge_with_a_given_alpha_is_ridge_in_any_unit(
    table, missing, fit_intercept, streamed, rng
):
    X, Y, w = table
    if missing:
        Y = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    model = EntangledKernelRidge(alpha=0.1, shrinkage=1.0, fit_intercept=fit_intercept)
    scaled = make_pipeline(StandardScaler(), model)
    for weight_unit in (1e-6, 1.0, 1e6):
        weight, expected = weight_unit * w, np.empty(Y.shape)
        for column, target in enumerate(Y.T):
            rows = np.isfinite(target)
            peer = Ridge(0.1, fit_intercept=fit_intercept, solver="svd")
            peer.fit(X[rows], target[rows], weight[rows])
            expected[:, column] = peer.predict(X)
        for unit in (1e-12, 1e12, UNITS, UNITS[::-1]):
            method = clone(model).partial_fit if streamed else model.fit
            assert_same(method(X, unit * Y, weight).predict(X) / unit, expected, Y)
    if not missing:
        Z = StandardScaler().fit_transform(X)
        expected = Ridge(0.1, fit_intercept=fit_intercept).fit(Z, Y).predict(Z)
        for unit in (1e-8, 1e8):
            assert_same(scaled.fit(unit * X, Y).predict(unit * X), expected, Y)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("n", "p"), [(8, 30), (20, 1200), (1300, 1200), (2100, 2200)], ids="{}".format
)
def test_more_targets_than_features_over_16_decades(n, p, fit_intercept, rng):
    X = rng.normal(size=(n, 5))
    Y = X @ rng.normal(size=(5, p)) + rng.normal(size=(n, p)) + 2.0
    unit = 10.0 ** rng.permutation(np.linspace(-8, 8, p))
    expected = Ridge(0.1, fit_intercept=fit_intercept).fit(X, Y).predict(X)
    model = EntangledKernelRidge(alpha=0.1, shrinkage=1.0, fit_intercept=fit_intercept)
    assert_same(model.fit(X, unit * Y).predict(X) / unit, expected, Y, 1e-9)
    if n < 20:
        streamed = clone(model).partial_fit(X[:3], unit * Y[:3]).partial_fit(X[3:], unit * Y[3:])
        assert_same(streamed.predict(X) / unit, expected, Y, 1e-9)


@pytest.mark.parametrize("kernel", ["decomposable", "curl_free"])
def test_random_features_with_a_given_alpha_are_ridge_in_any_unit(table, kernel):
    X, Y, w = table
    Y = Y[:, :3]
    features = OperatorFourierFeatures(kernel, n_frequencies=10, random_state=0).fit(X, Y)
    model = OperatorFourierRidge(features, alpha=0.1)
    for weight_unit in (1e-6, 1.0, 1e6):
        weight = weight_unit * w
        if kernel == "decomposable":
            Phi = features.transform(X)
            expected = Ridge(0.1, solver="svd").fit(Phi, Y, weight).predict(Phi)
        else:
            expected = model.fit(X, Y, weight).predict(X)
        units = [1e-12, 1e12] + ([UNITS[1:], UNITS[:3]] if kernel == "decomposable" else [])
        for unit in units:
            assert_same(model.fit(X, unit * Y, weight).predict(X) / unit, expected, Y)
    scaled = make_pipeline(StandardScaler(), model)
    expected = scaled.fit(X, Y).predict(X)
    for unit in (1e-8, 1e8):
        assert_same(scaled.fit(unit * X, Y).predict(unit * X), expected, Y)


def test_scaled_views_in_any_unit(table):
    X, Y, _ = table
    scaled = make_pipeline(StandardScaler(), MultiViewKernelRidge({"a": [0], "b": [1, 2]}))
    expected = scaled.fit(X, Y).predict(X)
    for unit in (1e-8, 1e8):
        assert_same(scaled.fit(unit * X, Y).predict(unit * X), expected, Y)
