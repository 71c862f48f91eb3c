"""Measured targets: how predictions follow them, and what they change."""

import numpy as np
from entangled_kernels.explanation import measured_effects, mixtures

from entangled_kernels import EntangledKernelRidge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
COMMON = RNG.normal(size=(80, 1))
Y = X @ RNG.normal(size=(2, 3)) + COMMON * [1.0, -0.7, 0.0] + 0.3 * RNG.normal(size=(80, 3))
MODEL = EntangledKernelRidge().fit(X, Y)
CALIBRATION = MODEL._fit.calibration


def patterns():
    measured = np.full(Y.shape, np.nan)
    measured[:40, 0], measured[30:60, 2] = Y[:40, 0], Y[30:60, 2]
    return measured


def test_mixtures_predict_as_the_model_does():
    measured = patterns()
    mean, expected = MODEL.predict(X), MODEL.predict(X, given=measured)
    found = mixtures(CALIBRATION, measured, Y.shape)
    assert sorted(np.concatenate([one.rows for one in found])) == list(range(80))
    for rows, follow, weights in found:
        mixed = mean[rows] @ follow.T + np.nan_to_num(measured[rows]) @ weights.T
        free = np.isnan(measured[rows])
        np.testing.assert_allclose(mixed[free], expected[rows][free], rtol=1e-9, atol=1e-12)


def test_effects_are_changes_of_predictions():
    measured = np.full(Y.shape, np.nan)
    measured[:, 0] = Y[:, 0]
    found = mixtures(CALIBRATION, measured, Y.shape)
    places, effect, size, noise = measured_effects(CALIBRATION, measured, found)
    more = measured.copy()
    more[:, 0] += Y[:, 0].std()
    change = (MODEL.predict(X, given=more) - MODEL.predict(X, given=measured))[:, 1:]
    assert places.tolist() == [0]
    np.testing.assert_allclose(np.tile(effect[0, 1:], (80, 1)), change, rtol=1e-9)
    np.testing.assert_allclose(size[0, 1:], np.abs(effect[0, 1:]))
    assert np.isnan(effect[0, 0])
    # The first two targets share errors, the third has its own.
    assert effect[0, 1] < -3.0 * noise[0, 1]
    assert size[0, 2] < noise[0, 2]


def test_nothing_is_mixed_where_nothing_is_measured():
    ((rows, follow, weights),) = mixtures(None, None, (5, 3))
    np.testing.assert_array_equal(rows, np.arange(5))
    np.testing.assert_array_equal(follow, np.eye(3))
    assert not weights.any()
