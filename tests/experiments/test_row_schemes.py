"""Rows held out by groups and by time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupShuffleSplit, TimeSeriesSplit

from entangled_kernels.experiments import compare_methods
from entangled_kernels.experiments.protocol import row_scheme


def test_groups_of_one_size_are_split_as_scikit_learn_does():
    """Training and test rows are whole groups, as many of them as its splitter takes."""
    groups = np.repeat(np.arange(10), 4)
    partitions = list(row_scheme(40, groups).partitions(40, 18, 5, 0))
    expected = GroupShuffleSplit(5, train_size=4, random_state=0).split(groups, groups=groups)
    for partition, (train, test) in zip(partitions, expected, strict=True):
        assert (len(partition.train), len(partition.test)) == (len(train), len(test)) == (16, 24)
    assert len({tuple(partition.train) for partition in partitions}) == 5


@given(st.lists(st.integers(0, 9), min_size=12, max_size=60), st.integers(6, 30), st.integers(0, 9))
def test_a_group_is_a_training_or_a_test_group(groups, n, seed):
    groups = np.array(groups)
    n = min(n, len(groups) - 2)
    scheme = row_scheme(len(groups), groups)
    sizes = np.sort(np.unique(groups, return_counts=True)[1])
    if len(sizes) < 2 or sizes[-2:].sum() > n:
        return
    for partition in scheme.partitions(len(groups), n, 2, seed):
        assert len(partition.train) <= n
        assert not np.isin(groups[partition.train], groups[partition.test]).any()
        np.testing.assert_array_equal(
            np.sort(np.r_[partition.train, partition.test]), np.arange(len(groups))
        )
        # The groups that are left out have no room any more.
        assert min(np.unique(groups[partition.test], return_counts=True)[1]) > n - len(
            partition.train
        )
        for train, test in scheme.folds(partition.train, seed):
            assert not np.isin(groups[partition.train[train]], groups[partition.train[test]]).any()


@given(st.permutations(range(40)), st.integers(6, 20), st.integers(2, 4))
def test_test_rows_come_after_training_rows(times, n, repeats):
    times = np.array(times)
    scheme = row_scheme(40, times=times)
    expected = TimeSeriesSplit(repeats, max_train_size=n, test_size=(40 - n) // repeats).split(
        times
    )
    for partition, (train, test) in zip(
        scheme.partitions(40, n, repeats, 0), expected, strict=True
    ):
        np.testing.assert_array_equal(times[partition.train], train)
        np.testing.assert_array_equal(times[partition.test], test)
        for before, after in scheme.folds(partition.train, 0):
            assert times[partition.train[before]].max() < times[partition.train[after]].min()


def test_settings_that_leave_too_few_rows_are_errors():
    with pytest.raises(ValueError, match="groups and times hold out different rows"):
        row_scheme(4, np.ones(4), np.ones(4))
    with pytest.raises(ValueError, match="times must hold one number for each of 4 rows"):
        row_scheme(4, times=np.ones(3))
    with pytest.raises(
        ValueError, match="train_sizes must have room for at least 2 groups, got 9 rows"
    ):
        next(row_scheme(20, np.repeat([0, 1], 10)).partitions(20, 9, 1, 0))
    with pytest.raises(
        ValueError, match="repeats must leave at least 2 test rows for each of 7 intervals"
    ):
        next(row_scheme(20, times=np.arange(20)).partitions(20, 10, 7, 0))
    with pytest.raises(
        ValueError, match="train_sizes must leave at least 6 rows of times before the test"
    ):
        next(row_scheme(20, times=np.repeat([0, 1], 10)).partitions(20, 5, 1, 0))


@pytest.mark.parametrize("scheme", ["groups", "times"])
def test_methods_are_compared_on_such_rows(make_rows, scheme):
    X, Y = make_rows(60, 3, 2)
    values = np.arange(60) // 3
    settings = {"methods": ("KRR", "PLS", "OKL", "ridge"), "train_sizes": (24,), "repeats": 2}
    results = compare_methods(X, Y, **settings, **{scheme: values})
    assert len(results.records) == 8
    assert all(np.isfinite(record["nmse"]) for record in results.records)
    assert results.meta["held_out"] == {"groups": "groups", "times": "time"}[scheme]
