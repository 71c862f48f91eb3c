"""Weights of kernels, their output kernels, and views, against the dense definition."""

import numpy as np
import pytest

from convex.problems import (
    draw_sizes,
    make_kernels,
    random_stack,
)
from entangled_kernels.convex import (
    KernelPart,
    OutputPenalty,
    embed_view,
    learn_diagonal,
    learn_multiview,
    learn_output_kernel,
    learn_separate,
    learn_shared,
    learn_weights,
    reduce_problem,
    view_coefficients,
)

from reference import multiple_kernels as reference
from reference import multiview


def problem_of(K, Y):
    return reduce_problem([KernelPart(k) for k in K], Y)


def draw(rng, largest=3600):
    """Gram matrices and targets whose block Gram matrix has at most so many rows, alpha from six decades."""
    n, p = draw_sizes(rng, largest)
    K, Y = make_kernels(rng, n, p, rng.integers(2, 6), linear=bool(rng.integers(2)))
    return K, Y, 10.0 ** rng.uniform(-4, 2)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
def test_weights_of_random_problems(norm, rng):
    """With the identity, one output kernel for all kernels, or one for each."""
    for number in range(12):
        K, Y, alpha = draw(rng, 200 if number % 9 else 1000)
        m, p = len(K), Y.shape[1]
        T = [None, random_stack(rng, 1, p)[0], random_stack(rng, m, p)][number % 3]
        result = learn_weights(problem_of(K, Y), alpha, norm=norm, output_kernel=T)
        bases = np.broadcast_to(np.eye(p) if T is None else T, (m, p, p))
        value, gap = reference.weights_gap(K, bases, Y, alpha, result.weights, norm)
        assert result.converged
        assert result.weights.min() >= 0.0
        assert np.sum(result.weights**norm) <= 1.0 + 1e-9
        assert result.value == pytest.approx(value)
        assert -1e-9 * value <= gap <= 1.001e-6 * value
        assert result.gap == pytest.approx(gap, abs=1e-8 * value)
        C = reference.ridge(K, result.T, Y, alpha)[0]
        np.testing.assert_allclose(result.C, C, rtol=1e-5, atol=1e-7)


def test_diagonal_of_random_problems(rng):
    """The gap of weights by output, and every output as if it were alone."""
    for _ in range(10):
        K, Y, alpha = draw(rng, 200)
        result = learn_diagonal(problem_of(K, Y), alpha)
        total = gaps = 0.0
        for s in range(Y.shape[1]):
            value, gap = reference.weights_gap(
                K, np.ones((len(K), 1, 1)), Y[:, [s]], alpha, result.weights[:, s], 1.0
            )
            total, gaps = total + value, gaps + gap
        assert result.value == pytest.approx(total)
        assert gaps <= 1.001e-6 * total
        alone = learn_weights(problem_of(K, Y[:, [0]]), alpha)
        np.testing.assert_array_equal(alone.weights, result.weights[:, 0])
        np.testing.assert_allclose(result.T[1], np.diag(result.weights[1]))


@pytest.mark.parametrize("norm", [1.0, 1.1, 1.5])
def test_own_of_random_problems(norm, rng):
    """The objective and the dual value of the witness, both from the dense definition."""
    for number in range(10):
        K, Y, alpha = draw(rng, 200 if number % 9 else 1000)
        result = learn_separate(problem_of(K, Y), alpha, norm=norm, max_iter=8000)
        value = reference.ridge(K, result.T, Y, alpha)[1]
        gap = value - reference.own_bound(K, Y, result.witness, alpha, norm)
        assert result.converged, (K.shape, Y.shape, alpha)
        assert result.value == pytest.approx(value)
        assert -1e-9 * value <= gap <= 1.001e-6 * value
        assert result.gap == pytest.approx(gap, abs=1e-8 * value)
        levels = np.linalg.eigvalsh(result.T)
        assert levels.min() >= -1e-10 * levels.max()
        assert np.sum(np.maximum(levels, 0.0) ** norm) <= Y.shape[1] * (1 + 1e-9)


def test_own_of_many_outputs_and_hardly_a_ridge(rng):
    """Three rows and 34 outputs: what is learned has at most three directions of the outputs."""
    K, Y = make_kernels(rng, 3, 34, 3)
    result = learn_separate(problem_of(K, Y), 1.3e-4)
    value = reference.ridge(K, result.T, Y, 1.3e-4)[1]
    assert value - reference.own_bound(K, Y, result.witness, 1.3e-4) <= 1.001e-6 * value
    assert np.linalg.matrix_rank(result.T.sum(axis=0), tol=1e-8) <= 3


