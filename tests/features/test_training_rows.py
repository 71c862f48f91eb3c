import numpy as np
import pytest

from entangled_kernels.features.training_rows import distinct_rows, some_rows, standardise


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
