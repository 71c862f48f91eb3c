"""What every registered solver promises, and what each one does."""

from itertools import pairwise

import numpy as np
import pytest

from entangled_kernels.learning import Moments, reduce_moments
from entangled_kernels.learning.solvers import (
    SOLVERS,
    SUFFICIENT_INCREASE,
    FitSettings,
    SolverResult,
    solve,
    starting_point,
)

from reference import dense


def settings(solver, **others):
    """Settings without what regularises, unless it is asked for."""
    return FitSettings(solver, **{"target_alpha": 0.0, "shrinkage": 0.0, **others})


ITERATIVE = [name for name, solver in SOLVERS.items() if solver.iterative]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_result_describes_its_kernel(make_problem, name, centred, mix):
    problem = make_problem(centred=centred)
    result = solve(problem, settings(name, target_alpha=0.1, alignment_mix=mix))
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
    for init in ("identity", "random"):
        result = solve(problem, settings(name, init=init, seed=3, max_iter=400, alignment_mix=mix))
        assert result.value <= best + 1e-12
        assert result.history.max() <= best + 1e-12


@pytest.mark.parametrize("name", ITERATIVE)
def test_pymanopt_finds_the_same_optimum(make_rows, rng, name):
    pymanopt = pytest.importorskip("pymanopt")
    Phi, Y = make_rows(12, 3, 2, offset=0.2)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=False)
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
    result = solve(problem, settings(name, init=Q, max_iter=20000, tol=1e-6, alignment_mix=0.6))
    assert result.value == pytest.approx(-found.cost, abs=1e-6)


@pytest.mark.parametrize("name", ITERATIVE)
def test_history_never_falls(make_problem, name):
    history = solve(make_problem(), settings(name, init="random")).history
    assert (np.diff(history) >= 0).all()
    assert history[-1] > history[0]


@pytest.mark.parametrize("name", ITERATIVE)
def test_stopping(make_problem, name):
    problem = make_problem()
    asked = solve(problem, settings(name, max_iter=3, tol=0.0))
    assert (asked.reason, asked.converged, asked.n_iter) == ("max_iter", False, 3)
    loose = solve(problem, settings(name, tol=1e-2, max_iter=1000))
    assert (loose.reason, loose.converged) == ("tolerance", True)
    at_once = solve(problem, settings(name, tol=1e3))
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

    result = solve(make_problem(), settings(name, init="random"), callback)
    assert [n for n, _ in seen] == [1, 2, 3, 4]
    assert result.reason == "callback"
    assert [value for _, value in seen] == list(result.history[1:])


@pytest.mark.parametrize("name", ITERATIVE)
def test_flat_at_working_precision_is_called_stalled(make_problem, name):
    result = solve(make_problem(noise=0.1), settings(name, rank=1, tol=0.0, max_iter=100_000))
    assert result.reason == "stalled"
    assert not result.converged


@pytest.mark.parametrize("name", SOLVERS)
def test_rank_is_kept(make_problem, name):
    problem = make_problem()
    for rank in (1, 3, problem.full_rank):
        result = solve(problem, settings(name, rank=rank, target_alpha=0.1))
        # The closed form of three outputs has nine operators, three by three directions of its fit.
        assert result.kernel.Q.shape == (4, 3, min(rank, 9) if name == "closed-form" else rank)
        assert result.kernel.L.shape[1] == 0


@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_to_learn_gives_the_plain_kernel(make_rows, name):
    Phi, Y = make_rows(10, 3, 2)
    problem = reduce_moments(Moments.from_arrays(Phi, np.ones_like(Y)), centred=True)
    result = solve(problem, settings(name))
    assert (result.reason, result.kernel.identity) == ("nothing to learn", 1 / 6)
    assert result.kernel.Q.shape[2] == 0


REASONS = {"closed form", "tolerance", "max_iter", "callback", "nothing to learn", "stalled"}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    ("options", "callback"),
    [({}, None), ({"max_iter": 1}, None), ({"tol": 1e3}, None), ({}, lambda progress: True)],
)
def test_results_are_of_the_types_they_say(make_problem, name, options, callback):
    result = solve(make_problem(), settings(name, **options), callback)
    assert isinstance(result, SolverResult)
    assert isinstance(result.value, float)
    assert isinstance(result.converged, bool)
    assert isinstance(result.n_iter, int)
    assert isinstance(result.n_evaluations, int)
    assert result.history.dtype == np.float64
    assert result.reason in REASONS
    assert result.converged == (result.reason in ("closed form", "tolerance", "nothing to learn"))