def test_shared_of_random_problems(rng):
    """Neither the weights nor the output kernel can be bettered alone, by the dense definition."""
    for number in range(10):
        K, Y, alpha = draw(rng, 200 if number % 9 else 1000)
        p = Y.shape[1]
        result = learn_shared(problem_of(K, Y), alpha, max_iter=8000)
        d = result.weights
        L = result.T.sum(axis=0) / d.sum()
        value, gap = reference.weights_gap(K, np.tile(L, (len(K), 1, 1)), Y, alpha, d, 1.0)
        other, own = reference.own_gap(np.einsum("m,mnl->nl", d, K)[None], L[None], Y, alpha)
        assert value == pytest.approx(other)
        assert result.value == pytest.approx(value)
        assert max(gap, own) <= 1.001e-6 * value
        assert d.sum() == pytest.approx(1.0)
        assert np.trace(L) == pytest.approx(p)


def test_one_kernel_shared_and_own_are_the_trace_ball(rng):
    K, Y = make_kernels(rng, 12, 4, 1)
    ball = learn_output_kernel(
        reduce_problem(K[0], Y), 0.3, penalty=OutputPenalty("trace", True), tol=1e-5
    )
    for learn in (learn_shared, learn_separate):
        result = learn(problem_of(K, Y), 0.3, tol=1e-5, max_iter=5000)
        assert result.value == pytest.approx(ball.value, rel=1e-8)
        np.testing.assert_allclose(result.T[0], ball.L, atol=1e-3)
        np.testing.assert_allclose(result.weights, 1.0)


def test_one_output_is_scalar_multiple_kernel_learning(rng):
    K, Y = make_kernels(rng, 15, 1, 4)
    plain = learn_weights(problem_of(K, Y), 0.3, tol=1e-5)
    for learn in (learn_diagonal, learn_separate, learn_shared):
        other = learn(problem_of(K, Y), 0.3, tol=1e-5, max_iter=5000)
        assert other.value == pytest.approx(plain.value, rel=1e-8)
        np.testing.assert_allclose(other.T.ravel(), plain.weights, atol=1e-3)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_published_alternation_reaches_no_lower_objective(norm, rng):
    K, Y = make_kernels(rng, 20, 3, 5)
    result = learn_weights(problem_of(K, Y), 0.2, norm=norm)
    d = reference.alternation(K, Y, 0.2, norm, 200)
    bases = np.tile(np.eye(3), (5, 1, 1))
    value, gap = reference.weights_gap(K, bases, Y, 0.2, d, norm)
    assert result.value <= value * (1 + 1e-6)
    assert value - result.value <= gap + 1e-9 * value


def test_blocks_in_turn_reach_no_lower_objective(rng):
    """The published alternation of weights and a shared output kernel, from the same start."""
    for alpha in (0.03, 0.3, 3.0):
        K, Y = make_kernels(rng, 20, 4, 5)
        ours = learn_shared(problem_of(K, Y), alpha)
        before = np.inf
        for steps in (1, 10, 200):
            value = reference.shared_value(
                K, Y, alpha, *reference.shared_alternation(K, Y, alpha, steps)
            )
            assert value >= ours.value * (1 - 1e-6)
            assert value <= before * (1 + 1e-9)
            before = value
        assert value <= ours.value * 1.01


def test_many_rows_start_from_some_of_them(rng):
    K, Y = make_kernels(rng, 520, 1, 2)
    result = learn_weights(problem_of(K, Y), 0.3)
    value, gap = reference.weights_gap(K, np.ones((2, 1, 1)), Y, 0.3, result.weights, 1.0)
    assert result.converged
    assert result.value == pytest.approx(value)
    assert gap <= 1.001e-6 * value


SIZES = (2, 3, 2)
ALPHA, ETA = 0.4, 0.7


@pytest.fixture
def features(rng):
    return [rng.normal(size=(25, size)) for size in SIZES]


def learn_views(features, Y, **settings):
    problem = reduce_problem([KernelPart(U @ U.T) for U in features], Y)
    return learn_multiview(problem, ALPHA, ETA, tol=1e-6, max_iter=5000, **settings)


