"""Slopes of kernels are those that differences show."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

from entangled_kernels.features.gradients import NoGradientError, kernel_gradients

from reference.differences import central_differences

KERNELS = [
    RBF(1.3),
    RBF([0.5, 2.0, 1.0]),
    Matern([0.5, 2.0, 1.0], nu=2.5),
    Matern(0.8, nu=1.5),
    RationalQuadratic(1.2, alpha=0.7),
    ConstantKernel(0.3) * RBF(0.7) + ConstantKernel(2.0) * DotProduct(0.5),
    (DotProduct(1.0) ** 2) * RBF(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_slopes_agree_with_differences(kernel):
    rng = np.random.default_rng(0)
    Z, R, weights = rng.normal(size=(4, 3)), rng.normal(size=(6, 3)), rng.normal(size=(2, 6))
    # A row that carries features is at a distance of zero from itself.
    Z[0] = R[0]
    expected = central_differences(lambda rows: kernel(rows, R) @ weights.T, Z)
    np.testing.assert_allclose(kernel_gradients(kernel, Z, R, weights), expected, atol=1e-8)


@pytest.mark.parametrize("kernel", [Matern(nu=0.5), RBF() + Matern(nu=0.5)], ids=str)
def test_kernels_without_slopes(kernel):
    with pytest.raises(NoGradientError, match=r"Matern"):
        kernel_gradients(kernel, np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
