import functools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge

from entangled_kernels.estimators import OperatorValuedKernelRidge
from entangled_kernels.kernels import SOLVERS, KrausKernel, SeparableKernel
from kernels.draws import seeds
from kernels.registry import INDEFINITE, KERNELS, D, P

from reference import blocks as reference
from reference import missing

rng = np.random.default_rng(11)
X, Z = rng.normal(size=(14, D)), rng.normal(size=(5, D))
Y = rng.normal(size=(14, P))
PSD = sorted(set(KERNELS) - INDEFINITE)
PAIRS = [(s, k) for s, solver in SOLVERS.items() for k in PSD if solver.accepts(KERNELS[k](X))]

HOLES = np.where(rng.uniform(size=Y.shape) < 0.35, np.nan, Y + 3.0)
HOLES[3] = np.nan
HOLES[5] = Y[5]
ROWS, WEIGHTS = rng.uniform(0.2, 3.0, size=14), rng.uniform(0.2, 3.0, size=(14, P))
WEIGHTS[7, 1] = 0.0
PROBLEMS = {
    "missing targets": (HOLES, None),
    "weights of rows": (Y, ROWS),
    "both": (HOLES, WEIGHTS),
    "complete": (Y + 3.0, None),
}


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e2])
def test_identity_outputs_give_scikit_learn_kernel_ridge(alpha):
    ours = OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(P), gamma=0.2), alpha=alpha).fit(
        X, Y
    )
    theirs = KernelRidge(kernel="rbf", gamma=0.2, alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), atol=1e-11)
    default = OperatorValuedKernelRidge(alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(
        default.predict(Z), KernelRidge(alpha=alpha).fit(X, Y).predict(Z), atol=1e-11
    )


def test_one_output_gives_the_gaussian_process_posterior():
    kernel = RBF(0.8)
    gp = GaussianProcessRegressor(kernel, alpha=0.2, optimizer=None).fit(X, Y[:, 0])
    expected = gp.predict(Z, return_std=True)
    model = OperatorValuedKernelRidge(SeparableKernel(kernel, [[1.0]]), alpha=0.2).fit(X, Y[:, 0])
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected[0], atol=1e-10)
    np.testing.assert_allclose(std, expected[1], atol=1e-10)


@functools.cache
def by_definition(name, case, intercept, alpha):
    """Coefficients, intercepts, leave-one-out residuals, predictions and deviations, for all solvers once."""
    kernel, (targets, weights) = KERNELS[name], PROBLEMS[case]
    W = missing.target_weights(targets, weights)
    c, b = missing.fit(kernel, X, targets, W, alpha, intercept)
    residuals = missing.loo_residuals(kernel, X, targets, W, alpha, intercept)
    mean, std = missing.predict(kernel, X, Z, c, b), missing.std(kernel, X, W, Z, alpha, intercept)
    return c[W.any(axis=1)], b, residuals, mean, std


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("case", PROBLEMS)
@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_every_solver_and_kernel_by_definition(solver, name, case, intercept):
    model = OperatorValuedKernelRidge(KERNELS[name], 0.3, solver, fit_intercept=intercept)
    model.fit(X, *PROBLEMS[case])
    structured = case in ("weights of rows", "complete")
    assert model.solver_ == (solver if structured or solver != "kronecker" else "cg")
    c, b, residuals, mean, std = by_definition(name, case, intercept, 0.3)
    np.testing.assert_allclose(model.dual_coef_, c, atol=1e-8 * np.abs(c).max())
    np.testing.assert_allclose(model.intercept_, b, atol=1e-8)
    np.testing.assert_allclose(model.loo_residuals(), residuals, atol=1e-8)
    ours = model.predict(Z, return_std=True)
    np.testing.assert_allclose(ours[0], mean, atol=1e-8 * np.abs(mean).max())
    np.testing.assert_allclose(ours[1], std, atol=1e-8)
    c, b, residuals, _, _ = by_definition(name, case, intercept, 2.0)
    np.testing.assert_allclose(model.alpha_path([2.0])[0], c, atol=1e-8 * np.abs(c).max())
    np.testing.assert_allclose(model.intercept_path([2.0])[0], b, atol=1e-8)
    np.testing.assert_allclose(model.loo_residuals(2.0), residuals, atol=1e-8)


def everything(model, points=Z):
    """All that a model can be asked, in one vector."""
    parts = [
        *model.predict(points, return_std=True),
        model.loo_residuals(),
        model.alpha_path([0.5, 2.0]),
    ]
    return np.concatenate(
        [np.ravel(part) for part in [*parts, model.intercept_, model.intercept_path([2.0])]]
    )


