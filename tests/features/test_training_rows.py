import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from entangled_kernels import EvidenceFeatures
from entangled_kernels.features.training_rows import distinct_rows, some_rows, standardise


def test_rows_without_weight_or_target_are_left_out(rng):
    X, Y, weight = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)), np.ones(20)
    Y[1], Y[2, 0], weight[3] = np.nan, np.nan, 0.0
    kept = np.delete(np.arange(20), [1, 3])
    features = EvidenceFeatures(random_state=0)
    Phi = clone(features).fit(X, Y, weight).transform(X)
    np.testing.assert_array_equal(Phi, features.fit(X[kept], Y[kept]).transform(X))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(3), np.full(3, np.nan), "y must have a target that is known"),
        (np.eye(3), [1.0, np.inf, 2.0], "Input y contains infinity"),
        (np.eye(3), [1.0, 2.0], "inconsistent numbers of samples"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), [1.0], "got text in 'b'"),
    ],
)
def test_rows_that_cannot_be_used(X, y, message):
    with pytest.raises(ValueError, match=message):
        EvidenceFeatures().fit(X, y)


def test_missing_values_do_not_count(rng):
    Y = rng.normal(size=(20, 2)) * [3.0, 0.1] + 5.0
    Y[:4, 0], Y[-3:, 1] = np.nan, np.nan
    standard, mean, scale = standardise(Y, np.ones(20))
    np.testing.assert_allclose(standard * scale + mean, Y)
    np.testing.assert_allclose(mean, np.nanmean(Y, axis=0))
    np.testing.assert_allclose(scale, np.nanstd(Y, axis=0))


@pytest.mark.parametrize("missing", [True, False])
def test_weights_are_repeated_rows(rng, missing):
    Y, counts = rng.normal(size=(10, 2)), rng.integers(1, 4, size=10)
    Y[3, 1] = np.nan if missing else 0.0
    weighted = standardise(Y, counts * 1.0)
    repeated = standardise(np.repeat(Y, counts, axis=0), np.ones(counts.sum()))
    np.testing.assert_allclose(np.repeat(weighted[0], counts, axis=0), repeated[0])
    for values, expected in zip(weighted[1:], repeated[1:], strict=True):
        np.testing.assert_allclose(values, expected)


def test_constant_columns_keep_their_unit():
    Y = np.column_stack([np.full(4, 0.1), [np.nan, np.nan, 2.0, 2.0], np.full(4, np.nan)])
    standard, _, scale = standardise(Y, np.ones(4))
    np.testing.assert_allclose(standard[2:, :2], 0.0, atol=1e-15)
    np.testing.assert_array_equal(scale, 1.0)
    assert standardise(np.full((3, 1), 0.1), np.ones(3))[2] == 1.0


def test_all_rows_are_taken_if_they_are_few():
    assert some_rows(5, 5, np.random.RandomState(0)).tolist() == [0, 1, 2, 3, 4]
    drawn = some_rows(50, 7, np.random.RandomState(0))
    assert len(np.unique(drawn)) == 7
    assert (np.diff(drawn) > 0).all()


@pytest.mark.parametrize("d", [3, 500])
def test_distinct_rows_do_not_depend_on_order_or_copies(d, rng):
    X = rng.integers(-1, 2, size=(30, d)) * np.where(rng.random((30, d)) < 0.5, 1.0, -0.0)
    X[20:] = X[:10]
    distinct = distinct_rows(X)
    assert len(distinct) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(distinct_rows(X[rng.permutation(30)]), distinct)
    assert {tuple(row) for row in distinct} == {tuple(row) for row in X}
