import numpy as np
import pytest

from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import reduce_moments
from entangled_kernels.learning.solvers import SOLVERS, SolverOptions, solve
from entangled_kernels.learning.solvers.start import starting_point

from reference import dense

ITERATIVE = [name for name, solver in SOLVERS.items() if solver.iterative]


@pytest.fixture
def make_problem(make_rows):
    def make(n=20, m=4, p=3, centred=True, mix=0.5, noise=1.0):
        Phi, Y = make_rows(n, m, p, noise=noise)
        return reduce_moments(Moments.from_arrays(Phi, Y), centred=centred, mix=mix)

    return make


@pytest.fixture
def make_problem_and_optimum(make_rows):
    """A problem with an intercept, and the largest alignment there is, at the least-squares fit W."""

    def make(n, m, p, mix):
        Phi, Y = make_rows(n, m, p)
        W = np.linalg.lstsq(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].reshape(-1)
        a1, a2 = dense.alignment(Phi, Y, np.outer(W, W))
        return reduce_moments(Moments.from_arrays(Phi, Y), centred=True, mix=mix), (1 - mix) * a1 + mix * a2

    return make


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


@pytest.mark.parametrize("mix", [0.0, 0.3, 0.5, 1.0])
def test_closed_form_is_the_optimum_it_says(make_problem_and_optimum, mix):
    problem, best = make_problem_and_optimum(25, 5, 4, mix)
    assert solve("closed-form", problem, SolverOptions()).value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 4, 3), (9, 3, 12)])
def test_ascent_takes_the_published_path(make_rows, rng, centred, shape):
    """Value by value the same as steepest ascent with np x np matrices in the original coordinates."""
    n, m, p = shape
    Phi, Y = make_rows(n, m, p)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=centred, mix=0.4)
    Q = rng.normal(size=(*problem.targets.shape, 2))
    start = np.einsum("mf,pk,fkr->mpr", problem.features, problem.outputs, Q).reshape(m * p, 2)
    _, history = dense.DenseAscent(Phi, Y, 0.4, fit_intercept=centred).run(start, 30)
    result = solve("ascent", problem, SolverOptions(init=Q, max_iter=30, tol=0.0))
    np.testing.assert_allclose(result.history, history, atol=1e-9)


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


@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_to_learn_gives_the_plain_kernel(make_rows, name):
    Phi, Y = make_rows(10, 3, 2)
    problem = reduce_moments(Moments.from_arrays(Phi, np.ones_like(Y)), centred=True, mix=0.5)
    result = solve(name, problem, SolverOptions())
    assert (result.reason, result.kernel.identity) == ("nothing to learn", 1 / 6)
    assert result.kernel.Q.shape[2] == 0
