import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.output_kernel import reduce_problem
from entangled_kernels.output_kernel.reduced import Reduced
from output_kernel.problems import ALPHAS, make_problem, output_matrix, problems

from reference import output_kernel as reference

SHAPES = [(12, 3, None), (12, 3, 2), (5, 8, None)]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("rank", [None, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_point_by_definition(rng, alpha, rank, shape):
    """Its objective, its dual coefficients C in both bases, and S = C^T K C in that of L."""
    K, Y = make_problem(rng, *shape)
    problem = reduce_problem(K, Y)
    k = problem.targets.shape[1]
    V = np.linalg.qr(rng.normal(size=(k, k)))[0][:, :rank]
    point = Reduced.of(problem, alpha, rank).evaluate(rng.uniform(0.1, 2.0, size=V.shape[1]), V)
    L = output_matrix(problem, point)
    assert point.value == pytest.approx(reference.reduced_objective(K, Y, L, alpha, rank), rel=1e-10)
    C = reference.sylvester(K, Y, L, alpha)
    CV = C @ problem.outputs @ V
    np.testing.assert_allclose(point.Z, problem.vectors.T @ CV, atol=1e-9 * np.abs(CV).max())
    np.testing.assert_allclose(point.S, CV.T @ K @ CV, atol=1e-9 * np.abs(point.S).max())


@pytest.mark.parametrize("rank", [None, 3])
@given(square=st.floats(1e-6, 1e6), factor=st.sampled_from([0.5, 0.99, 1.01, 2.0]))
def test_best_levels_minimise_fit_and_penalty(square, rank, factor):
    """square / (2 level) + penalty, which is level^2 / 2 or level / 2."""
    reduced = Reduced(np.ones(1), np.ones((1, 1)), 1.0, rank, 0.0)

    def objective(level):
        return square / (2 * level) + reduced.penalty(np.array([level]))

    level = reduced.best_levels(np.array([square])).item()
    assert objective(level) < objective(factor * level)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_first_point_beats_no_model_at_all(case):
    K, Y, alpha, rank = case
    problem = reduce_problem(K, Y)
    k = problem.targets.shape[1]
    rank = None if rank is None else min(rank, k)
    reduced = Reduced.of(problem, alpha, rank)
    point = reduced.first_point()
    assert point.levels.shape == (k if rank is None else rank,)
    np.testing.assert_allclose(point.V.T @ point.V, np.eye(len(point.levels)), atol=1e-10)
    assert point.levels.min() >= 0
    # The trace has a largest alpha, beyond which no model is the best one.
    if rank is None:
        assert point.value < np.sum(Y**2) / (2 * alpha)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_given_start_is_kept(rng, shape):
    problem = reduce_problem(*make_problem(rng, *shape))
    k = problem.targets.shape[1]
    factor = rng.normal(size=(k, k))
    point = Reduced.of(problem, 0.3, None).point_from(factor @ factor.T)
    np.testing.assert_allclose((point.V * point.levels) @ point.V.T, factor @ factor.T, atol=1e-9)


def test_a_start_of_low_rank_keeps_its_largest_part(rng):
    problem = reduce_problem(*make_problem(rng, 12, 3))
    reduced = Reduced.of(problem, 0.3, 2)
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    levels = 1e4 * reduced.typical_level() * np.array([4.0, 2.0, 1.0])
    point = reduced.point_from((V * levels) @ V.T)
    np.testing.assert_allclose(point.levels[::-1], levels[:2], rtol=1e-4)
    np.testing.assert_allclose(np.abs(point.V[:, ::-1].T @ V[:, :2]), np.eye(2), atol=1e-4)


@pytest.mark.parametrize("rank", [None, 1, 2])
def test_a_start_at_zero_has_room_to_grow(rng, rank):
    problem = reduce_problem(*make_problem(rng, 12, 3))
    point = Reduced.of(problem, 0.3, rank).point_from(np.zeros((3, 3)))
    assert point.levels.min() > 0


def test_typical_level_follows_the_units(rng):
    """L is in units of (targets^2 / kernel)^1/3, with the trace as penalty of their root."""
    K, Y = make_problem(rng, 12, 3)
    for rank, power in ((None, 1 / 3), (2, 1 / 2)):
        plain, scaled = (
            Reduced.of(reduce_problem(s * K, c * Y), 1.0, rank).typical_level() for s, c in ((1, 1), (8, 5))
        )
        assert scaled / plain == pytest.approx((25 / 8) ** power)
