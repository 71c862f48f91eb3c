"""Deviations, intervals and conditioning calibrated on residuals."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.uncertainty import Residuals, calibrate
from entangled_kernels.uncertainty.calibration import HALF_POOLED, joint_quantile, target_quantiles

from reference import cells as dense

R = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.0], [0.3, 0.0, 1.0]])
SCALE = np.array([1.0, 10.0, 0.1])


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.multivariate_normal(np.zeros(3), R, size=n) * SCALE
    return Residuals(values, np.ones(n), np.arange(n), np.ones(n))


@pytest.fixture(scope="module")
def calibration():
    return calibrate(draw(400), np.random.default_rng(0))


def test_what_residuals_show(calibration):
    assert calibration.shrinkage <= 0.1
    np.testing.assert_allclose(calibration.correlation.dense(), R, atol=0.12)
    mean_square = np.mean(draw(400).values ** 2, axis=0)
    np.testing.assert_allclose(calibration.deviation**2, mean_square)
    np.testing.assert_allclose(np.diag(calibration.mean_covariance()), mean_square)


def test_relations_are_of_the_mean_residual_of_a_row(calibration):
    """What differs between the folds in which a row was held out is no relation of targets."""
    residuals, rng = draw(400), np.random.default_rng(3)
    noise = 3.0 * SCALE * rng.normal(size=(400, 1))
    twice = np.concatenate([residuals.values + noise, residuals.values - noise])
    row = np.concatenate([residuals.row, residuals.row])
    found = calibrate(
        Residuals(twice, np.full(800, 0.5), row, np.ones(800)), np.random.default_rng(0)
    )
    np.testing.assert_allclose(
        found.correlation.dense(), calibration.correlation.dense(), atol=0.02
    )


def test_conditioning_in_the_units_of_the_targets(calibration):
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=(6, 3)) * SCALE, calibration.deviation
    given = np.where(rng.random((6, 3)) < 0.5, mean + SCALE, np.nan)
    found = calibration.condition(mean, given, with_covariance=True)
    whole = np.outer(std, std) * calibration.correlation.dense()
    for i in range(6):
        expected, covariance = dense.condition(whole, given[i] - mean[i])
        known = np.isfinite(given[i])
        np.testing.assert_allclose(found.mean[i], mean[i] + expected)
        np.testing.assert_array_equal(found.mean[i, known], given[i, known])
        np.testing.assert_allclose(found.covariance[i], covariance, atol=1e-9 * std.max() ** 2)
        np.testing.assert_allclose(
            found.variance[i], np.diag(covariance), atol=1e-9 * std.max() ** 2
        )


@cache
def calibrated(seed):
    return calibrate(draw(60, seed), np.random.default_rng(0))


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize("pattern", [[False] * 3, [True, False, False], [False, True, True]])
def test_intervals_cover(joint, coverage, pattern):
    """Of fresh residuals, whatever is known, on average over calibrations with few rows."""
    known, covered = np.array(pattern), []
    for seed in range(40):
        calibration, new = calibrated(seed), draw(200, 1000 + seed)
        given = np.where(known, new.values, np.nan)
        found = calibration.condition(np.zeros((200, 3)), given)
        widths = calibration.half_widths(
            coverage, np.isfinite(given), np.sqrt(found.variance), joint=joint
        )
        inside = (np.abs(new.values - found.mean) <= widths)[:, ~known]
        covered.append(inside.all(axis=1).mean() if joint else inside.mean())
        assert not widths[:, known].any()
    assert abs(np.mean(covered) - coverage) < 0.03


def test_all_given_has_no_width(calibration):
    widths = calibration.half_widths(0.9, np.ones((2, 3), dtype=bool), np.zeros((2, 3)), joint=True)
    assert not widths.any()


def test_residuals_with_missing_values():
    residuals = draw(200)
    values = np.where(np.random.default_rng(0).random((200, 3)) < 0.4, np.nan, residuals.values)
    calibration = calibrate(replace(residuals, values=values), np.random.default_rng(0))
    np.testing.assert_allclose(calibration.correlation.dense(), R, atol=0.25)
    new = draw(2000, 5)
    none, std = np.zeros((2000, 3), dtype=bool), np.tile(calibration.deviation, (2000, 1))
    widths = calibration.half_widths(0.9, none, std, joint=False)
    assert abs(np.mean(np.abs(new.values) <= widths) - 0.9) < 0.03


@pytest.mark.parametrize("joint", [True, False])
def test_a_target_without_errors_changes_nothing_for_the_others(joint):
    residuals = draw(40)
    wider = replace(residuals, values=np.insert(residuals.values, 1, 0.0, axis=1))
    std, known = np.ones((1, 3)), np.array([[False, False, True]])
    expected, found = (calibrate(one, np.random.default_rng(0)) for one in (residuals, wider))
    np.testing.assert_allclose(found.shares, expected.shares, rtol=1e-9)
    others = np.array([0, 2, 3])
    np.testing.assert_allclose(
        found.mean_covariance()[np.ix_(others, others)], expected.mean_covariance(), rtol=1e-9
    )
    for pattern in (known, np.zeros_like(known)):
        widths = found.half_widths(
            0.8, np.insert(pattern, 1, False, axis=1), np.insert(std, 1, 0.0, axis=1), joint=joint
        )
        assert widths[0, 1] == 0.0
        np.testing.assert_allclose(
            widths[:, others], expected.half_widths(0.8, pattern, std, joint=joint), rtol=1e-9
        )


def test_no_target_with_errors_has_no_width():
    calibration = calibrate(replace(draw(20), values=np.zeros((20, 3))), np.random.default_rng(0))
    assert calibration.shrinkage == 1.0
    assert not calibration.half_widths(
        0.8, np.zeros((2, 3), dtype=bool), np.zeros((2, 3)), joint=True
    ).any()


def test_very_many_targets_have_an_operator_for_a_covariance(rng):
    values = rng.normal(size=(5, 2050))
    calibration = calibrate(Residuals(values, np.ones(5), np.arange(5), np.ones(5)), rng)
    operator, unit = calibration.mean_covariance(), calibration.deviation
    column = unit * calibration.correlation.dense()[:, 7] * unit[7]
    np.testing.assert_allclose(operator @ np.eye(2050)[:, 7], column, atol=1e-12)
    np.testing.assert_allclose(operator.T @ np.eye(2050)[:, 7], column, atol=1e-12)


def test_a_calibration_is_the_same_when_it_was_saved(calibration):
    known = np.array([[True, False, False]])
    before = calibration.half_widths(0.9, known, np.ones((1, 3)), joint=False)
    saved = pickle.loads(pickle.dumps(calibration))
    np.testing.assert_array_equal(
        saved.half_widths(0.9, known, np.ones((1, 3)), joint=False), before
    )


def test_held_out_predictions_of_a_row_are_averaged_by_their_weights(rng):
    measured = rng.normal(size=(6, 2))
    measured[2, 1] = np.nan
    values = np.repeat(measured, 2, axis=0) - rng.normal(size=(12, 2))
    values[5, 0] = np.nan
    row, weight = np.repeat(np.arange(6) * 3, 2), np.tile([0.25, 0.75], 6)
    found = calibrate(Residuals(values, weight, row, np.ones(12)), rng).held_out(measured, 0.8)
    for place in range(6):
        errors = values[2 * place : 2 * place + 2, 0]
        mean = errors[0] if np.isnan(errors[1]) else 0.25 * errors[0] + 0.75 * errors[1]
        assert np.isclose(found.predicted[place, 0], measured[place, 0] - mean)
    assert np.isnan(found.predicted[2, 1])
    width = found.upper - found.predicted
    np.testing.assert_allclose(width, found.predicted - found.lower)
    assert (width[np.isfinite(width)] > 0.0).all()


def plain_quantile(scores, mass, n_rows, coverage):
    """The score at which the mass of all that are not larger reaches what is needed."""
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(mass[order]) / mass.sum()
    return scores[order][np.searchsorted(reached, (coverage - 1e-12) * (n_rows + 1.0) / n_rows)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 60), st.sampled_from([0.5, 0.7, 0.8]))
def test_a_new_row_is_one_more(seed, n, coverage):
    """Split conformal prediction: the ceil((n + 1) coverage)-th smallest of the largest scores of rows."""
    scores = np.random.default_rng(seed).normal(size=(n, 2))
    scores[::2, 1] = np.nan
    expected = np.sort(np.nanmax(scores, axis=1))[int(np.ceil((n + 1) * coverage - 1e-9)) - 1]
    assert joint_quantile(scores, np.ones(n), n, coverage) == expected
    # Copies of a row share its weight.
    assert (
        joint_quantile(np.repeat(scores, 2, axis=0), np.full(2 * n, 0.5), n, coverage) == expected
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(3, 40), st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.7])
)
def test_quantiles_of_targets_mix_their_scores_with_those_of_all(seed, n, p, coverage):
    """The mass of every score, target by target, as it is defined."""
    rng = np.random.default_rng(seed)
    scores, weight = np.round(np.abs(rng.normal(size=(n, p))), 1), rng.uniform(0.5, 2.0, size=n)
    scores[rng.random((n, p)) < 0.3] = np.nan
    scores[0] = 1.0
    share, known = n / (n + HALF_POOLED), np.isfinite(scores)
    mass = known * weight[:, None]
    for target, found in enumerate(target_quantiles(scores, weight, n, coverage)):
        mixed = (1.0 - share) * mass / mass.sum()
        mixed[:, target] += share * mass[:, target] / mass[:, target].sum()
        assert found == plain_quantile(scores[known], mixed[known], n, coverage)


def test_a_target_that_was_not_measured_takes_the_quantile_of_all():
    scores = np.column_stack([np.arange(1.0, 21.0), np.full(20, np.nan)])
    np.testing.assert_array_equal(target_quantiles(scores, np.ones(20), 20, 0.8), [17.0, 17.0])


def test_more_than_the_rows_can_show():
    scores = np.arange(1.0, 11.0)[:, None]
    with pytest.warns(UserWarning, match="10 rows cannot show what covers 0.99"):
        assert joint_quantile(scores, np.ones(10), 10, 0.99) > 10.0
