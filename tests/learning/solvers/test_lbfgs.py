import numpy as np
import pytest

from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import reduce_moments
from entangled_kernels.learning.solvers import SolverOptions, solve


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rank", [1, 2, None])
@pytest.mark.parametrize("init", ["identity", "random"])
def test_lbfgs_reaches_the_closed_form(make_problem_and_optimum, mix, rank, init):
    """Run to convergence; a wrong gradient would leave it below."""
    problem, best = make_problem_and_optimum(25, 5, 4, mix)
    result = solve("lbfgs", problem, SolverOptions(init=init, rank=rank, max_iter=5000, tol=1e-8))
    # One operator of rank one in the outputs is the optimum of both terms at once.
    assert result.value == pytest.approx(best, abs=1e-6)
    assert result.reason in ("tolerance", "stalled")


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_units_of_the_features_do_not_matter(make_rows, mix):
    """From one start in whitened coordinates, the alignments after every step are the same."""
    Phi, Y = make_rows(25, 4, 3)
    histories = []
    for units in (np.ones(4), np.array([1e-3, 1.0, 30.0, 1e3])):
        problem = reduce_moments(Moments.from_arrays(Phi * units, Y), centred=True, mix=mix)
        whitener = problem.features / np.sqrt(problem.scale)
        start = np.linalg.solve(whitener * units[:, None], np.eye(4))  # the same features, whitened
        Q = (start[:, :3] / np.sqrt(problem.scale)[:, None])[:, :, None]
        histories.append(solve("lbfgs", problem, SolverOptions(init=Q, max_iter=5, tol=0.0)).history)
    np.testing.assert_allclose(histories[0], histories[1], atol=1e-8)


def test_progress_tells_the_gradient_at_unit_norm(make_problem, rng):
    problem, seen = make_problem(), []
    solve("lbfgs", problem, SolverOptions(init="random", callback=seen.append, max_iter=3))
    for progress in seen:
        X = problem.whiten(progress.Q)
        X /= np.linalg.norm(X)
        assert progress.value == pytest.approx(problem.whitened.evaluate(X).value)
        gradient = problem.whitened.evaluate(X).gradient
        assert progress.gradient_norm == pytest.approx(np.linalg.norm(gradient))
        D = rng.normal(size=X.shape)
        slope = [problem.whitened.evaluate(X + h * D).value for h in (1e-5, -1e-5)]
        assert (slope[0] - slope[1]) / 2e-5 == pytest.approx(np.sum(gradient * D), abs=1e-7)


def test_evaluations_are_counted(make_problem, monkeypatch):
    problem = make_problem()
    calls, evaluate = [], type(problem.whitened).evaluate
    monkeypatch.setattr(
        type(problem.whitened), "evaluate", lambda self, X: (calls.append(1), evaluate(self, X))[1]
    )
    assert solve("lbfgs", problem, SolverOptions(max_iter=10)).n_evaluations == len(calls)
