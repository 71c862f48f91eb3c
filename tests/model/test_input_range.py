"""Ranges of inputs: what they hold, how parts merge, and how far rows are out."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, dok_array

from entangled_kernels.model.input_range import EDGES, InputRange, as_numbers, chance_outside


def plain_distance(X, rows):
    """How far rows are out of a table of numbers, column by column."""
    worst = np.zeros(len(rows))
    out_alone = []
    for column, moved in zip(X.T, rows.T, strict=True):
        low, high = column.min(), column.max()
        unit = high - low or max(abs(low), 1.0)
        for place in (column.argmin(), column.argmax()):
            others = np.delete(column, place)
            range_of_others = others.max() - others.min() or max(abs(others[0]), 1.0)
            out_alone.append(
                abs(column[place] - (others.min() + others.max()) / 2) / range_of_others
            )
        worst = np.maximum(worst, np.abs(moved - (low + high) / 2) / unit)
    return worst / np.clip(sorted(out_alone)[-1 - int(0.01 * len(X))], *EDGES)


@pytest.mark.parametrize("n", [5, 150, 400])
def test_distance_is_that_of_the_plain_definition(n):
    rng = np.random.default_rng(n)
    X = rng.standard_t(2.0, size=(n, 6))
    rows = 10.0 * rng.normal(size=(9, 6))
    np.testing.assert_allclose(InputRange.of(X).distance(rows), plain_distance(X, rows), rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 11))
def test_parts_merge_to_the_whole(seed, cut):
    X = np.random.default_rng(seed).integers(-3, 4, size=(12, 2)).astype(float)
    whole, parts = InputRange.of(X), InputRange.of(X[cut:]).merge(InputRange.of(X[:cut]))
    if 1 < cut < 11:
        np.testing.assert_array_equal(parts.packed(), whole.packed())
    # Of a single row the second value is the first once more, which merging cannot know.
    np.testing.assert_array_equal([parts.low[0], parts.high[0]], [whole.low[0], whole.high[0]])


def test_packing_and_back():
    one = InputRange.of(np.random.default_rng(0).normal(size=(9, 3)))
    again = InputRange.unpacked(one.packed())
    np.testing.assert_array_equal(again.packed(), one.packed())
    assert again.n_rows == 9
    for wrong in (
        np.zeros((5, 2)),
        one.packed()[:, ::-1],
        np.vstack([[0.5] * 3, one.packed()[1:]]),
    ):
        with pytest.raises(ValueError, match="range of inputs"):
            InputRange.unpacked(wrong)


def test_multiples_are_out_and_training_rows_are_not():
    X = np.random.default_rng(0).lognormal(size=(100, 5))
    inputs = InputRange.of(X)
    assert (inputs.distance(X) <= 0.5).all()
    assert (inputs.distance(1e12 * X) > 1.0).all()
    assert inputs.judge(1e12 * X[:1], 10.0).n_far == 1
    assert inputs.judge(X, 1.0).n_far == 0
    assert inputs.judge(X[:0], 1.0).n_far == 0


def test_constant_columns_have_their_value_for_a_range():
    inputs = InputRange.of(np.tile([0.0, 50.0], (30, 1)))
    np.testing.assert_allclose(inputs.distance(np.array([[1.0, 50.0], [0.0, 150.0]])), [1.0, 2.0])


def test_texts_and_missing_values_are_not_out():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"town": ["Ulm", "Aix", "Ems"], "x": [1.0, np.nan, 2.0], "none": [np.nan] * 3}
    )
    inputs = InputRange.of(frame)
    assert inputs.columns.tolist() == [1]
    np.testing.assert_allclose(inputs.distance(frame.assign(x=[np.nan, 1.5, 4.0])), [0.0, 0.0, 2.5])
    assert InputRange.of(frame[["town"]]).distance(frame[["town"]]).tolist() == [0.0] * 3


@pytest.mark.parametrize("kind", [csr_array, dok_array])
def test_sparse_tables_have_the_same_outer_values(kind):
    X = np.random.default_rng(0).normal(size=(20, 3)) * (np.arange(60).reshape(20, 3) % 4 == 0)
    sparse, dense = InputRange.of(kind(X)), InputRange.of(X)
    np.testing.assert_array_equal([sparse.low[0], sparse.high[0]], [dense.low[0], dense.high[0]])
    assert (sparse.distance(kind(1e6 * X + 0.1)) > 1.0).any()


def test_columns_that_hold_no_numbers_become_missing():
    found = as_numbers(np.array([["a", 1], ["b", 2]], dtype=object))
    np.testing.assert_array_equal(found, [[np.nan, 1.0], [np.nan, 2.0]])
    assert as_numbers(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("d", [1, 5, 20])
@pytest.mark.parametrize("n", [30, 100])
def test_a_batch_that_is_shifted_is_unusual_and_one_like_training_is_not(n, d):
    """Shifted by two deviations; of one column an outer training row can hide it."""
    called = shifted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        inputs, rows = InputRange.of(rng.normal(size=(n, d))), rng.normal(size=(100, d))
        called += inputs.judge(rows, 10.0).unusual
        shifted += inputs.judge(rows + 2.0, 10.0).unusual
    assert called <= 1
    assert n == 30 or shifted >= (10 if d == 1 else 20)


@pytest.mark.parametrize(("n", "d"), [(50, 9), (40, 20), (22, 9)])
def test_one_column_in_another_unit_is_unusual(n, d):
    """Fahrenheit instead of Celsius in one of many columns; new rows like the others are not."""
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        celsius, new = rng.normal(25.0, 5.0, size=(n, d)), rng.normal(25.0, 5.0, size=(30, d))
        inputs = InputRange.of(celsius)
        false += inputs.judge(new, 10.0).unusual
        new[:, 0] = 1.8 * new[:, 0] + 32.0
        assert inputs.judge(new, 10.0).unusual
    assert false <= 3


def test_chance_of_rows_outside_is_that_of_exchangeable_rows():
    assert chance_outside(0, 7, 20) == pytest.approx(1.0)
    assert chance_outside(1, 1, 20) == pytest.approx(2 / 21)
    # Two new rows beside three: every order of the five is as likely.
    orders = list(permutations(range(5)))
    outside = [sum(not min(o[:3]) < new < max(o[:3]) for new in o[3:]) for o in orders]
    for count in (1, 2):
        assert chance_outside(count, 2, 3) == pytest.approx(np.mean(np.array(outside) >= count))


def test_few_rows_are_never_unusual(rng):
    inputs = InputRange.of(rng.normal(size=(40, 2)))
    assert inputs.judge(np.full((9, 2), 99.0), 1e3)[1:] == (1.0, False)
    assert inputs.judge(np.empty((0, 2)), 1e3) == (0, 0.0, False)


@pytest.mark.parametrize("shape", [(7, 1), (1000, 3), (5000, 40), (3, 400)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_batch_is_judged_like_its_rows(shape, order, rng):
    """One row far out and one missing value, wherever they are."""
    inputs = InputRange.of(rng.normal(size=(50, shape[1])))
    for place in (0, shape[0] // 2, shape[0] - 1):
        rows = np.array(rng.uniform(-0.5, 0.5, size=shape), order=order)
        assert inputs.judge(rows, 10.0) == (0, 0.0, False)
        rows[place, -1], rows[place - 1, 0] = 1e6, np.nan
        assert inputs.judge(rows, 10.0).n_far == np.count_nonzero(inputs.distance(rows) > 10.0) == 1
