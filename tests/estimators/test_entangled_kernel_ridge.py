import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import EntangledKernelRidge, OperatorValuedKernelRidge
from entangled_kernels.kernels import KrausKernel
from entangled_kernels.learning.solvers import SOLVERS
from entangled_kernels.theory import generalization_bound, rademacher_bound, rkhs_norm

from reference import dense

PREDICTIONS = ("entangled", "partial_trace")


@parametrize_with_checks(
    [EntangledKernelRidge(prediction=prediction) for prediction in PREDICTIONS]
    + [
        EntangledKernelRidge(solver="ascent", rank=1, solver_params={"max_iter": 20}),
        EntangledKernelRidge(prediction="reduced_rank", rank=1),
        EntangledKernelRidge(StandardScaler(with_mean=False)),
        EntangledKernelRidge(fit_intercept=False),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def dense_of(model):
    metric = np.zeros((model.coef_.shape[1],) * 2) if model.metric_ is None else model.metric_
    return dense.learned_matrix(model.kraus_, metric)


@pytest.mark.parametrize(
    ("fit_intercept", "solver", "prediction", "shrinkage", "weighted", "shape"),
    list(
        itertools.product(
            (True, False),
            SOLVERS,
            PREDICTIONS,
            (0.0, 0.3, 1.0),
            (True, False),
            ((15, 4, 3), (8, 10, 2), (7, 3, 10)),
        )
    ),
)
def test_against_the_dense_definition(
    make_rows, rng, fit_intercept, solver, prediction, shrinkage, weighted, shape
):
    n, m, p = shape
    Phi, Y = make_rows(n, m, p)
    weight = rng.uniform(0.2, 2.0, size=n) if weighted else None
    model = EntangledKernelRidge(
        solver=solver,
        prediction=prediction,
        shrinkage=shrinkage,
        fit_intercept=fit_intercept,
        alpha=0.8,
        alignment_mix=0.4,
        solver_params={"max_iter": 30},
    ).fit(Phi, Y, weight)
    D = dense_of(model)
    terms = dense.alignment(Phi, Y, D, weight, fit_intercept)
    np.testing.assert_allclose(model.alignment_terms_, terms, atol=1e-10)
    assert model.alignment_ == pytest.approx(0.6 * terms[0] + 0.4 * terms[1], abs=1e-10)
    if solver == "closed-form":
        expected = dense.closed_form(Phi, Y, 0.4, 0.1, shrinkage, weight, fit_intercept)
        np.testing.assert_allclose(D, expected, atol=1e-9 * np.abs(expected).max())
    w = np.ones(n) if weight is None else weight
    Pc = dense.center_columns(Phi, w) if fit_intercept else Phi
    C = Pc.T @ (w[:, None] * Pc)
    assert np.trace(np.kron(C, np.eye(p)) @ D) == pytest.approx(p * np.trace(C))
    used = dense.partial_trace_kernel(D, p) if prediction == "partial_trace" else D
    Z = rng.normal(size=(6, m))
    expected = dense.ridge_predict(Phi, Y, used, 0.8, Z, weight, fit_intercept)
    np.testing.assert_allclose(model.predict(Z), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_of_any_unit(rng, solver, fit_intercept):
    """Features of scales 1e-8 to 1e8 and outputs of scales 1 to 1e-15 are all used."""
    X, maps = rng.normal(size=(200, 5)), rng.normal(size=(5, 2))
    Y = (X @ maps + 0.1 * rng.normal(size=(200, 2))) * [1.0, 1e-15]
    units = 10.0 ** np.array([-8, -4, 0, 4, 8])
    settings = {"alpha": 1e-18, "fit_intercept": fit_intercept}
    plain = Ridge(solver="svd", **settings).fit(X, Y).predict(X)
    ours = EntangledKernelRidge(
        shrinkage=1, solver=solver, **settings, solver_params={"max_iter": 2}
    ).fit(X * units, Y)
    # Even this alpha is felt by the column of scale 1e-8.
    np.testing.assert_allclose(
        ours.predict(X * units) / [1.0, 1e-15], plain / [1.0, 1e-15], atol=1e-3
    )
    assert ours.full_rank_ == 10
    exact = Ridge(alpha=1.0, fit_intercept=fit_intercept, solver="cholesky")
    ours.set_params(alpha=1.0)
    for scale in (1e3, 1e6):
        Z = X * [scale, 1, 1, 1, 1]
        np.testing.assert_allclose(ours.fit(Z, Y).predict(Z), exact.fit(Z, Y).predict(Z), atol=1e-8)


def test_far_off_the_origin_without_intercept(rng):
    """The paper's centring is computed without differences of large numbers."""
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    Y = np.hstack([Y, Y + 1e-3 * rng.normal(size=(40, 1))])
    for offset in (30.0, 1e4):
        model = EntangledKernelRidge(fit_intercept=False, shrinkage=0.3).fit(X + offset, Y)
        terms = dense.alignment((X + offset).astype(np.longdouble), Y, dense_of(model), None, False)
        np.testing.assert_allclose(
            model.alignment_terms_, np.asarray(terms, dtype=float), atol=1e-10
        )


@pytest.mark.parametrize("mix", [0.2, 0.5, 1.0])
def test_no_solver_exceeds_the_closed_form(make_rows, mix):
    Phi, Y = make_rows(30, 5, 4)
    settings = {
        "shrinkage": 0,
        "target_alpha": 0,
        "alignment_mix": mix,
        "solver_params": {"max_iter": 2000},
    }
    best, ascent, lbfgs = (
        EntangledKernelRidge(solver=name, **settings).fit(Phi, Y) for name in SOLVERS
    )
    assert ascent.alignment_ <= best.alignment_ + 1e-12
    assert lbfgs.alignment_ == pytest.approx(best.alignment_, abs=1e-6)


def test_modes_agree_on_one_target(make_rows):
    """With p = 1 the partial trace is the kernel."""
    Phi, Y = make_rows(30, 5, 1)
    one, other = (
        EntangledKernelRidge(prediction=mode).fit(Phi, Y).predict(Phi) for mode in PREDICTIONS
    )
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("prediction", PREDICTIONS)
def test_nystroem_on_all_points_is_exact_kernel_ridge(make_rows, prediction):
    X, Y = make_rows(40, 3, 2)
    features = Nystroem(gamma=0.3, n_components=40, random_state=0)
    ours = EntangledKernelRidge(features, shrinkage=1, prediction=prediction, fit_intercept=False)
    centred = Y - Y.mean(axis=0)
    peer = KernelRidge(kernel="rbf", gamma=0.3, alpha=1.0).fit(X, centred)
    np.testing.assert_allclose(
        ours.fit(X, centred).predict(X[:7] + 0.1), peer.predict(X[:7] + 0.1), atol=1e-8
    )


@pytest.mark.parametrize("prediction", PREDICTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_rotations_do_not_matter(make_rows, rng, prediction, solver):
    """Rotated features and outputs give rotated predictions: nothing hangs on the coordinates."""
    Phi, Y = make_rows(20, 4, 3)
    turn_x, turn_y = (np.linalg.qr(rng.normal(size=(s, s)))[0] for s in (4, 3))
    model = EntangledKernelRidge(
        solver=solver, prediction=prediction, solver_params={"max_iter": 15}
    )
    plain = model.fit(Phi, Y).predict(Phi)
    turned = model.fit(Phi @ turn_x, Y @ turn_y).predict(Phi @ turn_x)
    np.testing.assert_allclose(turned, plain @ turn_y, atol=1e-8)


def test_fitted_shapes(make_rows):
    Phi, Y = make_rows(20, 4, 3)
    model = EntangledKernelRidge(solver="ascent", rank=5, solver_params={"max_iter": 10}).fit(
        Phi, Y
    )
    assert model.kraus_.shape == (5, 3, 4)
    assert model.metric_.shape == (4, 4)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.noise_variance_.shape == (3,)
    assert model.n_features_in_ == 4
    assert (model.n_iter_, model.converged_, model.solver_) == (10, False, "ascent")
    assert len(model.alignment_history_) == 11
    assert model.full_rank_ == 12
    assert model.set_params(shrinkage=0).fit(Phi, Y).metric_ is None
    np.testing.assert_allclose(model.predict(Phi), Phi @ model.coef_.T + model.intercept_)


@pytest.mark.parametrize(
    ("rank", "expected"), [(0.5, 6), (1.0, 12), (0.01, 1), (12, 12), (None, 12)]
)
def test_rank_as_count_or_fraction(make_rows, rank, expected):
    Phi, Y = make_rows(20, 4, 3)
    model = EntangledKernelRidge(solver="ascent", rank=rank, solver_params={"max_iter": 3}).fit(
        Phi, Y
    )
    assert len(model.kraus_) == expected


def test_projection(make_rows):
    Phi, Y = make_rows(20, 4, 3)
    model = EntangledKernelRidge(
        solver="ascent", rank=2, shrinkage=0, solver_params={"max_iter": 20}
    ).fit(Phi, Y)
    Z = model.project(Phi)
    assert Z.shape == (20, 3, 2)
    np.testing.assert_allclose(Z, np.einsum("rpm,nm->npr", model.kraus_, Phi), atol=1e-12)
    G = dense.gram(Phi, dense_of(model), 3)
    np.testing.assert_allclose(np.einsum("iar,jbr->iajb", Z, Z).reshape(60, 60), G, atol=1e-10)
    np.testing.assert_array_equal(model.transform(Phi), Z.reshape(20, 6))
    assert list(model.get_feature_names_out()[:3]) == [
        "output0_kraus0",
        "output0_kraus1",
        "output1_kraus0",
    ]


def test_projection_needs_operators(make_rows):
    Phi, Y = make_rows(20, 4, 3)
    for settings in ({"shrinkage": 1}, {"alignment_mix": 0}):
        with pytest.raises(ValueError, match="no Kraus operators"):
            EntangledKernelRidge(**settings).fit(Phi, Y).transform(Phi)
    assert EntangledKernelRidge(alignment_mix=0, rank=2).fit(Phi, Y).transform(Phi).shape == (20, 6)


def test_random_state(make_rows):
    Phi, Y = make_rows(20, 4, 3)
    settings = {"solver": "ascent", "rank": 2, "solver_params": {"init": "random", "max_iter": 5}}
    one, same, other = (
        EntangledKernelRidge(random_state=seed, **settings).fit(Phi, Y).coef_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-6


def test_float32_input(make_rows):
    Phi, Y = make_rows(200, 4, 3)
    single, double = (
        EntangledKernelRidge().fit(Phi.astype(kind), Y) for kind in (np.float32, np.float64)
    )
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-4, atol=1e-5)
    assert single.predict(Phi.astype(np.float32)).dtype == np.float64


def test_in_scikit_learn_tools(make_rows):
    X, Y = make_rows(60, 3, 2)
    pipe = make_pipeline(
        StandardScaler(), EntangledKernelRidge(Nystroem(n_components=20, random_state=0))
    )
    grid = GridSearchCV(pipe, {"entangledkernelridge__alpha": [0.1, 1.0]}).fit(X, Y)
    assert grid.predict(X).shape == (60, 2)
    assert cross_val_score(clone(pipe), X, Y).shape == (5,)
    fitted = pipe.fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    before = fitted.predict(X, return_std=True)[1]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict(X, return_std=True)[1], before
    )


def test_verbose_shows_the_alignment(make_rows, capsys):
    Phi, Y = make_rows(20, 4, 3)
    EntangledKernelRidge(
        solver="ascent", solver_params={"max_iter": 20, "tol": 0, "verbose": True}
    ).fit(Phi, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "step 20/20" in lines[-1]


def test_convergence_warning_only_when_stalled(make_rows):
    Phi, Y = make_rows(20, 4, 3, noise=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EntangledKernelRidge(solver="ascent", solver_params={"max_iter": 3}).fit(Phi, Y)
        EntangledKernelRidge(solver="lbfgs", solver_params={"tol": 1e-3}).fit(Phi, Y)
    with pytest.warns(ConvergenceWarning, match="could not raise the alignment any further"):
        EntangledKernelRidge(
            solver="lbfgs", rank=1, solver_params={"tol": 0, "max_iter": 100_000}
        ).fit(Phi, Y)


@pytest.mark.parametrize(
    "settings",
    [{}, {"solver": "ascent", "rank": 3, "shrinkage": 0.0, "solver_params": {"max_iter": 20}}],
)
def test_kernel_object_gives_the_same_model(make_rows, settings):
    """Ridge regression with the learned kernel as an object is the estimator itself."""
    X, Y = make_rows(25, 4, 3)
    features = Nystroem(gamma=0.3, n_components=10, random_state=0)
    model = EntangledKernelRidge(features, fit_intercept=False, alpha=0.7, **settings).fit(X, Y)
    assert isinstance(model.kernel_, KrausKernel)
    peer = OperatorValuedKernelRidge(model.kernel_, alpha=0.7).fit(X, Y)
    np.testing.assert_allclose(peer.predict(X[:6] + 0.2), model.predict(X[:6] + 0.2), atol=1e-8)
    assert rkhs_norm(model) == pytest.approx(rkhs_norm(peer))
    assert rademacher_bound(model, X=X) == pytest.approx(rademacher_bound(peer))
    bounds = [generalization_bound(source, 0.1, X=X).total for source in (model, peer)]
    assert bounds[0] == pytest.approx(bounds[1])


def test_kernel_object_tells_entanglement(make_rows):
    Phi, Y = make_rows(40, 4, 3)
    model = EntangledKernelRidge(
        solver="ascent", rank=2, shrinkage=0, solver_params={"max_iter": 50}
    ).fit(Phi, Y)
    report = model.kernel_.entanglement()
    assert report.entangled
    assert not report.ppt
    plain = EntangledKernelRidge(shrinkage=1).fit(Phi, Y).kernel_.entanglement()
    assert plain.is_product


@pytest.mark.parametrize("prediction", PREDICTIONS)
@pytest.mark.parametrize(
    ("shape", "fit_intercept"),
    [
        ((60, 4, 3), True),
        ((60, 4, 3), False),
        ((10, 30, 3), True),
        ((10, 30, 3), False),
        ((10, 4, 17), True),
        ((10, 4, 17), False),
        ((10, 30, 17), False),
    ],
)
def test_full_shrinkage_is_ridge_for_targets_of_any_unit(
    make_rows, shape, fit_intercept, prediction
):
    """Units over 16 decades: each target is as exact as it would be alone."""
    X, Y = make_rows(*shape)
    units = 10.0 ** np.linspace(-8, 8, shape[2])
    expected = Ridge(fit_intercept=fit_intercept).fit(X, Y).predict(X)
    model = EntangledKernelRidge(shrinkage=1, fit_intercept=fit_intercept, prediction=prediction)
    in_batches = clone(model)
    for rows in np.array_split(np.arange(shape[0]), 3):
        in_batches.partial_fit(X[rows], Y[rows] * units)
    for fitted in (model.fit(X, Y * units), in_batches):
        np.testing.assert_allclose(fitted.predict(X) / units, expected, atol=1e-9 * np.abs(Y).max())
