import pickle

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning import (
    FitSettings,
    LinearModel,
    Moments,
    fit_problem,
    reduce_moments,
    reduce_rows,
)

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
    model = EntangledKernelRidge(
        solver=solver, prediction=prediction, solver_params={"max_iter": 20}
    )
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


FIT_SETTINGS = [
    {"shrinkage": 1.0},
    {},
    {"shrinkage": 0.0, "alignment_mix": 1.0},
    {"prediction": "partial_trace"},
    {"rank": 2},
    {"solver": "lbfgs", "rank": 2, "max_iter": 5},
]


def predictions(Phi, Y, alpha, settings, weight=None, centred=True):
    problem, _ = reduce_rows(Phi, Y, weight, centred=centred)
    return fit_problem(problem, FitSettings(alpha=alpha, **settings)).linear.predict(Phi)


@pytest.mark.parametrize("settings", FIT_SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("shape", [(20, 4, 3), (12, 20, 5), (20, 3, 30)])
@pytest.mark.parametrize(
    ("unit_phi", "unit_y", "unit_weight"),
    [(1e-8, 1e12, 1e6), (1e8, 1e-12, 1e-6), (1e8, 1e12, 1e-6)],
)
def test_units_of_features_targets_and_weights(
    make_rows, rng, settings, centred, missing, shape, unit_phi, unit_y, unit_weight
):
    """With alpha in the unit of weight times squared features, predictions scale with the targets."""
    Phi, Y = make_rows(*shape)
    weight = rng.uniform(0.5, 2.0, size=len(Y))
    if missing:
        Y = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
        Y[:2] = 1.0
    expected = predictions(Phi, Y, 0.7, settings, weight, centred)
    found = predictions(
        unit_phi * Phi,
        unit_y * Y,
        0.7 * unit_weight * unit_phi**2,
        settings,
        unit_weight * weight,
        centred,
    )
    deviation = np.nanstd(Y, axis=0)
    np.testing.assert_allclose(found / unit_y / deviation, expected / deviation, rtol=0, atol=1e-6)


@pytest.mark.parametrize("way", ["rows", "moments", "missing"])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("n", "m", "p", "centred"),
    [
        (20, 5, 10, True),
        (20, 5, 10, False),
        (8, 30, 20, True),
        (20, 5, 30, True),
        (20, 5, 30, False),
        (200, 6, 210, True),
        (200, 6, 210, False),
    ],
)
def test_targets_of_very_different_units_are_those_of_ridge(rng, n, m, p, centred, way, order):
    """Kernel ridge fits every target by itself, whatever the units of the others."""
    Phi, Y = rng.normal(size=(n, m)) + 1.0, rng.normal(size=(n, p)) + 1.0
    if way == "missing":
        Y[0, 0] = np.nan
    unit = 10.0 ** np.linspace(-8, 8, p)[::order]
    expected = np.empty((n, p))
    for o, target in enumerate(Y.T):
        rows = np.isfinite(target)
        peer = Ridge(2.0, fit_intercept=centred).fit(Phi[rows], target[rows])
        expected[:, o] = peer.predict(Phi)
    if way == "moments":
        problem = reduce_moments(Moments.from_arrays(Phi, Y * unit), centred=centred)
    else:
        problem, _ = reduce_rows(Phi, Y * unit, None, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=2.0, shrinkage=1.0))
    deviation = np.nanstd(Y, axis=0)
    np.testing.assert_allclose(
        fit.linear.predict(Phi) / unit / deviation, expected / deviation, rtol=0, atol=1e-6
    )
