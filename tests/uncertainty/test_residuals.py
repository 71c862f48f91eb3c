from dataclasses import replace

import numpy as np
import pytest

from entangled_kernels.uncertainty import HeldOutScore, Residuals, without_rounding


def draw(n):
    values = np.random.default_rng(0).normal(size=(n, 2)) * [1.0, 5.0]
    return Residuals(values, np.ones(n), np.arange(n), np.ones(n))


def test_deviations_are_root_mean_squares():
    residuals = draw(300)
    deviation = residuals.deviation()
    np.testing.assert_allclose(deviation, [1.0, 5.0], rtol=0.15)
    Z = residuals.standardised(deviation)
    np.testing.assert_allclose(np.mean(Z**2, axis=0), 1.0, rtol=1e-9)


def test_missing_values_and_weights_count_as_they_are():
    residuals = draw(60)
    values = residuals.values.copy()
    values[::3, 0] = np.nan
    holes = replace(residuals, values=values)
    np.testing.assert_allclose(holes.deviation(), np.sqrt(np.nanmean(values**2, axis=0)))
    # Two copies of half the weight are one row.
    twice, row = (np.repeat(part, 2, axis=0) for part in (values, residuals.row))
    double = Residuals(twice, np.full(120, 0.5), row, np.ones(120))
    np.testing.assert_allclose(double.deviation(), holes.deviation())
    assert double.n_rows == holes.n_rows == 60


def test_one_residual_for_each_row():
    residuals = draw(20)
    values = residuals.values.copy()
    values[3, 0] = np.nan
    row = np.concatenate([residuals.row, residuals.row[::-1]])
    both = np.concatenate([values, residuals.values[::-1] + 2.0])
    found = Residuals(both, np.repeat([0.75, 0.25], 20), row, np.ones(40)).by_row()
    expected = residuals.values + 0.5
    expected[3, 0] = residuals.values[3, 0] + 2.0
    np.testing.assert_allclose(found.values, expected)
    np.testing.assert_array_equal(found.row, residuals.row)
    np.testing.assert_allclose(found.weight, 1.0)


def test_residuals_by_row_are_in_the_order_of_the_rows():
    residuals, order = draw(20), np.random.default_rng(1).permutation(20)
    mixed = Residuals(residuals.values[order], np.ones(20) + order, order, 1.0 + order)
    found = mixed.by_row()
    np.testing.assert_array_equal(found.values, residuals.values)
    np.testing.assert_array_equal(found.row, np.arange(20))
    np.testing.assert_array_equal(found.weight, np.arange(20) + 1.0)
    np.testing.assert_array_equal(found.relative_variance, found.weight)


def test_scales_leave_a_row_out():
    residuals = draw(10)
    Z = residuals.values.copy()
    Z[4, 1] = np.nan
    found = residuals.left_out_scales(Z)
    for i in range(10):
        others = np.arange(10) != i
        np.testing.assert_allclose(found[i], np.sqrt(np.nanmean(Z[others] ** 2, axis=0)))


def test_a_target_without_errors():
    residuals = Residuals(np.zeros((5, 2)), np.ones(5), np.arange(5), np.full(5, 2.0))
    deviation = residuals.deviation()
    np.testing.assert_array_equal(deviation, 0.0)
    np.testing.assert_array_equal(residuals.standardised(deviation), 0.0)
    np.testing.assert_array_equal(residuals.left_out_scales(np.zeros((5, 2))), 1.0)


def test_errors_of_constant_targets_are_rounding():
    targets = np.column_stack([np.full(4, 0.1), [1.0, 2.0, 1.0, 1.0], [np.nan, 7.0, np.nan, 7.0]])
    errors = np.full((4, 3), 1e-16)
    errors[0, 2] = np.nan
    expected = np.column_stack([np.zeros(4), np.full(4, 1e-16), [np.nan, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(without_rounding(errors, targets), expected)
    # All rows of a sample may be alike by chance.
    np.testing.assert_array_equal(
        without_rounding(np.full((4, 1), 0.02), np.full((4, 1), 3.0)), 0.02
    )
    np.testing.assert_array_equal(without_rounding(np.full((4, 1), 1e-16), np.zeros((4, 1))), 1e-16)
    # Variation that the target can hold is none of rounding.
    assert without_rounding(errors, targets * [1.0, 1e-9, 1.0] + [0.0, 1.0, 0.0])[0, 1] == 1e-16


def test_scores_are_means_of_squares_over_measured_values():
    values = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 6.0]])
    residuals = Residuals(values, np.array([2.0, 1.0, 1.0]), np.arange(3), np.ones(3))
    found = HeldOutScore.of(residuals, np.array([0.5, 0.0]))
    np.testing.assert_allclose(found.rmse**2, [36.0 / 4.0, 52.0 / 2.0])
    np.testing.assert_allclose(found.targets, [0.5 * 9.0, np.nan])
    assert found.score == pytest.approx(4.5)
