import numpy as np
import pytest
from scipy.stats import skew
from sklearn.preprocessing import PowerTransformer

from entangled_kernels.features.kernel_maps import POWERS, ColumnPowers

RNG = np.random.RandomState(0)


@pytest.fixture
def columns(rng):
    normal = rng.normal(size=(200, 4))
    return np.column_stack(
        [normal[:, 0], np.exp(normal[:, 1]), 5.0 - np.exp(normal[:, 2]), normal[:, 3] ** 2]
    )


def test_columns_become_symmetric(columns):
    found = ColumnPowers.of(columns, None, RNG)
    before, after = np.abs(skew(columns)), np.abs(skew(found.apply(columns)))
    assert before[1:].min() > 1.5
    assert (after[1:] < 0.4 * before[1:]).all()
    assert found.power[0] == pytest.approx(1.0, abs=0.25)


def test_powers_are_those_of_the_likelihood(columns):
    """Those that scikit-learn finds one by one, to the step of what is tried."""
    found = ColumnPowers.of(columns, None, RNG)
    expected = PowerTransformer().fit((columns - found.mean) / found.scale).lambdas_
    step = POWERS[1] - POWERS[0]
    np.testing.assert_allclose(found.power, np.clip(expected, POWERS[0], POWERS[-1]), atol=step)


def test_values_are_those_of_the_family(columns):
    found = ColumnPowers.of(columns, None, RNG)
    slow = PowerTransformer(standardize=False).fit((columns - found.mean) / found.scale)
    slow.lambdas_ = found.power
    expected = slow.transform((columns - found.mean) / found.scale)
    np.testing.assert_allclose(found.apply(columns), expected, rtol=1e-9, atol=1e-12)


def test_slopes_are_differences(columns):
    found = ColumnPowers.of(columns, None, RNG)
    step = 1e-6
    differences = (found.apply(columns + step) - found.apply(columns - step)) / (2.0 * step)
    np.testing.assert_allclose(found.slope(columns), differences, rtol=1e-6, atol=1e-8)


def test_units_and_weights(columns, rng):
    found, moved = (
        ColumnPowers.of(columns, None, RNG),
        ColumnPowers.of(1e3 * columns + 7.0, None, RNG),
    )
    np.testing.assert_array_equal(moved.power, found.power)
    np.testing.assert_allclose(moved.apply(1e3 * columns + 7.0), found.apply(columns), atol=1e-9)
    counts = rng.integers(1, 3, size=len(columns))
    weighted = ColumnPowers.of(columns, counts.astype(float), RNG)
    repeated = ColumnPowers.of(np.repeat(columns, counts, axis=0), None, RNG)
    np.testing.assert_array_equal(weighted.power, repeated.power)
    np.testing.assert_allclose(weighted.scale, repeated.scale)


def test_constant_columns_stay(columns):
    found = ColumnPowers.of(np.column_stack([columns, np.full(200, 3.0)]), None, RNG)
    assert found.power[-1] == 1.0
    assert np.isfinite(found.apply(np.full((1, 5), 1e6))).all()


def test_of_many_rows_some_are_drawn(rng):
    """Whatever their order: every other row is of one kind."""
    X = np.where(np.arange(8000) % 2, np.exp(rng.normal(size=8000)), rng.normal(size=8000))[:, None]
    found = ColumnPowers.of(X, None, RNG).power[0]
    again = ColumnPowers.of(rng.permutation(X), None, RNG).power[0]
    assert found == pytest.approx(again, abs=0.25)
    assert found < 0.9
