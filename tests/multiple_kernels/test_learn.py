import numpy as np
import pytest

import entangled_kernels.multiple_kernels.learn as module
from entangled_kernels.multiple_kernels import (
    KernelPart,
    learn_diagonal,
    learn_listed,
    learn_own,
    learn_shared,
    learn_weights,
    reduce_kernels,
)
from entangled_kernels.output_kernel import OutputPenalty, learn_penalised, reduce_problem
from multiple_kernels.problems import draw_sizes, make_kernels, random_stack

from reference import multiple_kernels as reference


def problem_of(K, Y):
    return reduce_kernels([KernelPart(k) for k in K], Y)


def draw(rng, largest=3600):
    """Gram matrices and targets whose block Gram matrix has at most so many rows, alpha from six decades."""
    n, p = draw_sizes(rng, largest)
    K, Y = make_kernels(rng, n, p, rng.integers(2, 6), linear=bool(rng.integers(2)))
    return K, Y, 10.0 ** rng.uniform(-4, 2)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
def test_weights_of_fifty_random_problems(norm, rng):
    for number in range(50):
        K, Y, alpha = draw(rng, 400 if number % 10 else 3600)
        T = None if number % 2 else random_stack(rng, 1, Y.shape[1])[0]
        result = learn_weights(problem_of(K, Y), alpha, norm=norm, output_kernel=T)
        bases = np.tile(np.eye(Y.shape[1]) if T is None else T, (len(K), 1, 1))
        value, gap = reference.weights_gap(K, bases, Y, alpha, result.weights, norm)
        assert result.converged
        assert result.weights.min() >= 0.0
        assert np.sum(result.weights**norm) <= 1.0 + 1e-9
        assert result.value == pytest.approx(value)
        assert -1e-9 * value <= gap <= 1.001e-6 * value
        assert result.gap == pytest.approx(gap, abs=1e-8 * value)
        C = reference.ridge(K, result.output_kernels, Y, alpha)[0]
        np.testing.assert_allclose(result.C, C, rtol=1e-5, atol=1e-7)


def test_diagonal_of_fifty_random_problems(rng):
    """The gap of weights by output, and every output as if it were alone."""
    for _ in range(50):
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
        np.testing.assert_allclose(result.output_kernels[1], np.diag(result.weights[1]))


def test_listed_of_fifty_random_problems(rng):
    for number in range(50):
        K, Y, alpha = draw(rng, 200 if number % 25 else 1000)
        bases = random_stack(rng, len(K), Y.shape[1])
        result = learn_listed(problem_of(K, Y), alpha, bases)
        value, gap = reference.weights_gap(K, bases, Y, alpha, result.weights, 1.0)
        assert gap <= 1.001e-6 * value
        assert result.value == pytest.approx(value)


@pytest.mark.parametrize("norm", [1.0, 1.1, 1.5])
def test_own_of_fifty_random_problems(norm, rng):
    """The objective and the dual value of the witness, both from the dense definition."""
    for number in range(50):
        K, Y, alpha = draw(rng, 200 if number % 25 else 1000)
        result = learn_own(problem_of(K, Y), alpha, norm=norm, max_iter=8000)
        value = reference.ridge(K, result.output_kernels, Y, alpha)[1]
        gap = value - reference.own_bound(K, Y, result.witness, alpha, norm)
        assert result.converged, (K.shape, Y.shape, alpha)
        assert result.value == pytest.approx(value)
        assert -1e-9 * value <= gap <= 1.001e-6 * value
        assert result.gap == pytest.approx(gap, abs=1e-8 * value)
        levels = np.linalg.eigvalsh(result.output_kernels)
        assert levels.min() >= -1e-10 * levels.max()
        assert np.sum(np.maximum(levels, 0.0) ** norm) <= Y.shape[1] * (1 + 1e-9)


def test_own_of_many_outputs_and_hardly_a_ridge(rng):
    """Three rows and 34 outputs: what is learned has at most three directions of the outputs."""
    K, Y = make_kernels(rng, 3, 34, 3)
    result = learn_own(problem_of(K, Y), 1.3e-4)
    value = reference.ridge(K, result.output_kernels, Y, 1.3e-4)[1]
    assert value - reference.own_bound(K, Y, result.witness, 1.3e-4) <= 1.001e-6 * value
    assert np.linalg.matrix_rank(result.output_kernels.sum(axis=0), tol=1e-8) <= 3


def test_shared_of_fifty_random_problems(rng):
    """Neither the weights nor the output kernel can be bettered alone, by the dense definition."""
    for number in range(50):
        K, Y, alpha = draw(rng, 200 if number % 25 else 1000)
        p = Y.shape[1]
        result = learn_shared(problem_of(K, Y), alpha, max_iter=8000)
        d = result.weights
        L = result.output_kernels.sum(axis=0) / d.sum()
        value, gap = reference.weights_gap(K, np.tile(L, (len(K), 1, 1)), Y, alpha, d, 1.0)
        other, own = reference.own_gap(np.einsum("m,mnl->nl", d, K)[None], L[None], Y, alpha)
        assert value == pytest.approx(other)
        assert result.value == pytest.approx(value)
        assert max(gap, own) <= 1.001e-6 * value
        assert d.sum() == pytest.approx(1.0)
        assert np.trace(L) == pytest.approx(p)


def test_one_kernel_shared_and_own_are_the_trace_ball(rng):
    K, Y = make_kernels(rng, 12, 4, 1)
    ball = learn_penalised(reduce_problem(K[0], Y), 0.3, OutputPenalty("trace", True), tol=1e-5)
    for learn in (learn_shared, learn_own):
        result = learn(problem_of(K, Y), 0.3, tol=1e-5, max_iter=5000)
        assert result.value == pytest.approx(ball.value, rel=1e-8)
        np.testing.assert_allclose(result.output_kernels[0], ball.L, atol=1e-3)
        np.testing.assert_allclose(result.weights, 1.0)


def test_one_output_is_scalar_multiple_kernel_learning(rng):
    K, Y = make_kernels(rng, 15, 1, 4)
    plain = learn_weights(problem_of(K, Y), 0.3, tol=1e-5)
    for learn in (learn_diagonal, learn_own, learn_shared):
        other = learn(problem_of(K, Y), 0.3, tol=1e-5, max_iter=5000)
        assert other.value == pytest.approx(plain.value, rel=1e-8)
        np.testing.assert_allclose(other.output_kernels.ravel(), plain.weights, atol=1e-3)


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
            value = reference.shared_value(K, Y, alpha, *reference.shared_alternation(K, Y, alpha, steps))
            assert value >= ours.value * (1 - 1e-6)
            assert value <= before * (1 + 1e-9)
            before = value
        assert value <= ours.value * 1.01


def test_a_first_look_at_some_rows_changes_nothing(rng, monkeypatch):
    K, Y = make_kernels(rng, 60, 2, 4)
    plain = learn_weights(problem_of(K, Y), 0.3, tol=1e-5)
    monkeypatch.setattr(module, "MANY", 30)
    monkeypatch.setattr(module, "FEW", 20)
    looked = learn_weights(problem_of(K, Y), 0.3, tol=1e-5)
    np.testing.assert_allclose(looked.weights, plain.weights, atol=1e-3)
    assert looked.value == pytest.approx(plain.value, rel=1e-8)


def test_steps_run_out(rng):
    K, Y = make_kernels(rng, 20, 3, 4)
    for learn in (learn_weights, learn_own, learn_shared):
        result = learn(problem_of(K, Y), 1e-3, max_iter=2, tol=1e-8)
        assert (result.converged, result.reason) == (False, "max_iter")
