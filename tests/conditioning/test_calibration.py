import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from entangled_kernels.uncertainty import Residuals, calibrate
from entangled_kernels.uncertainty import calibration as module

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
        np.testing.assert_allclose(found.variance[i], np.diag(covariance), atol=1e-9 * std.max() ** 2)


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
        widths = calibration.half_widths(coverage, np.isfinite(given), np.sqrt(found.variance), joint=joint)
        inside = (np.abs(new.values - found.mean) <= widths)[:, ~known]
        covered.append(inside.all(axis=1).mean() if joint else inside.mean())
        assert not widths[:, known].any()
    assert abs(np.mean(covered) - coverage) < 0.03


def test_everything_known_has_no_width(calibration):
    widths = calibration.half_widths(0.9, np.ones((2, 3), dtype=bool), np.zeros((2, 3)), joint=True)
    assert not widths.any()


def test_residuals_with_blanks():
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
    expected, found = (calibrate(own, np.random.default_rng(0)) for own in (residuals, wider))
    assert found.shrinkage == expected.shrinkage
    others = np.array([0, 2, 3])
    np.testing.assert_allclose(
        found.mean_covariance()[np.ix_(others, others)], expected.mean_covariance(), rtol=1e-12
    )
    for pattern in (known, np.zeros_like(known)):
        widths = found.half_widths(
            0.8, np.insert(pattern, 1, False, axis=1), np.insert(std, 1, 0.0, axis=1), joint=joint
        )
        assert widths[0, 1] == 0.0
        np.testing.assert_allclose(
            widths[:, others], expected.half_widths(0.8, pattern, std, joint=joint), rtol=1e-12
        )


def test_no_target_with_errors_has_no_width():
    calibration = calibrate(replace(draw(20), values=np.zeros((20, 3))), np.random.default_rng(0))
    assert calibration.shrinkage == 1.0
    assert not calibration.half_widths(0.8, np.zeros((2, 3), dtype=bool), np.zeros((2, 3)), joint=True).any()


def test_many_targets_have_an_operator_for_a_covariance(monkeypatch, calibration):
    whole = calibration.mean_covariance()
    monkeypatch.setattr(module, "MOST_DENSE", 2)
    operator = calibration.mean_covariance()
    np.testing.assert_allclose(operator @ np.eye(3), whole)
    np.testing.assert_allclose(operator.T @ np.ones(3), whole.sum(axis=0))


def test_what_can_be_found_again_is_not_saved(calibration):
    known = np.array([[True, False, False]])
    before = calibration.half_widths(0.9, known, np.ones((1, 3)), joint=False)
    saved = pickle.loads(pickle.dumps(calibration))
    assert not any(name.startswith("_") for name in vars(saved))
    np.testing.assert_array_equal(saved.half_widths(0.9, known, np.ones((1, 3)), joint=False), before)
