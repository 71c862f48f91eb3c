"""Models of noise have the spread that fits to noise have."""

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.model.explanation import NoisePart, noise_coefficients, noise_of_average


def noise(model, n_draws, rng):
    fitted = model.model_
    return noise_coefficients(fitted.fit, fitted.calibration, n_draws, rng)


def averaged_noise(model, X, shares, n_draws, rng):
    """Of an average of parts that are all like the model, over rows X."""
    fitted = model.model_
    parts = [NoisePart(None, fitted.fit.settings, share) for share in shares]
    return noise_of_average(parts, X, fitted.fit, fitted.calibration, n_draws, rng)


@pytest.mark.parametrize("settings", [{"shrinkage": 1.0}, {"shrinkage": 1.0, "alpha": 5.0}, {}])
def test_spread_is_that_of_fits_to_noise(settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 2.0, 0.5]
    R = np.array([[1.0, 0.6], [0.6, 2.0]])
    model = EntangledKernelRidge(**settings).fit(
        X, X[:, :2] + rng.multivariate_normal([0.0, 0.0], R, 60)
    )
    drawn = noise(model, 200, rng)
    covariance = model.residual_covariance_
    fitted = [
        EntangledKernelRidge(**settings)
        .fit(X, rng.multivariate_normal([0.0, 0.0], covariance, 60))
        .coef_
        for _ in range(200)
    ]
    assert drawn.shape == (200, 2, 3)
    np.testing.assert_allclose(drawn.std(axis=0), np.std(fitted, axis=0), rtol=0.25)


@pytest.mark.parametrize("shrinkage", [1.0, 0.5])
def test_more_targets_than_features_have_their_own_noise(shrinkage):
    """Draws reach other combinations of the targets than what was learned, and than each other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = EntangledKernelRidge(shrinkage=shrinkage)
    model.fit(X, X @ rng.normal(size=(2, 12)) + rng.normal(size=(60, 12)))
    spread = model.model_.calibration.deviation
    fitted = [
        EntangledKernelRidge(shrinkage=shrinkage).fit(X, rng.normal(size=(60, 12)) * spread).coef_
        for _ in range(100)
    ]
    expected = np.mean(np.square(fitted))
    drawn = noise(model, 100, rng)
    assert np.mean(drawn**2) == pytest.approx(expected, rel=0.25)
    averaged = averaged_noise(model, X, [np.ones(1)], 100, rng)
    assert np.mean(averaged**2) == pytest.approx(expected, rel=0.25)
    assert np.mean(averaged[0] ** 2) < 3.0 * np.mean(averaged[1:] ** 2)


def test_missing_targets_make_noise_larger():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    Y = X + rng.normal(size=(400, 2))
    Y[100:, 1] = np.nan
    model = EntangledKernelRidge(shrinkage=1.0).fit(X, Y)
    spread = noise(model, 400, rng).std(axis=(0, 2)) / model.model_.calibration.deviation
    # A quarter of its rows was measured.
    assert 1.8 < spread[1] / spread[0] < 2.2


@pytest.mark.parametrize(
    "settings", [{}, {"fit_intercept": False}, {"prediction": "partial_trace"}]
)
def test_a_constant_target_has_no_noise(settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = np.column_stack([X[:, 0] + rng.normal(size=30), np.zeros(30), rng.normal(size=30)])
    model = EntangledKernelRidge(**settings).fit(X, Y)
    for drawn in (noise(model, 3, rng), averaged_noise(model, X, [np.ones(3)], 3, rng)):
        assert drawn[:, [0, 2]].all()
        assert np.abs(drawn[:, 1]).max() < 1e-6 * np.abs(drawn).max()


def test_without_errors_there_is_no_noise(rng):
    X = rng.normal(size=(20, 2))
    model = EntangledKernelRidge().fit(X, np.ones((20, 1)))
    assert not noise(model, 2, rng).any()
    assert not averaged_noise(model, X, [np.ones(1)], 2, rng).any()


@pytest.mark.parametrize("n", [60, 30])
def test_noise_of_an_average_of_like_parts_is_that_of_one(n):
    """Whether the rows are those of training or half of them."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(30, 3)) * [1.0, 2.0, 0.5], (2, 1))
    model = EntangledKernelRidge(shrinkage=1.0).fit(
        X, X[:, :2] + rng.normal(size=(60, 2)) @ [[1.0, 0.5], [0, 1]]
    )
    drawn = averaged_noise(model, X[:n], [np.array([0.3, 1.0]), np.array([0.7, 0.0])], 300, rng)
    assert drawn.shape == (300, 2, 6)
    assert not drawn[:, 1, 3:].any()
    expected = noise(model, 300, rng)
    np.testing.assert_allclose(
        (drawn[..., :3] + drawn[..., 3:]).std(axis=0), expected.std(axis=0), rtol=0.2
    )
