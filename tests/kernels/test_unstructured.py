"""Partial traces, transformed points and vector fields."""

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.kernels import (
    CurlFreeKernel,
    DivergenceFreeKernel,
    PartialTraceKernel,
    SeparableKernel,
    TransformableKernel,
    unstructured,
)
from entangled_kernels.linalg import operator_schmidt
from kernels.draws import random_psd

from reference import blocks as reference


def lopsided(Phi, Psi):
    """Operators on two outputs and three traced dimensions."""
    A = np.arange(36.0).reshape(6, 6)
    return np.multiply.outer(Phi @ Psi.T, A) + np.multiply.outer(
        Phi**2 @ Psi.T, A.T
    )  # (n, t, 6, 6)


@pytest.mark.parametrize("numbers", [1, 2**22], ids=["one_row_at_a_time", "one_chunk"])
def test_blocks_are_partial_traces_of_the_operator(rng, monkeypatch, numbers):
    monkeypatch.setattr(unstructured, "CHUNK_NUMBERS", numbers)
    X, Z = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    blocks = PartialTraceKernel(lopsided, n_outputs=2).blocks(X, Z)
    P = lopsided(X, Z)
    for i, j in np.ndindex(5, 3):
        np.testing.assert_allclose(blocks[i, j], reference.partial_trace(P[i, j], (2, 3), 0))


def test_operator_sees_the_features(rng):
    X = rng.normal(size=(5, 4))
    features = Nystroem(n_components=3, random_state=0).fit(X)
    mapped = PartialTraceKernel(lopsided, n_outputs=2, feature_map=features)
    plain = PartialTraceKernel(lopsided, n_outputs=2)
    np.testing.assert_allclose(mapped.blocks(X), plain.blocks(features.transform(X)))
    np.testing.assert_allclose(mapped.diag(X), plain.diag(features.transform(X)))


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


def gaussian_hessian(delta, gamma, step=1e-3):
    """Hessian of exp(-gamma |delta|^2) by central differences."""
    units = step * np.eye(len(delta))

    def second(u, v):
        ends = [
            a * b * np.exp(-gamma * np.sum((delta + a * u + b * v) ** 2))
            for a in (1, -1)
            for b in (1, -1)
        ]
        return sum(ends) / (4 * step**2)

    return np.array([[second(u, v) for v in units] for u in units])


@pytest.mark.parametrize("p", [2, 3])
def test_derivatives_of_the_gaussian(p, rng):
    """Minus the Hessian, and the Hessian less its trace."""
    x, z = rng.normal(size=(2, p))
    H = gaussian_hessian(x - z, 0.6)
    curl = CurlFreeKernel(p, 0.6).blocks(x[None], z[None])[0, 0]
    divergence = DivergenceFreeKernel(p, 0.6).blocks(x[None], z[None])[0, 0]
    np.testing.assert_allclose(curl, -H, atol=1e-5)
    np.testing.assert_allclose(divergence, H - np.trace(H) * np.eye(p), atol=1e-5)


def jacobian(function, x, step=1e-4):
    return np.stack(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))],
        axis=1,
    )


def test_fields_have_no_curl_or_no_divergence(rng):
    """Random fields of the space, by differences: a symmetric Jacobian, or one without a trace."""
    centres, c = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    for kernel in (CurlFreeKernel(3, 0.5), DivergenceFreeKernel(3, 0.5)):

        def field(x, kernel=kernel):
            return np.einsum("jpq,jq->p", kernel.blocks(x[None], centres)[0], c)

        J = jacobian(field, rng.normal(size=3))
        off = J - J.T if isinstance(kernel, CurlFreeKernel) else np.trace(J)
        assert np.abs(off).max() <= 1e-6 * np.abs(J).max()
        other = np.trace(J) if isinstance(kernel, CurlFreeKernel) else J - J.T
        assert np.abs(other).max() > 1e-2 * np.abs(J).max()