@pytest.mark.parametrize("shape", [(20, 4, 3), (20, 3, 5), (20, 4, 4)])
def test_identity_start(make_problem, shape):
    problem = make_problem(*shape)
    m, k = problem.targets.shape
    for rank in range(1, m * k + 1):
        Q = starting_point(problem, settings("ascent", rank=rank))
        assert Q.shape == (m, k, rank)
        assert np.linalg.norm(Q) == pytest.approx(1.0)
        assert np.linalg.norm(Q, axis=(0, 1)).min() > 0
        assert np.linalg.matrix_rank(Q.reshape(m, -1)) == min(m, k * rank, m if rank > 1 else k)
        if rank >= max(m, k):
            np.testing.assert_allclose(
                Q.reshape(m, -1) @ Q.reshape(m, -1).T, np.eye(m) / m, atol=1e-12
            )
    np.testing.assert_allclose(
        Q.reshape(m * k, -1) @ Q.reshape(m * k, -1).T, np.eye(m * k) / (m * k), atol=1e-12
    )


def test_random_starts_repeat_with_their_seed(make_problem):
    problem = make_problem()
    runs = [
        solve(problem, settings("ascent", init="random", seed=seed, max_iter=5)).kernel.Q
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[0] - runs[2]).max() > 1e-3


@pytest.mark.parametrize("init", ["identity", "random"])
def test_a_rank_above_the_full_one_means_the_full_one(make_problem, init):
    problem = make_problem()
    for rank in (None, problem.full_rank, 10 * problem.full_rank):
        assert starting_point(problem, settings("ascent", init=init, rank=rank)).shape == (4, 3, 12)


def test_a_given_start_has_its_own_rank_and_gets_unit_norm(make_problem, rng):
    Q = rng.normal(size=(4, 3, 2))
    start = starting_point(make_problem(), settings("ascent", init=Q, rank=7))
    np.testing.assert_allclose(start, Q / np.linalg.norm(Q))
    assert not np.shares_memory(start, Q)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_few_operators_pair_no_feature_and_no_output_twice(make_problem, rank):
    Q = starting_point(make_problem(20, 4, 3), settings("ascent", rank=rank))
    pairs = np.count_nonzero(Q, axis=2)
    assert pairs.max() == 1
    for operator in np.moveaxis(Q != 0, 2, 0):
        assert operator.sum(axis=0).max() == 1
        assert operator.sum(axis=1).max() == 1


def test_one_operator_starts_with_a_positive_covariance(make_problem):
    """Its entries take the signs of the targets."""
    problem = make_problem()
    Q = starting_point(problem, settings("ascent", rank=1))[:, :, 0]
    assert (Q * problem.targets >= 0).all()
    assert np.sum(Q * problem.targets) > 0


@pytest.mark.parametrize("mix", [0.0, 0.3, 0.5, 1.0])
def test_closed_form_is_the_optimum_it_says(make_problem_and_optimum, mix):
    problem, best = make_problem_and_optimum(25, 5, 4, mix)
    assert solve(problem, settings("closed-form", alignment_mix=mix)).value == pytest.approx(
        best, abs=1e-12
    )


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_closed_form_with_a_rank_is_the_best_approximation(make_problem, mix):
    problem = make_problem()
    options = {"target_alpha": 0.1, "alignment_mix": mix}
    free = solve(problem, settings("closed-form", **options)).kernel
    Q = free.Q.reshape(12, -1)
    D = Q @ Q.T + np.kron(free.L @ free.L.T, np.eye(3))
    values, vectors = np.linalg.eigh(D)
    for rank in (1, 2, 12):
        kernel = solve(problem, settings("closed-form", **options, rank=rank)).kernel
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
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True)
    options = settings("closed-form", target_alpha=0.1, rank=rank, alignment_mix=mix)
    kernel = solve(problem, options).kernel
    D = dense.learned_matrix(problem.expand_kraus(kernel.Q), problem.expand_metric(kernel))
    expected = dense.closed_form(Phi, Y, mix, target_alpha=0.1, shrinkage=0.0)
    np.testing.assert_allclose(D, expected / np.trace(expected), atol=1e-10)


