import numpy as np
import pytest

from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import reduce_moments
from entangled_kernels.learning.solvers import SolverOptions, solve

from reference import dense


@pytest.mark.parametrize("mix", [0.0, 0.3, 0.5, 1.0])
def test_closed_form_is_the_optimum_it_says(make_problem_and_optimum, mix):
    problem, best = make_problem_and_optimum(25, 5, 4, mix)
    assert solve("closed-form", problem, SolverOptions()).value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_closed_form_with_a_rank_is_the_best_approximation(make_problem, mix):
    problem = make_problem(mix=mix)
    free = solve("closed-form", problem, SolverOptions(target_alpha=0.1)).kernel
    Q = free.Q.reshape(12, -1)
    D = Q @ Q.T + np.kron(free.L @ free.L.T, np.eye(3))
    values, vectors = np.linalg.eigh(D)
    for rank in (1, 2, 12):
        kernel = solve("closed-form", problem, SolverOptions(target_alpha=0.1, rank=rank)).kernel
        ours = kernel.Q.reshape(12, -1) @ kernel.Q.reshape(12, -1).T
        best = (vectors[:, -rank:] * values[-rank:]) @ vectors[:, -rank:].T
        # Multiple eigenvalues leave the choice of vectors open, not how well they do.
        error, best_error = (np.linalg.norm(D - X) for X in (ours * values[-rank:].sum(), best))
        assert error == pytest.approx(best_error, abs=1e-12)


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("rank", [None, 12])
def test_kernel_by_definition(make_rows, mix, rank):
    """D of the ridge fit W with its np x np matrices, in the coordinates of the rows."""
    Phi, Y = make_rows(20, 4, 3)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True, mix=mix)
    kernel = solve("closed-form", problem, SolverOptions(target_alpha=0.1, rank=rank)).kernel
    D = dense.learned_matrix(problem.expand_kraus(kernel.Q), problem.expand_metric(kernel))
    expected = dense.closed_form(Phi, Y, mix, target_alpha=0.1, shrinkage=0.0)
    np.testing.assert_allclose(D, expected / np.trace(expected), atol=1e-10)


def test_regularised_by_either_setting_the_optima_are_mixed(make_problem):
    """Without both, the operator alone is the maximiser."""
    problem = make_problem(mix=0.4)
    for options in (SolverOptions(target_alpha=0.1), SolverOptions(shrinkage=0.1)):
        kernel = solve("closed-form", problem, options).kernel
        assert np.sum(kernel.Q**2) == pytest.approx(0.4)
        assert 3 * np.sum(kernel.L**2) == pytest.approx(0.6)
    kernel = solve("closed-form", problem, SolverOptions()).kernel
    assert np.sum(kernel.Q**2) == pytest.approx(1.0)
    assert kernel.L.shape[1] == 0
