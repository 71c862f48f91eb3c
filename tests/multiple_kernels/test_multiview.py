"""The three equalities between multi-view metric learning and convex problems."""

import numpy as np
import pytest

from entangled_kernels.multiple_kernels import (
    KernelPart,
    embed_view,
    learn_multiview,
    reduce_kernels,
    view_coefficients,
)
from multiple_kernels.problems import draw_sizes

from reference import multiview as reference

SIZES = (2, 3, 2)
ALPHA, ETA = 0.4, 0.7


@pytest.fixture
def features(rng):
    return [rng.normal(size=(25, size)) for size in SIZES]


def learn(features, Y, **settings):
    problem = reduce_kernels([KernelPart(U @ U.T) for U in features], Y)
    return learn_multiview(problem, ALPHA, ETA, tol=1e-6, max_iter=5000, **settings)


def coefficients(features, result):
    """g = (U_v^T C T_v)_v, (D, p)."""
    return np.vstack([U.T @ result.C @ T for U, T in zip(features, result.output_kernels, strict=True)])


def test_one_target_is_ridge_on_all_features(features, rng):
    """With the ridge alpha (2 eta / (alpha |g|^2))^(1/3)."""
    U = np.hstack(features)
    Y = features[0][:, :1] + 0.3 * rng.normal(size=(25, 1))
    g = coefficients(features, learn(features, Y))
    rho = ALPHA * np.cbrt(2 * ETA / (ALPHA * np.sum(g**2)))
    ridge = np.linalg.solve(U.T @ U + rho * np.eye(7), U.T @ Y)
    np.testing.assert_allclose(g, ridge, atol=1e-6 * np.abs(ridge).max())


@pytest.mark.parametrize("p", [1, 4])
def test_targets_sharing_a_metric_are_output_kernel_learning(features, rng, p):
    """The published objective at the best metric is twice the value times the ridge."""
    U = np.hstack(features)
    Y = features[0] @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(25, p))
    result = learn(features, Y)
    g = coefficients(features, result)
    A = reference.best_metric(g, SIZES, ALPHA, ETA)
    value = reference.objective(U, SIZES, Y, g, A, ALPHA, ETA)
    assert value == pytest.approx(2 * np.cbrt(ETA * ALPHA**2) * result.value, rel=1e-6)
    loop_g, loop_A = reference.loop(U, SIZES, Y, ALPHA, ETA, 300)
    assert reference.objective(U, SIZES, Y, loop_g, loop_A, ALPHA, ETA) >= value * (1 - 1e-9)
    for _ in range(20):
        other = g + 0.05 * rng.normal(size=g.shape)
        B = rng.normal(size=(7, 7))
        near = A + 0.01 * B @ B.T
        assert reference.objective(U, SIZES, Y, other, near, ALPHA, ETA) > value


def test_sparse_is_multiple_kernel_learning(features, rng):
    """2 sqrt(alpha eta) sum |g_v|, by proximal gradient, and the metric that it comes from."""
    U = np.hstack(features)
    Y = features[0][:, :1] + 0.3 * rng.normal(size=(25, 1))
    result = learn(features, Y, sparse=True)
    g = coefficients(features, result)
    penalty = 2 * np.sqrt(ALPHA * ETA)
    slow = reference.group_lasso(U, SIZES, Y[:, 0], penalty, 20_000)
    np.testing.assert_allclose(g[:, 0], slow, atol=1e-4)
    norms = [np.linalg.norm(g[part]) for part in reference.blocks(SIZES)]
    value = np.sum((Y - U @ g) ** 2) + penalty * sum(norms)
    assert value == pytest.approx(2 * np.sqrt(ALPHA * ETA) * result.value, rel=1e-6)
    A = reference.best_metric(g, SIZES, ALPHA, ETA, sparse=True)
    assert reference.objective(U, SIZES, Y, g, A, ALPHA, ETA, sparse=True) == pytest.approx(value, rel=1e-6)
    for _ in range(50):
        B = rng.normal(size=(7, 7))
        other = A + 10.0 ** rng.uniform(-4, 0) * B @ B.T
        assert reference.objective(U, SIZES, Y, g, other, ALPHA, ETA, sparse=True) > value


@pytest.mark.parametrize("sparse", [False, True])
def test_fifty_random_problems(sparse, rng):
    """The gap from the dense definition, on centred views; two of the problems may have 3600 rows."""
    for number in range(50):
        n, p = draw_sizes(rng, largest=400 if number % 25 else 3600)
        parts = [rng.normal(size=(n, 3)) for _ in range(rng.integers(1, 5))]
        Y = parts[0] @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))
        alpha, eta = 10.0 ** rng.uniform(-4, 2, size=2)
        problem = reduce_kernels([KernelPart(U, True) for U in parts], Y, centred=True)
        result = learn_multiview(problem, alpha, eta, sparse=sparse, max_iter=5000)
        centred = [U - U.mean(axis=0) for U in parts]
        K = np.stack([U @ U.T for U in centred])
        value, gap = reference.gap(
            K, Y - Y.mean(axis=0), alpha, eta, result.output_kernels, result.weights, sparse
        )
        assert result.converged
        assert result.value == pytest.approx(value)
        assert -1e-9 * value <= gap <= 1.001e-6 * value
        assert result.gap == pytest.approx(gap, abs=1e-8 * value)


@pytest.mark.parametrize("centred", [False, True])
def test_views_on_all_rows(rng, centred):
    """Features and Gram matrices alike: centred where present, zero elsewhere; what they add to new rows."""
    present, w = np.arange(9) % 3 > 0, rng.uniform(0.5, 2.0, size=9)
    Phi, new, C = rng.normal(size=(6, 2)), rng.normal(size=(4, 2)), rng.normal(size=(6, 3))
    mean = w[present] @ Phi / w[present].sum() if centred else np.zeros(2)
    by_features, by_gram = KernelPart(Phi, True), KernelPart(Phi @ Phi.T)
    features, share = embed_view(by_features, present, w, centred=centred)
    gram, same = embed_view(by_gram, present, w, centred=centred)
    np.testing.assert_allclose(features.matrix[present], Phi - mean)
    assert not features.matrix[~present].any()
    np.testing.assert_allclose(gram.matrix, features.matrix @ features.matrix.T, atol=1e-12)
    np.testing.assert_array_equal(share, same)
    expected = (new - mean) @ (Phi - mean).T @ C
    for part, known in ((by_features, new), (by_gram, new @ Phi.T)):
        coef, offset = view_coefficients(part, share, C)
        np.testing.assert_allclose(known @ coef + offset, expected, atol=1e-12)
