import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.model_selection import TimeSeriesSplit

from entangled_kernels.parameters import check_groups
from entangled_kernels.streams.row_stream import block_ends, group_folds, row_folds, sampling_keys


def test_a_row_has_its_fold_wherever_it_is(rng):
    X, Y = rng.normal(size=(300, 4)).astype(np.float32), rng.normal(size=(300, 2))
    folds = row_folds(X, Y, 5)
    order = rng.permutation(300)
    np.testing.assert_array_equal(row_folds(X[order], Y[order], 5), folds[order])
    np.testing.assert_array_equal(row_folds(X.astype(float), Y, 5), folds)
    np.testing.assert_array_equal(
        np.concatenate([row_folds(X[i : i + 1], Y[i : i + 1], 5) for i in range(300)]), folds
    )
    np.testing.assert_array_equal(row_folds(np.asfortranarray(X), Y, 5), folds)
    np.testing.assert_array_equal(row_folds(pd.DataFrame(X), Y, 5), folds)
    np.testing.assert_array_equal(row_folds(pl.DataFrame(X), Y, 5), folds)


def test_the_folds_of_today_are_those_of_tomorrow():
    """A checkpoint must be good on another machine and with another version."""
    folds = row_folds(np.arange(20.0).reshape(10, 2), np.arange(10.0)[:, None], 5)
    assert folds.tolist() == [2, 1, 0, 4, 4, 1, 2, 1, 1, 1]


def test_folds_are_of_one_size_and_follow_nothing(rng):
    n = 20_000
    for X, Y in (
        (rng.normal(size=(n, 3)), rng.normal(size=(n, 1))),
        (np.arange(float(n))[:, None], np.zeros((n, 1))),
        (
            np.stack([np.repeat(np.arange(200.0), 100), np.tile(np.arange(100.0), 200)], axis=1),
            np.ones((n, 1)),
        ),
    ):
        folds = row_folds(X, Y, 5)
        counts = np.bincount(folds, minlength=5)
        assert np.abs(counts - n / 5).max() < 5 * np.sqrt(n / 5)
        assert abs(np.corrcoef(folds, X[:, 0])[0, 1]) < 0.04


def test_columns_may_not_be_swapped():
    X = np.arange(2000.0).reshape(1000, 2)
    assert (row_folds(X, X[:, :1], 5) != row_folds(X[:, ::-1], X[:, :1], 5)).any()


def test_special_values(rng):
    X = rng.normal(size=(50, 3))
    X[rng.random(size=X.shape) < 0.5] = 0.0
    Y = rng.normal(size=(50, 1))
    np.testing.assert_array_equal(row_folds(csr_array(X), Y, 4), row_folds(X, Y, 4))
    np.testing.assert_array_equal(row_folds(np.where(X == 0.0, -0.0, X), Y, 4), row_folds(X, Y, 4))
    missing = np.where(X == 0.0, np.nan, X)
    negative = np.where(X == 0.0, -np.nan, X)
    np.testing.assert_array_equal(row_folds(missing, Y, 4), row_folds(negative, Y, 4))


def test_text():
    table = pd.DataFrame({"kind": ["round", "square", None] * 100, "size": np.arange(300.0)})
    Y = np.zeros((300, 1))
    folds = row_folds(table, Y, 3)
    np.testing.assert_array_equal(row_folds(table[::-1], Y, 3)[::-1], folds)
    assert set(folds) == {0, 1, 2}
    other = table.assign(kind="other")
    assert (row_folds(other, Y, 3) != folds).any()


def test_keys_of_a_sample_depend_on_the_row_alone(rng):
    X, Y = (
        rng.normal(size=(5000, 3)).astype(np.float32),
        rng.integers(0, 2, size=(5000, 2)).astype(float),
    )
    Y[::7, 1] = np.nan
    keys = sampling_keys(X, Y)
    order = rng.permutation(5000)
    np.testing.assert_array_equal(sampling_keys(X[order], Y[order]), keys[order])
    np.testing.assert_array_equal(sampling_keys(X.astype(float), -0.0 + Y), keys)
    # The least keys are an even draw, of rows, of folds and of targets.
    drawn = np.argsort(keys)[:1000]
    assert abs(np.mean(Y[drawn, 0]) - np.mean(Y[:, 0])) < 0.05
    assert abs(np.mean(X[drawn, 0])) < 0.15
    folds = np.bincount(row_folds(X, Y, 4)[drawn])
    assert folds.min() > 180


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30), st.integers(2, 7))
def test_a_group_has_one_fold_wherever_it_comes(values, n_folds):
    groups = np.array(values)
    folds = group_folds(groups, n_folds)
    assert ((folds >= 0) & (folds < n_folds)).all()
    for group, fold in zip(groups, folds, strict=True):
        assert group_folds(np.array([7.5, group]), n_folds)[1] == fold
    texts = groups.astype(str)
    np.testing.assert_array_equal(
        group_folds(texts[::-1], n_folds)[::-1], group_folds(texts, n_folds)
    )


def test_groups_spread_over_the_folds():
    for groups in (np.arange(4000), np.arange(4000).astype(str)):
        counts = np.bincount(group_folds(groups, 4))
        assert (abs(counts - 1000) < 100).all()
    # A number has one fold as an integer, a float or a text.
    for groups in ([1.0, 2.0, 7.0], ["1", "2", "7"], ["1.0", "2.0", "7.0"]):
        same = group_folds(check_groups(groups, 3), 50)
        np.testing.assert_array_equal(same, group_folds(np.array([1, 2, 7]), 50))
    # Checkpoints of other processes and machines need these folds.
    assert group_folds(np.array(["anna", "bert", "cem"]), 5).tolist() == [4, 3, 0]
    assert group_folds(np.arange(6), 5).tolist() == [0, 3, 0, 4, 0, 4]


@pytest.mark.parametrize(("n", "n_blocks"), [(12, 6), (47, 5), (100, 3)])
def test_blocks_are_the_folds_of_scikit_learn(n, n_blocks):
    ends = block_ends(n, n_blocks)
    splits = TimeSeriesSplit(n_blocks - 1).split(np.empty((n, 1)))
    assert ends[0] == n - (n_blocks - 1) * (n // n_blocks)
    for start, end, (train, test) in zip(ends[:-1], ends[1:], splits, strict=True):
        assert (len(train), test[0], test[-1] + 1) == (start, start, end)
    with pytest.raises(ValueError, match="blocks of rows need at least"):
        block_ends(2 * n_blocks - 1, n_blocks)
