import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from entangled_kernels.features.training_rows import (
    distinct_rows,
    mean_and_scale,
    standardised_targets,
    training_rows,
)


def test_rows_without_weight_or_target_are_left_out(rng):
    X, Y = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    Y[1], Y[2, 0] = np.nan, np.nan
    feature_map = BaseEstimator()
    kept, targets, weight = training_rows(feature_map, X, Y, [1.0, 1.0, 2.0, 0.0, 3.0])
    np.testing.assert_array_equal(kept, X[[0, 2, 4]])
    np.testing.assert_array_equal(targets, Y[[0, 2, 4]])
    np.testing.assert_array_equal(weight, [1.0, 2.0, 3.0])
    assert feature_map.n_features_in_ == 2
    assert training_rows(feature_map, X, Y[:, 1], None)[1].shape == (4, 1)


def test_what_cannot_be_used_is_refused(rng):
    X = rng.normal(size=(3, 2))
    with pytest.raises(ValueError, match="y must have a target that is known"):
        training_rows(BaseEstimator(), X, np.full(3, np.nan), None)
    with pytest.raises(ValueError, match="Input y contains infinity"):
        training_rows(BaseEstimator(), X, [1.0, np.inf, 2.0], None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        training_rows(BaseEstimator(), X, [1.0, 2.0], None)
    with pytest.raises(ValueError, match="got text in 'b'"):
        training_rows(BaseEstimator(), pd.DataFrame({"a": [1.0], "b": ["x"]}), [1.0], None)


def test_known_cells_alone_give_the_units(rng):
    Y = rng.normal(size=(20, 2)) * [3.0, 0.1] + 5.0
    Y[:4, 0], Y[-3:, 1] = np.nan, np.nan
    standard = standardised_targets(Y, None)
    np.testing.assert_array_equal(np.isnan(standard), np.isnan(Y))
    np.testing.assert_allclose(np.nanmean(standard, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(standard, axis=0), 1.0)


def test_weights_are_repeated_rows(rng):
    Y, counts = rng.normal(size=(10, 2)), rng.integers(1, 4, size=10)
    Y[3, 1] = np.nan
    repeated = np.repeat(Y, counts, axis=0)
    np.testing.assert_allclose(
        np.repeat(standardised_targets(Y, counts * 1.0), counts, axis=0),
        standardised_targets(repeated, None),
    )
    complete = np.nan_to_num(Y)
    for one, other in zip(
        mean_and_scale(complete, counts * 1.0),
        mean_and_scale(np.repeat(complete, counts, axis=0), None),
        strict=True,
    ):
        np.testing.assert_allclose(one, other)


def test_constant_columns_keep_their_unit():
    Y = np.column_stack([np.full(4, 0.1), [np.nan, np.nan, 2.0, 2.0], np.full(4, np.nan)])
    np.testing.assert_allclose(standardised_targets(Y, None)[2:, :2], 0.0, atol=1e-15)
    np.testing.assert_array_equal(mean_and_scale(np.full((3, 1), 0.1), None)[1], [1.0])


@pytest.mark.parametrize("d", [3, 500])
def test_distinct_rows_do_not_depend_on_order_or_copies(d, rng):
    X = rng.integers(-1, 2, size=(30, d)) * np.where(rng.random((30, d)) < 0.5, 1.0, -0.0)
    X[20:] = X[:10]
    found = distinct_rows(X)
    assert len(found) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(distinct_rows(X[rng.permutation(30)]), found)
    assert {tuple(row) for row in found} == {tuple(row) for row in X}
