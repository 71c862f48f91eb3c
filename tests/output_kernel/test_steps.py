from types import SimpleNamespace

import numpy as np
import pytest

from entangled_kernels.output_kernel import learn_output_kernel, reduce_problem
from entangled_kernels.output_kernel.reduced import Reduced
from entangled_kernels.output_kernel.steps import descend, factor_gap, factor_step, newton_gap, newton_step
from output_kernel.problems import ALPHAS, make_problem, output_matrix

from reference import output_kernel as reference


@pytest.fixture
def case(rng):
    """A Gram matrix, targets of three outputs and their problem."""
    K, Y = make_problem(rng, 12, 3)
    return K, Y, reduce_problem(K, Y)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_newton_gap_is_the_relative_norm_of_the_gradient(case, rng, alpha):
    K, Y, problem = case
    reduced = Reduced.of(problem, alpha, None)
    point = reduced.point_from(np.diag([0.5, 1.0, 2.0]))
    L = output_matrix(problem, point)
    C = reference.sylvester(K, Y, L, alpha)
    gradient = L - C.T @ K @ C / 2
    D = rng.normal(size=(3, 3))
    slope = reference.directional_derivative(
        lambda L: reference.reduced_objective(K, Y, L, alpha), L, D + D.T, 1e-4
    )
    assert slope == pytest.approx(np.sum(gradient * (D + D.T)), rel=1e-4)
    assert newton_gap(reduced, point) == pytest.approx(np.linalg.norm(gradient) / np.linalg.norm(L))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_factor_gap_is_the_norm_of_the_gradient_in_the_factor(case, alpha, rank):
    K, Y, problem = case
    reduced = Reduced.of(problem, alpha, rank)
    point = reduced.point_from(np.diag([0.5, 1.0, 2.0]))
    B = problem.outputs @ point.V * np.sqrt(point.levels)
    gradient = np.empty_like(B)
    for place in np.ndindex(B.shape):
        E = np.zeros_like(B)
        E[place] = 1.0
        gradient[place] = reference.directional_derivative(
            lambda B: reference.reduced_objective(K, Y, B @ B.T, alpha, rank), B, E
        )
    expected = np.linalg.norm(gradient) * np.linalg.norm(B) / point.value
    assert factor_gap(reduced, point) == pytest.approx(expected, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
def test_newton_steps_lower_the_objective_and_stay_psd(case, alpha, start):
    K, Y, problem = case
    reduced = Reduced.of(problem, alpha, None)
    point = reduced.point_from(start * np.eye(3))
    for _ in range(5):
        following = newton_step(reduced, point)
        assert following.value <= point.value * (1 + 1e-14)
        assert following.levels.min() > 0
        L = output_matrix(problem, following)
        assert following.value == pytest.approx(reference.reduced_objective(K, Y, L, alpha), rel=1e-9)
        point = following


@pytest.mark.parametrize("alpha", ALPHAS)
def test_newton_steps_converge_faster_than_linearly(case, alpha):
    problem = case[2]
    reduced = Reduced.of(problem, alpha, None)
    best = learn_output_kernel(problem, alpha, tol=1e-11).L
    point = reduced.point_from(1.01 * problem.outputs.T @ best @ problem.outputs)
    gaps = [newton_gap(reduced, point)]
    for _ in range(2):
        point = newton_step(reduced, point)
        gaps.append(newton_gap(reduced, point))
    assert gaps[1] < 0.05 * gaps[0]
    assert gaps[2] < 1e-3 * gaps[1]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_factor_step_is_the_best_factor_and_then_the_balance(case, alpha, rank):
    """With Z = C B for L = B B^T: B (F^T F + alpha I) = Y^T F for F = K Z, then (B Z^T K Z B^T)^1/2."""
    K, Y, problem = case
    reduced = Reduced.of(problem, alpha, rank)
    point = reduced.point_from(np.diag([0.5, 1.0, 2.0]))
    before = problem.outputs @ point.V * np.sqrt(point.levels)
    Z = reference.sylvester(K, Y, before @ before.T, alpha) @ before
    F = K @ Z
    B = np.linalg.solve(F.T @ F + alpha * np.eye(rank), F.T @ Y).T
    following = factor_step(reduced, point)
    squares, V = np.linalg.eigh(B @ Z.T @ K @ Z @ B.T)
    expected = (V * np.sqrt(np.maximum(squares, 0.0))) @ V.T
    L = output_matrix(problem, following)
    np.testing.assert_allclose(L, expected, atol=1e-7 * np.abs(expected).max())
    assert following.value <= point.value * (1 + 1e-14)
    assert len(following.levels) == rank


@pytest.mark.parametrize("rank", [None, 2])
def test_steps_that_lead_nowhere(rng, rank):
    """A tolerance that double precision cannot reach ends the iteration, at the minimum all the same."""
    problem = reduce_problem(*make_problem(rng, 20, 5))
    result = learn_output_kernel(problem, 0.1, rank=rank, tol=0.0, max_iter=5000)
    assert (result.reason, result.converged) == ("stalled", False)
    assert result.n_iter < 500
    reached = learn_output_kernel(problem, 0.1, rank=rank, tol=1e-9).value
    assert result.value == pytest.approx(reached, rel=1e-12)


def test_steps_that_run_out(rng):
    problem = reduce_problem(*make_problem(rng, 20, 5))
    short = learn_output_kernel(problem, 0.1, max_iter=1, tol=1e-12)
    assert (short.reason, short.converged, short.n_iter) == ("max_iter", False, 1)
    low = learn_output_kernel(problem, 0.1, rank=2, max_iter=1, tol=1e-12)
    assert (low.reason, low.converged, low.n_iter) == ("max_iter", False, 1)


def descend_through(values, gaps, *, tol=0.1, max_iter=10):
    """Descent over points of given objectives and gaps; None in place of a step that finds nothing."""
    points = [value and SimpleNamespace(value=value, place=place) for place, value in enumerate(values)]
    point, history, reason = descend(
        None,
        points[0],
        lambda _, point: points[point.place + 1],
        lambda _, point: gaps[point.place],
        max_iter,
        tol,
    )
    return point.place, history, reason


def test_descent_ends_for_a_reason():
    assert descend_through([3.0, 2.0, 1.0], [1.0, 0.5, 0.05]) == (2, [3.0, 2.0, 1.0], "tolerance")
    assert descend_through([3.0, 2.0, 1.0], [1.0, 0.5, 0.4], max_iter=2) == (2, [3.0, 2.0, 1.0], "max_iter")
    assert descend_through([3.0, None], [1.0]) == (0, [3.0], "stalled")
    assert descend_through([3.0, None], [0.05]) == (0, [3.0], "tolerance")


def test_descent_takes_no_step_up_but_by_rounding():
    assert descend_through([3.0, 3.1], [1.0, 0.05]) == (0, [3.0], "stalled")
    rounded = np.nextafter(3.0, 4.0)
    assert descend_through([3.0, rounded], [1.0, 0.05]) == (1, [3.0, 3.0], "tolerance")
    assert descend_through([3.0, rounded, 2.0], [1.0, 1.0, 0.05]) == (1, [3.0, 3.0], "stalled")
