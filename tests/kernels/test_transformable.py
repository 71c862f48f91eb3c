import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.kernels import SeparableKernel, TransformableKernel
from entangled_kernels.linalg import operator_schmidt
from kernels.draws import random_psd


def gram_schmidt_values(kernel, X):
    return operator_schmidt(kernel(X).to_dense(), (len(X), kernel.n_outputs)).values


def test_blocks_are_scalar_kernels_of_transformed_points(rng):
    X, Z = rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    S = rng.normal(size=(3, 3))
    blocks = TransformableKernel("rbf", [S, np.square], gamma=0.3).blocks(X, Z)
    assert blocks.shape == (4, 2, 2, 2)
    for a, left in enumerate([X @ S.T, X**2]):
        for b, right in enumerate([Z @ S.T, Z**2]):
            np.testing.assert_allclose(blocks[:, :, a, b], rbf_kernel(left, right, gamma=0.3))


def test_exponential_and_coordinate_kernels_by_definition(rng):
    X, Z, sigma = rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), 0.3 * random_psd(rng, 2, 1)
    exponential = TransformableKernel.exponential(sigma).blocks(X, Z)
    np.testing.assert_allclose(exponential, np.exp(np.multiply.outer(X @ Z.T, sigma)), rtol=1e-10)
    coordinates = TransformableKernel.coordinate_gaussian(3, gamma=0.7).blocks(X, Z)
    squares = (X[:, None, :, None] - Z[None, :, None, :]) ** 2  # (4, 2, 3, 3)
    np.testing.assert_allclose(coordinates, np.exp(-0.7 * squares), rtol=1e-10)


def test_transformable_but_not_separable():
    kernel = TransformableKernel("linear", [lambda X: X, lambda X: X**2])
    x, z = 2.0, -3.0
    block = kernel.blocks(np.array([[x]]), np.array([[z]]))[0, 0]
    np.testing.assert_allclose(block, [[x * z, x * z**2], [x**2 * z, x**2 * z**2]])
    values = gram_schmidt_values(kernel, np.array([[1.0], [2.0], [-0.5]]))
    assert values[1] > 1e-2 * values[0]


def test_separable_and_transformable():
    """K(x, z) = <x, z> 11^T: every output sees the same transformed point."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    transformable = TransformableKernel("linear", [np.eye(2)] * 3)
    separable = SeparableKernel("linear", np.ones((3, 3)))
    np.testing.assert_allclose(transformable.blocks(X), separable.blocks(X), atol=1e-12)
    values = gram_schmidt_values(transformable, X)
    assert values[1] < 1e-12 * values[0]


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="maps must be a list with one transformation per output"):
        TransformableKernel("rbf", [])
    with pytest.raises(ValueError, match="maps must be finite"):
        TransformableKernel("rbf", [np.full((2, 2), np.nan)])
    with pytest.raises(ValueError, match="sigma must be positive semidefinite, but has eigenvalue -1"):
        TransformableKernel.exponential(np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"maps\(X\) must be a matrix with one point per row"):
        TransformableKernel("rbf", [lambda X: X[:, 0]])(np.ones((3, 2)))