def test_regularised_by_either_setting_the_optima_are_mixed(make_problem):
    """Without both, the operator alone is the maximiser."""
    problem = make_problem()
    for options in (
        settings("closed-form", target_alpha=0.1, alignment_mix=0.4),
        settings("closed-form", shrinkage=0.1, alignment_mix=0.4),
    ):
        kernel = solve(problem, options).kernel
        assert np.sum(kernel.Q**2) == pytest.approx(0.4)
        assert 3 * np.sum(kernel.L**2) == pytest.approx(0.6)
    kernel = solve(problem, settings("closed-form", alignment_mix=0.4)).kernel
    assert np.sum(kernel.Q**2) == pytest.approx(1.0)
    assert kernel.L.shape[1] == 0


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 4, 3), (9, 3, 12)])
def test_ascent_takes_the_published_path(make_rows, rng, centred, shape):
    """Value by value the same as steepest ascent with np x np matrices in the original coordinates."""
    n, m, p = shape
    Phi, Y = make_rows(n, m, p)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=centred)
    Q = rng.normal(size=(*problem.targets.shape, 2))
    start = np.einsum("mf,pk,fkr->mpr", problem.features, problem.outputs, Q).reshape(m * p, 2)
    _, history = dense.DenseAscent(Phi, Y, 0.4, fit_intercept=centred).run(start, 30)
    result = solve(problem, settings("ascent", init=Q, max_iter=30, tol=0.0, alignment_mix=0.4))
    np.testing.assert_allclose(result.history, history, atol=1e-9)


def test_every_step_brings_a_share_of_what_the_gradient_promises(make_problem):
    """Q moves along the gradient, which is tangent to the sphere, by step = tan(angle) / gradient norm."""
    seen = []
    solve(make_problem(), settings("ascent", init="random", max_iter=20), seen.append)
    assert len(seen) == 20
    for before, after in pairwise(seen):
        cosine = np.sum(before.Q * after.Q)
        step = np.sqrt(1 / cosine**2 - 1) / before.gradient_norm
        promised = SUFFICIENT_INCREASE * step * before.gradient_norm**2
        assert after.value - before.value >= promised * (1 - 1e-6)


def test_no_steps_asked_for(make_problem):
    result = solve(make_problem(), settings("ascent", max_iter=0, tol=0.0))
    assert (result.reason, result.n_iter, len(result.history)) == ("max_iter", 0, 1)


def test_a_given_start_stays_as_it_was(make_problem, rng):
    problem = make_problem()
    Q = rng.normal(size=(*problem.targets.shape, 2))
    kept = Q.copy()
    solve(problem, settings("ascent", init=Q, max_iter=3), lambda progress: None)
    np.testing.assert_array_equal(Q, kept)
    assert Q.flags.writeable


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rank", [1, 2, None])
@pytest.mark.parametrize("init", ["identity", "random"])
def test_lbfgs_reaches_the_closed_form(make_problem_and_optimum, mix, rank, init):
    """Run to convergence; a wrong gradient would leave it below."""
    problem, best = make_problem_and_optimum(25, 5, 4, mix)
    options = {"alignment_mix": mix, "init": init, "rank": rank, "max_iter": 5000, "tol": 1e-8}
    result = solve(problem, settings("lbfgs", **options))
    # One operator of rank one in the outputs is the optimum of both terms at once.
    assert result.value == pytest.approx(best, abs=1e-6)
    assert result.reason in ("tolerance", "stalled")


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_units_of_the_features_do_not_matter(make_rows, mix):
    """From one start in whitened coordinates, the alignments after every step are the same."""
    Phi, Y = make_rows(25, 4, 3)
    histories = []
    for units in (np.ones(4), np.array([1e-3, 1.0, 30.0, 1e3])):
        problem = reduce_moments(Moments.from_arrays(Phi * units, Y), centred=True)
        whitener = problem.features / np.sqrt(problem.scale)
        start = np.linalg.solve(whitener * units[:, None], np.eye(4))  # the same features, whitened
        Q = (start[:, :3] / np.sqrt(problem.scale)[:, None])[:, :, None]
        options = settings("lbfgs", init=Q, max_iter=5, tol=0.0, alignment_mix=mix)
        histories.append(solve(problem, options).history)
    np.testing.assert_allclose(histories[0], histories[1], atol=1e-8)


def test_progress_tells_the_gradient_at_unit_norm(make_problem, rng):
    problem, seen = make_problem(), []
    solve(problem, settings("lbfgs", init="random", max_iter=3), seen.append)
    for progress in seen:
        X = np.sqrt(problem.scale)[:, None, None] * progress.Q
        X /= np.linalg.norm(X)
        assert progress.value == pytest.approx(problem.whitened.evaluate(X, 0.5).value)
        gradient = problem.whitened.evaluate(X, 0.5).gradient
        assert progress.gradient_norm == pytest.approx(np.linalg.norm(gradient))
        D = rng.normal(size=X.shape)
        slope = [problem.whitened.evaluate(X + h * D, 0.5).value for h in (1e-5, -1e-5)]
        assert (slope[0] - slope[1]) / 2e-5 == pytest.approx(np.sum(gradient * D), abs=1e-7)