@pytest.mark.parametrize("intercept", [False, True])
@settings(max_examples=15)
@given(seed=seeds)
def test_rows_without_targets_change_nothing(intercept, seed):
    draw = np.random.default_rng(seed)
    model = OperatorValuedKernelRidge(KERNELS["separable rbf"], fit_intercept=intercept)
    at = draw.integers(0, 15)
    points, targets = (
        np.insert(X, at, draw.normal(size=D), axis=0),
        np.insert(HOLES, at, np.nan, axis=0),
    )
    alone = everything(model.fit(X, HOLES))
    residuals = model.loo_residuals()
    model.fit(points, targets)
    np.testing.assert_array_equal(model.X_fit_, np.delete(X, 3, axis=0))
    np.testing.assert_array_equal(np.delete(model.loo_residuals(), at, axis=0), residuals)
    together = everything(model)
    np.testing.assert_array_equal(together[~np.isnan(together)], alone[~np.isnan(alone)])


@pytest.mark.parametrize("intercept", [False, True])
@settings(max_examples=15)
@given(seed=seeds)
def test_one_target_with_missing_values_is_rows_dropped(intercept, seed):
    draw = np.random.default_rng(seed)
    gone = draw.uniform(size=14) < 0.5
    gone[draw.choice(14, 3, replace=False)] = False
    model = OperatorValuedKernelRidge(SeparableKernel("rbf", [[2.0]]), 0.1, fit_intercept=intercept)
    dropped = everything(model.fit(X[~gone], Y[~gone, 0]))
    gaps = everything(model.fit(X, np.where(gone, np.nan, Y[:, 0])))
    np.testing.assert_array_equal(gaps[~np.isnan(gaps)], dropped)
    weights = everything(model.fit(X, Y[:, 0], np.where(gone, 0.0, 1.0)))
    np.testing.assert_array_equal(weights, gaps)


@pytest.mark.parametrize(
    "name", ["separable rbf", "separable linear", "kraus", "transformable coordinates"]
)
def test_equal_columns_are_weights_of_rows(name):
    model = OperatorValuedKernelRidge(KERNELS[name], fit_intercept=True)
    rows = everything(model.fit(X, Y, ROWS))
    np.testing.assert_array_equal(
        everything(model.fit(X, Y, np.repeat(ROWS[:, None], P, axis=1))), rows
    )
    # Almost equal columns take the solvers for missing targets.
    nearly = np.repeat(ROWS[:, None], P, axis=1) * (1 + 1e-13 * rng.normal(size=(14, P)))
    np.testing.assert_allclose(everything(model.fit(X, Y, nearly)), rows, atol=1e-8)


@settings(max_examples=15)
@given(seed=seeds)
def test_weights_of_targets_count_copies(seed):
    """Three copies of each row, with as many copies of a target as it weighs."""
    draw = np.random.default_rng(seed)
    weights = draw.integers(0, 4, size=(14, P))
    weights[0] = 1
    at = np.repeat(np.arange(14), 3)
    copy = np.tile(np.arange(3), 14)[:, None]
    copies = np.where(copy < weights[at], Y[at], np.nan)
    model = OperatorValuedKernelRidge(KERNELS["separable rbf"], fit_intercept=True)
    weighted = model.fit(X, Y, weights).predict(Z, return_std=True)
    repeated = model.fit(X[at], copies).predict(Z, return_std=True)
    np.testing.assert_allclose(weighted, repeated, atol=1e-10)


def test_an_intercept_is_the_mean_where_the_penalty_is_large():
    model = OperatorValuedKernelRidge(KERNELS["separable rbf"], alpha=1e9, fit_intercept=True)
    np.testing.assert_allclose(model.fit(X, HOLES).intercept_, np.nanmean(HOLES, axis=0), atol=1e-6)
    expected = np.average(Y, axis=0, weights=WEIGHTS)
    np.testing.assert_allclose(
        model.fit(X, Y, WEIGHTS).predict(Z), np.tile(expected, (5, 1)), atol=1e-6
    )


@pytest.mark.parametrize("name", sorted(INDEFINITE))
def test_indefinite_kernels_with_missing_targets(name):
    """The stabilised problem of the targets that are not missing."""
    with pytest.raises(ValueError, match="fit_intercept=True needs a psd kernel"):
        OperatorValuedKernelRidge(KERNELS[name], indefinite="krein", fit_intercept=True).fit(
            X, HOLES
        )
    model = OperatorValuedKernelRidge(KERNELS[name], indefinite="krein").fit(X, HOLES)
    assert model.solver_ == "dense"
    kept, W = ~np.isnan(HOLES).all(axis=1), missing.target_weights(HOLES)
    assert np.all(model.dual_coef_[W[kept] == 0] == 0)
    present = W.reshape(-1) > 0
    G = reference.dense_from_blocks(KERNELS[name].blocks(X))[np.ix_(present, present)]
    s, E = np.linalg.eigh(G)
    fitted = E @ (np.abs(s) / (np.abs(s) + 1.0) * (E.T @ HOLES.reshape(-1)[present]))
    np.testing.assert_allclose(model.predict(X).reshape(-1)[present], fitted, atol=1e-8)


