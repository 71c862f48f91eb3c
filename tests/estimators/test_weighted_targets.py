"""Targets with missing values and their weights: checks, rows that are left out, and the score."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import r2_score

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.estimators.base import (
    check_measured,
    check_targets,
    check_weighted_targets,
    drop_missing_rows,
    score_targets,
)

NAN = np.nan
Y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
HOLES = np.array([[1.0, NAN], [3.0, 4.0], [NAN, 6.0]])


@pytest.mark.parametrize("sample_weight", [None, 1, 1.0, np.ones(3), np.ones((3, 2)), [1, 1, 1]])
def test_ones_are_no_weights(sample_weight):
    targets, weights = check_weighted_targets(Y, sample_weight)
    assert weights is None
    np.testing.assert_array_equal(targets, Y)


@pytest.mark.parametrize("sample_weight", [[1.0, 0.0, 2.0], [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]])
def test_equal_columns_are_weights_of_rows(sample_weight):
    np.testing.assert_array_equal(check_weighted_targets(Y, sample_weight)[1], [1.0, 0.0, 2.0])


@given(
    arrays(np.float64, (4, 3), elements=st.sampled_from([NAN, 0.0, 1.5])),
    arrays(np.float64, (4, 3), elements=st.sampled_from([0.0, 1.0, 2.0])),
    st.booleans(),
)
def test_missing_targets_have_weight_zero(targets, sample_weight, of_rows):
    sample_weight = sample_weight[:, 0] if of_rows else sample_weight
    before = targets.copy(), sample_weight.copy()
    kept, weights = check_weighted_targets(targets, sample_weight)
    np.testing.assert_array_equal(kept, before[0])
    full = np.ones((4, 3)) if weights is None else np.broadcast_to(weights.reshape(4, -1), (4, 3))
    expected = np.where(np.isnan(targets), 0.0, sample_weight.reshape(4, -1))
    np.testing.assert_array_equal(full, expected)
    np.testing.assert_array_equal(sample_weight, before[1])


@pytest.mark.parametrize(
    "table",
    [
        HOLES.tolist(),
        pd.DataFrame(HOLES).astype("Float64"),
        pd.DataFrame({"zinc": [1, 3, None], "lead": [None, 4, 6]}, dtype="Int64"),
        pl.DataFrame({"zinc": [1, 3, None], "lead": [None, 4, 6]}),
        np.array([[1.0, None], [3.0, 4.0], [None, 6.0]], dtype=object),
    ],
    ids=["list", "nullable", "integers", "polars", "objects"],
)
def test_frames_and_nulls(table):
    np.testing.assert_array_equal(check_targets(table), HOLES)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, np.inf], [2.0, 3.0]], "infinity .* in column 1"),
        (pd.DataFrame({"zinc": [1.0, np.inf], "lead": [-np.inf, 1.0]}), "'zinc', 'lead'"),
        (pd.DataFrame({"zinc": [1.0, 2.0], "lead": ["much", 1.0]}), "text in column 'lead'"),
        (["a", "b"], "text in column 0"),
        (np.empty((2, 0)), r"at least one column, got shape \(2, 0\)"),
        (np.ones((2, 2, 2)), "dim 3"),
        (None, "y is None"),
    ],
)
def test_bad_targets(table, message):
    with pytest.raises(ValueError, match=message):
        EntangledKernelRidge().fit([[0.0], [1.0]], table)


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(4), r"shape \(3,\) or \(3, 2\), got shape \(4,\)"),
        (np.ones((3, 1)), r"got shape \(3, 1\)"),
        ([1.0, -1.0, 1.0], "not negative"),
        ([1.0, NAN, 1.0], "finite"),
        (-1.0, "not negative"),
        ("heavy", "got 'heavy'"),
        (pd.DataFrame(np.ones((3, 2)), columns=["lead", "zinc"]), r"\['zinc', 'lead'\]"),
    ],
)
def test_bad_weights(sample_weight, message):
    with pytest.raises(ValueError, match=f"sample_weight must .*{message}"):
        check_weighted_targets(Y, sample_weight, ["zinc", "lead"])


def test_a_target_that_is_never_measured_is_named():
    never = np.array([[1.0, NAN, 1.0], [2.0, NAN, NAN]])
    with pytest.raises(ValueError, match="in column 1; leave it out"):
        check_measured(*check_weighted_targets(never))
    with pytest.raises(ValueError, match="in columns 'b', 'c'"):
        check_measured(*check_weighted_targets(never, [0.0, 1.0]), names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"NaN.* only"):
        check_measured(*check_weighted_targets(np.full(2, NAN)))
    with pytest.raises(ValueError, match="zero weights only"):
        check_measured(*check_weighted_targets(Y, 0.0))
    check_measured(*check_weighted_targets(HOLES))


def test_score_of_complete_targets_is_that_of_scikit_learn(rng):
    truth, guess, weight = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), rng.uniform(size=20)
    assert score_targets(truth, guess) == r2_score(truth, guess)
    assert score_targets(truth[:, 0], guess[:, 0]) == r2_score(truth[:, 0], guess[:, 0])
    expected = r2_score(truth, guess, sample_weight=weight)
    assert score_targets(truth, guess, weight) == expected
    # A factor on the weights of a target does not change its R^2.
    weight_of_each = np.outer(weight, [1.0, 2.0, 3.0])
    assert score_targets(truth, guess, weight_of_each) == pytest.approx(expected)


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
    Y, weights = check_weighted_targets(np.array([[1.0, NAN], [NAN, NAN], [2.0, 3.0]]))
    measured, kept, left = drop_missing_rows(Y, weights)
    np.testing.assert_array_equal(measured, [True, False, True])
    np.testing.assert_array_equal(kept, [[1.0, NAN], [2.0, 3.0]])
    np.testing.assert_array_equal(left, [[1.0, 0.0], [1.0, 1.0]])
    left = drop_missing_rows(np.ones((3, 2)), np.array([2.0, 0.0, 1.0]))[2]
    np.testing.assert_array_equal(left, [2.0, 1.0])
