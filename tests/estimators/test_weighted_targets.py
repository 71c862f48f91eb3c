import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import r2_score

from entangled_kernels.estimators.base import (
    check_measured,
    check_weighted_targets,
    drop_missing_rows,
    score_targets,
    simplify_weights,
)

NAN = np.nan
Y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
HOLES = np.array([[1.0, NAN], [3.0, 4.0], [NAN, 6.0]])


def test_weights_are_made_as_simple_as_they_are():
    assert simplify_weights(None) is None
    assert simplify_weights(np.ones((3, 2))) is None
    np.testing.assert_array_equal(simplify_weights(np.array([[2.0, 2.0], [1.0, 1.0]])), [2.0, 1.0])
    weight_of_each = np.array([[2.0, 0.0], [1.0, 1.0]])
    assert simplify_weights(weight_of_each) is weight_of_each


@pytest.mark.parametrize("sample_weight", [None, 1, 1.0, np.ones(3), np.ones((3, 2)), [1, 1, 1]])
def test_ones_are_no_weights(sample_weight):
    targets, weights = check_weighted_targets(Y, sample_weight)
    assert weights is None
    np.testing.assert_array_equal(targets, Y)


@pytest.mark.parametrize("sample_weight", [[1.0, 0.0, 2.0], [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]])
def test_equal_columns_are_weights_of_rows(sample_weight):
    np.testing.assert_array_equal(check_weighted_targets(Y, sample_weight)[1], [1.0, 0.0, 2.0])


def test_missing_targets_have_weight_zero():
    targets, weights = check_weighted_targets(HOLES)
    np.testing.assert_array_equal(targets, HOLES)
    np.testing.assert_array_equal(weights, [[1, 0], [1, 1], [0, 1]])
    np.testing.assert_array_equal(
        check_weighted_targets(HOLES, [2, 3, 4])[1], [[2, 0], [3, 3], [0, 4]]
    )
    weight_of_each = [[2, 5], [0, 3], [7, 4]]
    np.testing.assert_array_equal(
        check_weighted_targets(HOLES, weight_of_each)[1], [[2, 0], [0, 3], [0, 4]]
    )


@given(
    arrays(np.float64, (4, 3), elements=st.sampled_from([NAN, 0.0, 1.5])),
    arrays(np.float64, (4, 3), elements=st.sampled_from([0.0, 1.0, 2.0])),
)
def test_whatever_the_form_the_targets_weigh_the_same(targets, sample_weight):
    kept, weights = check_weighted_targets(targets, sample_weight)
    np.testing.assert_array_equal(kept, targets)
    full = np.ones((4, 3)) if weights is None else np.broadcast_to(weights.reshape(4, -1), (4, 3))
    np.testing.assert_array_equal(full, np.where(np.isnan(targets), 0.0, sample_weight))


@pytest.mark.parametrize(
    "table",
    [
        HOLES.tolist(),
        pd.DataFrame(HOLES, columns=["zinc", "lead"]),
        pd.DataFrame(HOLES, columns=["zinc", "lead"]).astype("Float64"),
        pd.DataFrame({"zinc": [1, 3, None], "lead": [None, 4, 6]}, dtype="Int64"),
        pl.DataFrame({"zinc": [1.0, 3.0, None], "lead": [None, 4.0, 6.0]}),
        pl.DataFrame({"zinc": [1, 3, None], "lead": [None, 4, 6]}),
        np.array([[1.0, None], [3.0, 4.0], [None, 6.0]], dtype=object),
    ],
    ids=["list", "pandas", "nullable", "integers", "polars", "polars integers", "objects"],
)
def test_frames_and_nulls(table):
    targets, weights = check_weighted_targets(table)
    np.testing.assert_array_equal(targets, HOLES)
    np.testing.assert_array_equal(weights, ~np.isnan(HOLES))


