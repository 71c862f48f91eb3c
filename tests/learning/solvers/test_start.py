import numpy as np
import pytest

from entangled_kernels.learning.solvers import SolverOptions, solve
from entangled_kernels.learning.solvers.start import starting_point


@pytest.mark.parametrize("shape", [(20, 4, 3), (20, 3, 5), (20, 4, 4)])
def test_identity_start(make_problem, shape):
    problem = make_problem(*shape)
    m, k = problem.targets.shape
    for rank in range(1, m * k + 1):
        Q = starting_point(problem, SolverOptions(rank=rank))
        assert Q.shape == (m, k, rank)
        assert np.linalg.norm(Q) == pytest.approx(1.0)
        assert np.linalg.norm(Q, axis=(0, 1)).min() > 0
        assert np.linalg.matrix_rank(Q.reshape(m, -1)) == min(m, k * rank, m if rank > 1 else k)
        if rank >= max(m, k):
            np.testing.assert_allclose(Q.reshape(m, -1) @ Q.reshape(m, -1).T, np.eye(m) / m, atol=1e-12)
    np.testing.assert_allclose(
        Q.reshape(m * k, -1) @ Q.reshape(m * k, -1).T, np.eye(m * k) / (m * k), atol=1e-12
    )


def test_random_starts_repeat_with_their_seed(make_problem):
    problem = make_problem()
    runs = [
        solve(
            "ascent", problem, SolverOptions(init="random", rng=np.random.default_rng(seed), max_iter=5)
        ).kernel.Q
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[0] - runs[2]).max() > 1e-3


@pytest.mark.parametrize("init", ["identity", "random"])
def test_a_rank_above_the_full_one_means_the_full_one(make_problem, init):
    problem = make_problem()
    for rank in (None, problem.full_rank, 10 * problem.full_rank):
        assert starting_point(problem, SolverOptions(init=init, rank=rank)).shape == (4, 3, 12)


def test_a_given_start_has_its_own_rank_and_gets_unit_norm(make_problem, rng):
    Q = rng.normal(size=(4, 3, 2))
    start = starting_point(make_problem(), SolverOptions(init=Q, rank=7))
    np.testing.assert_allclose(start, Q / np.linalg.norm(Q))
    assert not np.shares_memory(start, Q)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_few_operators_pair_no_feature_and_no_output_twice(make_problem, rank):
    Q = starting_point(make_problem(20, 4, 3), SolverOptions(rank=rank))
    pairs = np.count_nonzero(Q, axis=2)
    assert pairs.max() == 1
    for operator in np.moveaxis(Q != 0, 2, 0):
        assert operator.sum(axis=0).max() == 1
        assert operator.sum(axis=1).max() == 1


def test_one_operator_starts_with_a_positive_covariance(make_problem):
    """Its entries take the signs of the targets."""
    problem = make_problem()
    Q = starting_point(problem, SolverOptions(rank=1))[:, :, 0]
    assert (Q * problem.targets >= 0).all()
    assert np.sum(Q * problem.targets) > 0
