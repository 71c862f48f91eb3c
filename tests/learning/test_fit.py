import pickle

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning import FitSettings, LinearModel, fit_problem, reduce_rows

from reference import dense


@pytest.fixture
def rows(make_rows):
    return make_rows(15, 3, 2)


def problem_of(rows, centred=True):
    return reduce_rows(*rows, None, centred=centred)[0]


@pytest.mark.parametrize("solver", ["closed-form", "ascent", "lbfgs"])
@pytest.mark.parametrize("prediction", ["entangled", "partial_trace"])
def test_the_same_problem_and_settings_give_the_same_fit(rows, solver, prediction):
    """A pure function: whatever was done before, to the last bit."""
    problem = problem_of(rows)
    settings = FitSettings(solver=solver, prediction=prediction, init="random", max_iter=20, seed=3)
    first, again = fit_problem(problem, settings), fit_problem(problem, settings)
    np.testing.assert_array_equal(first.linear.coef, again.linear.coef)
    assert first.alignment == again.alignment
    model = EntangledKernelRidge(solver=solver, prediction=prediction, solver_params={"max_iter": 20})
    plain = fit_problem(problem, FitSettings(solver=solver, prediction=prediction, max_iter=20))
    np.testing.assert_array_equal(plain.linear.coef, model.fit(*rows).coef_)


def test_the_mix_of_the_settings_counts(rows):
    problem = problem_of(rows)
    for mix in (0.0, 1.0):
        fit = fit_problem(problem, FitSettings(alignment_mix=mix))
        assert fit.alignment == pytest.approx(fit.alignment_terms[int(mix)])


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shrinkage", [0.0, 0.4, 1.0])
def test_norm_of_the_function(rows, centred, shrinkage):
    """c^T G c with dual coefficients c, in the definition."""
    Phi, Y = rows
    fit = fit_problem(problem_of(rows, centred), FitSettings(shrinkage=shrinkage, alpha=0.7))
    Phi, Y = (Z - Z.mean(axis=0) if centred else Z for Z in (Phi, Y))
    p = Y.shape[1]
    D = sum((np.outer(M.T.reshape(-1), M.T.reshape(-1)) for M in fit.kraus()), np.zeros((6, 6)))
    if fit.metric() is not None:
        D = D + np.kron(fit.metric(), np.eye(p))
    G = np.kron(Phi, np.eye(p)) @ D @ np.kron(Phi, np.eye(p)).T
    c = np.linalg.solve(G + 0.7 * np.eye(len(G)), Y.reshape(-1))
    assert fit.rkhs_norm == pytest.approx(np.sqrt(c @ G @ c))


def test_the_largest_alignment_is_that_of_the_least_squares_fit(rows):
    Phi, Y = rows
    W = np.linalg.lstsq(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].reshape(-1)
    terms = dense.alignment(Phi, Y, np.outer(W, W))
    fit = fit_problem(problem_of(rows), FitSettings())
    assert fit.largest_alignment() == pytest.approx(sum(terms) / 2)
    assert fit.alignment <= fit.largest_alignment()
    assert fit_problem(problem_of(rows, centred=False), FitSettings()).largest_alignment() is None


def test_projections_are_those_of_the_operators(rows):
    fit = fit_problem(problem_of(rows), FitSettings(rank=2, shrinkage=0.0))
    expected = np.einsum("rpm,nm->npr", fit.kraus(), rows[0])
    np.testing.assert_allclose(fit.project(rows[0]), expected, atol=1e-10)
    assert fit.n_operators == 2


def test_a_posterior_is_not_pickled(rows):
    fit = fit_problem(problem_of(rows), FitSettings())
    variance = fit.posterior.variance(rows[0])
    assert "posterior" in vars(fit)
    again = pickle.loads(pickle.dumps(fit))
    assert "posterior" not in vars(again)
    np.testing.assert_array_equal(again.posterior.variance(rows[0]), variance)


def test_a_callback_may_stop_the_solver(rows):
    settings = FitSettings(solver="ascent", max_iter=50)
    fit = fit_problem(problem_of(rows), settings, lambda progress: progress.n_iter == 3)
    assert (fit.n_iter, fit.stop_reason, fit.converged) == (3, "callback", False)


def test_linear_model(rng):
    Phi, coef, intercept = rng.normal(size=(5, 3)), rng.normal(size=(2, 3)), rng.normal(size=2)
    np.testing.assert_allclose(LinearModel(coef, intercept).predict(Phi), Phi @ coef.T + intercept)
    Phi[0, 0] = np.inf
    assert not np.isfinite(LinearModel(coef, intercept).predict(Phi)[0]).any()
