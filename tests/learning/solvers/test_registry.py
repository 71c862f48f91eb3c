"""What every solver promises, checked on every registered one."""

import numpy as np
import pytest

from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import reduce_moments
from entangled_kernels.learning.solvers import SOLVERS, SolverOptions, solve

from reference import dense

ITERATIVE = [name for name, solver in SOLVERS.items() if solver.iterative]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_result_describes_its_kernel(make_problem, name, centred, mix):
    problem = make_problem(centred=centred, mix=mix)
    result = solve(name, problem, SolverOptions(target_alpha=0.1))
    terms = problem.alignment_terms(result.kernel)
    assert result.value == pytest.approx((1 - mix) * terms[0] + mix * terms[1], abs=1e-12)
    trace = np.sum(result.kernel.Q**2) + problem.n_outputs * np.sum(result.kernel.L**2)
    assert trace == pytest.approx(1.0)
    assert result.history[-1] == result.value
    assert len(result.history) == (1 if name == "closed-form" else result.n_iter + 1)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(20, 4, 3), (30, 3, 7), (15, 6, 1)])
def test_nothing_exceeds_the_closed_form(make_problem_and_optimum, name, mix, shape):
    problem, best = make_problem_and_optimum(*shape, mix)
    rng = np.random.default_rng(3)
    for init in ("identity", "random"):
        result = solve(name, problem, SolverOptions(init=init, rng=rng, max_iter=2000))
        assert result.value <= best + 1e-12
        assert result.history.max() <= best + 1e-12


@pytest.mark.parametrize("name", ITERATIVE)
def test_pymanopt_finds_the_same_optimum(make_rows, rng, name):
    pymanopt = pytest.importorskip("pymanopt")
    Phi, Y = make_rows(12, 3, 2, offset=0.2)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=False, mix=0.6)
    oracle = dense.DenseAscent(Phi, Y, 0.6, fit_intercept=False)
    manifold = pymanopt.manifolds.Sphere(6, 2)

    @pymanopt.function.numpy(manifold)
    def cost(Q):
        return -oracle.evaluate(Q)[0]

    @pymanopt.function.numpy(manifold)
    def euclidean_gradient(Q):
        return -oracle.gradient(Q, oracle.evaluate(Q)[1])

    start = rng.normal(size=(3, 2, 2))
    found = pymanopt.optimizers.ConjugateGradient(
        max_iterations=3000, min_gradient_norm=1e-8, verbosity=0
    ).run(
        pymanopt.Problem(manifold, cost, euclidean_gradient=euclidean_gradient),
        initial_point=(start / np.linalg.norm(start)).reshape(6, 2),
    )
    Q = np.einsum("mf,pk,mpr->fkr", problem.features, problem.outputs, start)
    result = solve(name, problem, SolverOptions(init=Q, max_iter=20000, tol=1e-7))
    assert result.value == pytest.approx(-found.cost, abs=1e-6)


@pytest.mark.parametrize("name", ITERATIVE)
def test_history_never_falls(make_problem, name):
    history = solve(name, make_problem(), SolverOptions(init="random")).history
    assert (np.diff(history) >= 0).all()
    assert history[-1] > history[0]


@pytest.mark.parametrize("name", ITERATIVE)
def test_stopping(make_problem, name):
    problem = make_problem()
    asked = solve(name, problem, SolverOptions(max_iter=3, tol=0.0))
    assert (asked.reason, asked.converged, asked.n_iter) == ("max_iter", False, 3)
    loose = solve(name, problem, SolverOptions(tol=1e-2, max_iter=1000))
    assert (loose.reason, loose.converged) == ("tolerance", True)
    at_once = solve(name, problem, SolverOptions(tol=1e3))
    assert (at_once.reason, at_once.n_iter) == ("tolerance", 0)
    assert asked.n_evaluations >= asked.n_iter


@pytest.mark.parametrize("name", ITERATIVE)
def test_callback(make_problem, name):
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.value))
        assert np.linalg.norm(progress.Q) == pytest.approx(1.0)
        assert not progress.Q.flags.writeable
        return progress.n_iter == 4

    result = solve(name, make_problem(), SolverOptions(callback=callback, init="random"))
    assert [n for n, _ in seen] == [1, 2, 3, 4]
    assert result.reason == "callback"
    assert [value for _, value in seen] == list(result.history[1:])


@pytest.mark.parametrize("name", ITERATIVE)
def test_flat_at_working_precision_is_called_stalled(make_problem, name):
    result = solve(name, make_problem(noise=0.1), SolverOptions(rank=1, tol=0.0, max_iter=100_000))
    assert result.reason == "stalled"
    assert not result.converged


@pytest.mark.parametrize("name", SOLVERS)
def test_rank_is_kept(make_problem, name):
    problem = make_problem()
    for rank in (1, 3, problem.full_rank):
        result = solve(name, problem, SolverOptions(rank=rank, target_alpha=0.1))
        # The closed form of three outputs has nine operators, three by three directions of its fit.
        assert result.kernel.Q.shape == (4, 3, min(rank, 9) if name == "closed-form" else rank)
        assert result.kernel.L.shape[1] == 0


@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_to_learn_gives_the_plain_kernel(make_rows, name):
    Phi, Y = make_rows(10, 3, 2)
    problem = reduce_moments(Moments.from_arrays(Phi, np.ones_like(Y)), centred=True, mix=0.5)
    result = solve(name, problem, SolverOptions())
    assert (result.reason, result.kernel.identity) == ("nothing to learn", 1 / 6)
    assert result.kernel.Q.shape[2] == 0
