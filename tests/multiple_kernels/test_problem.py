import numpy as np
import pytest

from entangled_kernels.multiple_kernels import KernelPart, learn_weights, reduce_kernels
from entangled_kernels.multiple_kernels.problem import compress_kernels


@pytest.fixture
def features(rng):
    return [rng.normal(size=(20, d)) + 1.0 for d in (2, 3, 1)]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_features_are_their_gram_matrices(features, rng, centred, normalized):
    """Compressed coordinates or not, the same fit comes out."""
    Y, w = rng.normal(size=(20, 2)) + 3.0, rng.uniform(0.5, 2.0, size=20)
    settings = {"centred": centred, "normalized": normalized}
    small = reduce_kernels([KernelPart(A, True) for A in features], Y, w, **settings)
    full = reduce_kernels([KernelPart(A @ A.T) for A in features], Y, w, **settings)
    mixed = reduce_kernels(
        [KernelPart(A @ A.T, False) for A in features[:2]] + [KernelPart(features[2], True)], Y, w, **settings
    )
    assert small.kernels.shape == (3, 6, 6)
    assert full.kernels.shape == mixed.kernels.shape == (3, 20, 20)
    results = [learn_weights(problem, 0.5, tol=1e-5) for problem in (small, full, mixed)]
    for other in results[1:]:
        assert other.value == pytest.approx(results[0].value, rel=1e-8)
        np.testing.assert_allclose(other.weights, results[0].weights, atol=1e-3)
        np.testing.assert_allclose(other.intercept, results[0].intercept, atol=1e-2)
    np.testing.assert_allclose(small.mean_k, full.mean_k)
    np.testing.assert_allclose(small.scales, full.scales)
    assert small.rest == pytest.approx(np.sum((full.Y - small.vectors @ (small.vectors.T @ full.Y)) ** 2))
    assert full.rest == 0.0


def test_parts_of_the_problem(features, rng):
    """Centred at the weighted mean, weighted by roots, scaled to a mean diagonal of one."""
    Y, w = rng.normal(size=(20, 2)), rng.uniform(0.5, 2.0, size=20)
    problem = reduce_kernels([KernelPart(A @ A.T) for A in features], Y, w, centred=True, normalized=True)
    H = np.eye(20) - np.outer(np.ones(20), w) / w.sum()
    root = np.diag(np.sqrt(w))
    for K, A, scale in zip(problem.kernels, features, problem.scales, strict=True):
        np.testing.assert_allclose(K * scale, root @ H @ A @ A.T @ H.T @ root, atol=1e-10)
        assert np.trace(K) == pytest.approx(w.sum())
    np.testing.assert_allclose(problem.Y, root @ H @ Y, atol=1e-12)
    np.testing.assert_allclose(problem.rows(problem.Y, 1.0), root @ problem.Y)


def test_a_kernel_that_is_constant(rng):
    """Nothing is left of it after centring, and it is not divided by zero."""
    problem = reduce_kernels(
        [KernelPart(np.ones((5, 5)))], rng.normal(size=(5, 1)), centred=True, normalized=True
    )
    assert problem.scales[0] == 1.0
    np.testing.assert_allclose(problem.kernels, 0.0, atol=1e-12)


@pytest.mark.parametrize("as_features", [True, False])
def test_compressed_to_what_kernels_can_reach(rng, as_features):
    """Gram matrices of rank 3 and 2 of 20 rows, the same features twice: the same fit from 3 coordinates."""
    A = rng.normal(size=(20, 3))
    Y, w = rng.normal(size=(20, 2)), rng.uniform(0.5, 2.0, size=20)
    parts = [KernelPart(B if as_features else B @ B.T, as_features) for B in (A, A[:, :2])]
    full = reduce_kernels(parts, Y, w, centred=True)
    small = compress_kernels(full)
    assert small.kernels.shape == (2, 3, 3)
    one, other = (learn_weights(problem, 0.5, tol=1e-6) for problem in (full, small))
    assert other.value == pytest.approx(one.value, rel=1e-9)
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-4)
    np.testing.assert_allclose(small.rows(small.targets, 1.0), full.rows(full.targets, 1.0), atol=1e-10)
    whole = reduce_kernels([KernelPart(np.eye(20))], Y)
    assert compress_kernels(whole) is whole
