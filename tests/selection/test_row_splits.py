import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from entangled_kernels.selection import group_splits, time_splits


def assert_same(splits, expected):
    assert len(splits) == len(expected)
    for own, other in zip(splits, expected, strict=True):
        for part, same in zip(own, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_group_splits_are_those_of_scikit_learn(rng):
    groups = rng.integers(0, 9, size=50)
    folds = GroupKFold(4, shuffle=True, random_state=np.random.RandomState(3))
    expected = [split for _ in range(2) for split in folds.split(groups, groups=groups)]
    assert_same(group_splits(groups, 4, n_repeats=2, random_state=3), expected)


@given(st.lists(st.integers(0, 12), min_size=4, max_size=40), st.integers(2, 5), st.integers(0, 99))
def test_a_group_is_never_on_both_sides(groups, n_folds, seed):
    groups = np.array(groups)
    if len(np.unique(groups)) < n_folds:
        with pytest.raises(ValueError, match="groups"):
            group_splits(groups, n_folds, random_state=seed)
        return
    splits = group_splits(groups, n_folds, n_repeats=2, random_state=seed)
    for train, test in splits:
        assert not np.isin(groups[train], groups[test]).any()
        assert len(train) + len(test) == len(groups)
    for start in (0, n_folds):
        held = np.concatenate([test for _, test in splits[start : start + n_folds]])
        np.testing.assert_array_equal(np.sort(held), np.arange(len(groups)))


def test_too_few_groups():
    with pytest.raises(
        ValueError, match="cv must be at most the number of groups, 2, got 3; use fewer folds"
    ):
        group_splits(np.array([0, 0, 1]), 3)
    with pytest.raises(ValueError, match="groups must hold at least 2 groups, got 1"):
        group_splits(np.array(["a", "a"]), 2)


@pytest.mark.parametrize(("n", "n_folds"), [(12, 5), (47, 4), (100, 2)])
def test_time_splits_are_those_of_scikit_learn(n, n_folds):
    expected = list(TimeSeriesSplit(n_folds).split(np.empty((n, 1))))
    assert_same(time_splits(n, n_folds), expected)
    assert_same(time_splits(n, n_folds, np.linspace(2.0, 3.0, n)), expected)


@given(st.lists(st.integers(0, 30), min_size=6, max_size=60), st.integers(2, 4))
def test_the_future_never_predicts_the_past(times, n_folds):
    times = np.sort(times)
    whole = TimeSeriesSplit(n_folds).split(times[:, None]) if len(times) > n_folds else []
    if any(np.sum(times < times[test[0]]) < 2 for _, test in whole) or len(times) < 2 * (
        n_folds + 1
    ):
        with pytest.raises(ValueError, match="use fewer folds"):
            time_splits(len(times), n_folds, times)
        return
    for train, test in time_splits(len(times), n_folds, times):
        assert times[train].max() < times[test].min()
        # Of earlier rows only those of the time at which the fold begins are left out.
        assert len(train) == np.sum(times < times[test[0]])


def test_too_few_rows_or_times():
    with pytest.raises(
        ValueError, match="5 folds in the order of time need at least 12 rows, got 11"
    ):
        time_splits(11, 5)
    with pytest.raises(
        ValueError, match="must differ enough for 2 folds, got 2 different ones in 20 rows"
    ):
        time_splits(20, 2, np.repeat([1, 2], 10))
