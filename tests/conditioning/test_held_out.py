"""Held-out predictions are measured values less their residuals, and intervals hold what they promise."""

import numpy as np

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.uncertainty import Residuals, calibrate, held_out_intervals


def test_copies_of_a_row_are_averaged_by_their_weights():
    rng = np.random.default_rng(0)
    measured = rng.normal(size=(6, 2))
    measured[2, 1] = np.nan
    row = np.repeat(np.arange(6) * 3, 2)
    values = np.repeat(measured, 2, axis=0) - rng.normal(size=(12, 2))
    values[5, 0] = np.nan
    weight = np.tile([0.25, 0.75], 6)
    residuals = Residuals(values, weight, row, np.ones(12))
    found = held_out_intervals(calibrate(residuals, rng), measured, 0.8)
    for place in range(6):
        own = values[2 * place : 2 * place + 2, 0]
        mean = own[0] if np.isnan(own[1]) else 0.25 * own[0] + 0.75 * own[1]
        assert np.isclose(found.predicted[place, 0], measured[place, 0] - mean)
    assert np.isnan(found.predicted[2, 1])
    width = found.upper - found.predicted
    np.testing.assert_allclose(width, found.predicted - found.lower)
    assert (width[np.isfinite(width)] > 0.0).all()


def test_intervals_of_a_search_hold_about_as_many_rows_as_they_say():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(120, 2))
    model = EntangledKernelRidgeCV(None, cv=4, random_state=0).fit(X, Y)
    found = model.held_out_predictions(0.9)
    np.testing.assert_array_equal(found.measured, Y)
    inside = (found.lower <= Y) & (found.upper >= Y)
    assert 0.85 <= inside.mean() <= 0.97
    rmse = np.sqrt(np.mean((found.measured - found.predicted) ** 2, axis=0))
    # Rows were held out several times, so the mean of their predictions errs somewhat less.
    np.testing.assert_allclose(rmse, model.cv_rmse_, rtol=0.05)
