import numpy as np
import pytest

from entangled_kernels.learning.kernel import LearnedKernel


def dense(kernel, p):
    """D of a kernel whose outputs are not reduced."""
    m, k, r = kernel.Q.shape
    Q = kernel.Q.reshape(m * k, r)
    D = kernel.identity * np.eye(m * p) + Q @ Q.T
    return D + np.kron(kernel.L @ kernel.L.T, np.eye(p))


@pytest.fixture(params=[(0.0, False, 3), (0.4, False, 2), (0.0, True, 0), (0.3, True, 1)])
def kernel(request, rng):
    identity, with_metric, r = request.param
    return LearnedKernel(identity, rng.normal(size=(4, 2 * with_metric)), rng.normal(size=(4, 3, r)))


def test_gram_trace(kernel, rng):
    scale = rng.uniform(1, 2, size=4)
    expected = np.trace(np.kron(np.diag(scale), np.eye(3)) @ dense(kernel, 3))
    assert kernel.gram_trace(scale, 3) == pytest.approx(expected)


def test_scaled(kernel):
    np.testing.assert_allclose(dense(kernel.scaled(2.5), 3), 2.5 * dense(kernel, 3))


def test_shrunk(kernel):
    expected = 0.3 * np.eye(12) / 12 + 0.7 * dense(kernel, 3)
    np.testing.assert_allclose(dense(kernel.shrunk(0.3, 4, 3), 3), expected)
    plain = kernel.shrunk(1.0, 4, 3)
    np.testing.assert_allclose(dense(plain, 3), np.eye(12) / 12)
    assert plain.L.shape == (4, 0)
    assert plain.Q.shape == (4, 3, 0)


def test_partial_trace(kernel):
    traced = np.einsum("aobo->ab", dense(kernel, 3).reshape(4, 3, 4, 3))
    np.testing.assert_allclose(dense(kernel.partial_trace(3), 3), np.kron(traced / 3, np.eye(3)), atol=1e-12)


def test_canonical_operators(kernel, rng):
    targets = rng.normal(size=(4, 3))
    canonical = kernel.canonical(targets)
    np.testing.assert_allclose(dense(canonical, 3), dense(kernel, 3), atol=1e-12)
    Q = canonical.Q.reshape(12, -1)
    norms = np.linalg.norm(Q, axis=0)
    np.testing.assert_allclose(Q.T @ Q, np.diag(norms**2), atol=1e-12)
    assert (np.diff(norms) <= 0).all()
    assert (targets.reshape(-1) @ Q >= 0).all()


def test_canonical_does_not_depend_on_the_factor(rng):
    Q, targets = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    one, other = (LearnedKernel.from_operators(factor).canonical(targets).Q for factor in (Q, Q @ rotation))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_partial_trace_keeps_no_more_columns_than_its_rank(rng):
    W = rng.normal(size=(6, 2))
    kernel = LearnedKernel(0.1, 0.5 * W, W[:, :, None])
    assert kernel.partial_trace(2).L.shape == (6, 2)
    assert LearnedKernel.from_operators(rng.normal(size=(4, 3, 5))).partial_trace(3).L.shape == (4, 4)