def test_what_is_given_is_not_changed():
    table, sample_weight = HOLES.copy(), np.full((3, 2), 2.0)
    check_weighted_targets(table, sample_weight)
    np.testing.assert_array_equal(table, HOLES)
    np.testing.assert_array_equal(sample_weight, 2.0)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, np.inf], [2.0, 3.0]], "infinity .* in column 1"),
        (
            pd.DataFrame({"zinc": [1.0, np.inf], "lead": [-np.inf, 1.0]}),
            "infinity .* in columns 'zinc', 'lead'",
        ),
        (pd.DataFrame({"zinc": [1.0, 2.0], "lead": ["much", 1.0]}), "got text in column 'lead'"),
        ([["a", 1.0], ["b", 2.0]], "got text in column"),
        (["a", "b"], "got text in column 0"),
        (np.empty((3, 0)), r"at least one column, got shape \(3, 0\)"),
        (np.ones((3, 2, 2)), "dim 3"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty(0), r"0 sample\(s\)"),
        (None, "the target y is None"),
    ],
)
def test_bad_targets(table, message):
    with pytest.raises(ValueError, match=message):
        check_weighted_targets(table)


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(4), r"shape \(3,\) or \(3, 2\), got shape \(4,\)"),
        (np.ones((3, 3)), r"got shape \(3, 3\)"),
        (np.ones((3, 1)), r"got shape \(3, 1\)"),
        ([1.0, -1.0, 1.0], "finite and not negative"),
        ([1.0, NAN, 1.0], "finite and not negative"),
        (-1.0, "finite and not negative"),
        ("heavy", r"must be a number, or of shape \(3,\) or \(3, 2\), got 'heavy'"),
        (
            pd.DataFrame(np.ones((3, 2)), columns=["lead", "zinc"]),
            r"the columns of y, \['zinc', 'lead'\]",
        ),
    ],
)
def test_bad_weights(sample_weight, message):
    with pytest.raises(ValueError, match=message):
        check_weighted_targets(pd.DataFrame(Y, columns=["zinc", "lead"]), sample_weight)


def test_a_target_never_measured_is_named():
    never = np.array([[1.0, NAN, 1.0], [2.0, NAN, NAN]])
    with pytest.raises(ValueError, match=r"only missing values .* in column 1; leave it out"):
        check_measured(*check_weighted_targets(never))
    with pytest.raises(ValueError, match="in columns 'b', 'c'"):
        check_measured(*check_weighted_targets(never, [0.0, 1.0]), names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"NaN.* only"):
        check_measured(*check_weighted_targets([NAN, NAN]))
    with pytest.raises(ValueError, match="got zero weights only"):
        check_measured(*check_weighted_targets(Y, 0.0))
    check_measured(*check_weighted_targets(HOLES))
    check_measured(*check_weighted_targets(Y))


def test_score_of_complete_targets_is_that_of_scikit_learn(rng):
    truth, guess, weight = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), rng.uniform(size=20)
    assert score_targets(truth, guess) == r2_score(truth, guess)
    assert score_targets(truth[:, 0], guess[:, 0]) == r2_score(truth[:, 0], guess[:, 0])
    assert score_targets(truth, guess, weight) == r2_score(truth, guess, sample_weight=weight)
    weight_of_each = np.outer(
        weight, [1.0, 2.0, 3.0]
    )  # a factor per target does not change its R^2
    assert score_targets(truth, guess, weight_of_each) == pytest.approx(
        r2_score(truth, guess, sample_weight=weight)
    )


def test_score_counts_measured_values_only(rng):
    truth, guess = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    truth[5:, 0] = NAN
    expected = (r2_score(truth[:5, 0], guess[:5, 0]) + r2_score(truth[:, 1], guess[:, 1])) / 2
    assert score_targets(truth, guess) == pytest.approx(expected)
    truth[1:, 0] = NAN  # one value has no R^2
    assert score_targets(truth, guess) == pytest.approx(r2_score(truth[:, 1], guess[:, 1]))
    with pytest.raises(ValueError, match="at least two measured values"):
        score_targets(truth[:, 0], guess[:, 0])


def test_rows_without_a_measured_target_are_left_out():
    Y, weights = check_weighted_targets([[1.0, np.nan], [np.nan, np.nan], [2.0, 3.0]])
    measured, kept, left = drop_missing_rows(Y, weights)
    np.testing.assert_array_equal(measured, [True, False, True])
    np.testing.assert_array_equal(kept, [[1.0, np.nan], [2.0, 3.0]])
    np.testing.assert_array_equal(left, [[1.0, 0.0], [1.0, 1.0]])
    measured, kept, left = drop_missing_rows(np.ones((3, 2)), np.array([2.0, 0.0, 1.0]))
    np.testing.assert_array_equal(left, [2.0, 1.0])
    with pytest.raises(ValueError, match=r"only missing .* in column 'lead'"):
        drop_missing_rows(np.ones((2, 2)), np.array([[1.0, 0.0], [1.0, 0.0]]), ["zinc", "lead"])