def coefficients(features, result):
    """g = (U_v^T C T_v)_v, (D, p)."""
    return np.vstack([U.T @ result.C @ T for U, T in zip(features, result.T, strict=True)])


def test_one_target_is_ridge_on_all_features(features, rng):
    """With the ridge alpha (2 eta / (alpha |g|^2))^(1/3)."""
    U = np.hstack(features)
    Y = features[0][:, :1] + 0.3 * rng.normal(size=(25, 1))
    g = coefficients(features, learn_views(features, Y))
    rho = ALPHA * np.cbrt(2 * ETA / (ALPHA * np.sum(g**2)))
    ridge = np.linalg.solve(U.T @ U + rho * np.eye(7), U.T @ Y)
    np.testing.assert_allclose(g, ridge, atol=1e-6 * np.abs(ridge).max())


@pytest.mark.parametrize("p", [1, 4])
def test_targets_sharing_a_metric_are_output_kernel_learning(features, rng, p):
    """The published objective at the best metric is twice the value times the ridge."""
    U = np.hstack(features)
    Y = features[0] @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(25, p))
    result = learn_views(features, Y)
    g = coefficients(features, result)
    A = multiview.best_metric(g, SIZES, ALPHA, ETA)
    value = multiview.objective(U, SIZES, Y, g, A, ALPHA, ETA)
    assert value == pytest.approx(2 * np.cbrt(ETA * ALPHA**2) * result.value, rel=1e-6)
    loop_g, loop_A = multiview.loop(U, SIZES, Y, ALPHA, ETA, 300)
    assert multiview.objective(U, SIZES, Y, loop_g, loop_A, ALPHA, ETA) >= value * (1 - 1e-9)
    for _ in range(20):
        other = g + 0.05 * rng.normal(size=g.shape)
        B = rng.normal(size=(7, 7))
        near = A + 0.01 * B @ B.T
        assert multiview.objective(U, SIZES, Y, other, near, ALPHA, ETA) > value


def test_sparse_is_multiple_kernel_learning(features, rng):
    """2 sqrt(alpha eta) sum |g_v|, by proximal gradient, and the metric that it comes from."""
    U = np.hstack(features)
    Y = features[0][:, :1] + 0.3 * rng.normal(size=(25, 1))
    result = learn_views(features, Y, sparse=True)
    g = coefficients(features, result)
    penalty = 2 * np.sqrt(ALPHA * ETA)
    slow = multiview.group_lasso(U, SIZES, Y[:, 0], penalty, 20_000)
    np.testing.assert_allclose(g[:, 0], slow, atol=1e-4)
    norms = [np.linalg.norm(g[part]) for part in multiview.blocks(SIZES)]
    value = np.sum((Y - U @ g) ** 2) + penalty * sum(norms)
    assert value == pytest.approx(2 * np.sqrt(ALPHA * ETA) * result.value, rel=1e-6)
    A = multiview.best_metric(g, SIZES, ALPHA, ETA, sparse=True)
    assert multiview.objective(U, SIZES, Y, g, A, ALPHA, ETA, sparse=True) == pytest.approx(
        value, rel=1e-6
    )
    for _ in range(10):
        B = rng.normal(size=(7, 7))
        other = A + 10.0 ** rng.uniform(-4, 0) * B @ B.T
        assert multiview.objective(U, SIZES, Y, g, other, ALPHA, ETA, sparse=True) > value


@pytest.mark.parametrize("sparse", [False, True])
def test_views_of_random_problems(sparse, rng):
    """The gap from the dense definition, on centred views; two of the problems may have 3600 rows."""
    for number in range(10):
        n, p = draw_sizes(rng, largest=400 if number % 9 else 3600)
        parts = [rng.normal(size=(n, 3)) for _ in range(rng.integers(1, 5))]
        Y = parts[0] @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))
        alpha, eta = 10.0 ** rng.uniform(-4, 2, size=2)
        problem = reduce_problem([KernelPart(U, True) for U in parts], Y, centred=True)
        result = learn_multiview(problem, alpha, eta, sparse=sparse, max_iter=5000)
        centred = [U - U.mean(axis=0) for U in parts]
        K = np.stack([U @ U.T for U in centred])
        value, gap = multiview.gap(
            K, Y - Y.mean(axis=0), alpha, eta, result.T, result.weights, sparse
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