@pytest.mark.parametrize("name", sorted(INDEFINITE))
def test_indefinite_kernels(name):
    kernel = KERNELS[name]
    with pytest.raises(
        ValueError, match=r"kernel is indefinite on the training points.*indefinite='krein'"
    ):
        OperatorValuedKernelRidge(kernel).fit(X, Y)
    model = OperatorValuedKernelRidge(kernel, indefinite="krein", alpha=0.5).fit(X, Y)
    assert model.indefinite_
    G = reference.dense_from_blocks(kernel.blocks(X))
    s, E = np.linalg.eigh(G)
    fitted = E @ (np.abs(s) / (np.abs(s) + 0.5) * (E.T @ Y.reshape(-1)))
    np.testing.assert_allclose(model.predict(X), fitted.reshape(Y.shape), atol=1e-8)
    with pytest.raises(ValueError, match="return_std=True needs a psd kernel"):
        model.predict(Z, return_std=True)
    with pytest.raises(ValueError, match="loo_residuals needs a psd kernel"):
        model.loo_residuals()


def test_conjugate_gradients_warn_when_they_stop_early():
    model = OperatorValuedKernelRidge(KERNELS["transformable maps"], 1e-4, "cg", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="stopped at relative residual"):
        model.fit(X, Y)
    assert model.n_iter_ == 2
    assert model.residual_ > model.tol


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"y has 2 output\(s\), but kernel has 3"):
        OperatorValuedKernelRidge(KERNELS["kraus"]).fit(X, Y[:, :2])
    model = OperatorValuedKernelRidge().fit(X, Y)
    for alphas in ("a", [1j], {}, ["x"], [1.0, 0.0], [1.0, np.inf]):
        for path in (model.alpha_path, model.intercept_path):
            with pytest.raises((TypeError, ValueError), match="alphas must"):
                path(alphas)
    for alpha in ("a", -1):
        with pytest.raises((TypeError, ValueError), match="alpha must"):
            model.loo_residuals(alpha)


@pytest.mark.parametrize("distinct", [False, True])
def test_separable_fit_never_allocates_the_block_gram_matrix(distinct):
    n, p = 1500, 30
    T = np.diag(1.0 + np.arange(p)) if distinct else np.eye(p)
    A, B = rng.normal(size=(n, 4)), rng.normal(size=(n, p))
    model = OperatorValuedKernelRidge(SeparableKernel("rbf", T, gamma=0.1))
    tracemalloc.start()
    model.fit(A, B).predict(A[:100])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (n * p) ** 2 * 8 / 100
    assert peak < 8 * n * n * 8


def test_low_rank_fit_never_forms_a_gram_matrix():
    n, p, m = 4000, 5, 6
    A, B = rng.normal(size=(n, m)), rng.normal(size=(n, p))
    model = OperatorValuedKernelRidge(KrausKernel(rng.normal(size=(3, p, m))))
    tracemalloc.start()
    model.fit(A, B).predict(A)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * n * 8 / 10


def test_missing_targets_never_allocate_the_block_gram_matrix():
    n, p = 700, 12
    A, B = rng.normal(size=(n, 4)), rng.normal(size=(n, p))
    B[rng.uniform(size=(n, p)) < 0.3] = np.nan
    T = np.eye(p) + 0.5
    model = OperatorValuedKernelRidge(SeparableKernel("rbf", T, gamma=0.1), fit_intercept=True)
    tracemalloc.start()
    model.fit(A, B).predict(A)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.solver_ == "cg"
    assert peak < np.sum(~np.isnan(B)) ** 2 * 8 / 10


@pytest.mark.parametrize("name", ["separable rbf", "kraus", "transformable maps"])
def test_krein_changes_nothing_for_psd_kernels(name):
    plain = OperatorValuedKernelRidge(KERNELS[name]).fit(X, Y)
    krein = OperatorValuedKernelRidge(KERNELS[name], indefinite="krein").fit(X, Y)
    assert not krein.indefinite_
    np.testing.assert_array_equal(plain.dual_coef_, krein.dual_coef_)


@pytest.mark.parametrize("solver", ["auto", "cg"])
def test_pickles_keep_weights_and_intercepts(solver):
    model = OperatorValuedKernelRidge(KERNELS["separable rbf"], solver=solver, fit_intercept=True)
    model.fit(X, *PROBLEMS["both"])
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(everything(twin), everything(model), rtol=1e-12)
