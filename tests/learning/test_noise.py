"""Models of noise have the spread that fits to noise have."""

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning.noise import noise_coefficients


@pytest.mark.parametrize("settings", [{"shrinkage": 1.0}, {"shrinkage": 1.0, "alpha": [0.5, 5.0]}, {}])
def test_spread_is_that_of_fits_to_noise(settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 2.0, 0.5]
    R = np.array([[1.0, 0.6], [0.6, 2.0]])
    model = EntangledKernelRidge(**settings).fit(X, X[:, :2] + rng.multivariate_normal([0.0, 0.0], R, 60))
    drawn = noise_coefficients(model._fit, model._fit.calibration, 200, rng)
    covariance = model.residual_covariance_
    fitted = [
        EntangledKernelRidge(**settings).fit(X, rng.multivariate_normal([0.0, 0.0], covariance, 60)).coef_
        for _ in range(200)
    ]
    assert drawn.shape == (200, 2, 3)
    np.testing.assert_allclose(drawn.std(axis=0), np.std(fitted, axis=0), rtol=0.25)


def test_blanks_make_noise_larger():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    Y = X + rng.normal(size=(400, 2))
    Y[100:, 1] = np.nan
    model = EntangledKernelRidge(shrinkage=1.0).fit(X, Y)
    drawn = noise_coefficients(model._fit, model._fit.calibration, 400, rng)
    spread = drawn.std(axis=(0, 2)) / model._fit.calibration.deviation.scale
    # A quarter of its cells was measured.
    assert 1.8 < spread[1] / spread[0] < 2.2


def test_without_errors_there_is_no_noise():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = EntangledKernelRidge().fit(X, np.ones((20, 1)))
    assert not noise_coefficients(model._fit, model._fit.calibration, 2, np.random.default_rng(0)).any()
