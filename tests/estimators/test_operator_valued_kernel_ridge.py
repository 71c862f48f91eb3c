import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels.block_solvers import SOLVERS
from entangled_kernels.estimators import OperatorValuedKernelRidge
from entangled_kernels.kernels import KrausKernel, SeparableKernel
from kernels.registry import INDEFINITE, KERNELS, D, P

from reference import blocks as reference

rng = np.random.default_rng(11)
X, Z = rng.normal(size=(14, D)), rng.normal(size=(5, D))
Y = rng.normal(size=(14, P))
PSD = sorted(set(KERNELS) - INDEFINITE)
PAIRS = [(s, k) for s, solver in SOLVERS.items() for k in PSD if solver.accepts(KERNELS[k](X))]


@parametrize_with_checks([OperatorValuedKernelRidge()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_every_solver_equals_dense_on_every_kernel_it_accepts(solver, name):
    kernel = KERNELS[name]
    model = OperatorValuedKernelRidge(kernel, alpha=0.3, solver=solver).fit(X, Y)
    assert model.solver_ == solver
    c = reference.ridge_coefficients(reference.dense_from_blocks(kernel.blocks(X)), Y, 0.3)
    np.testing.assert_allclose(model.dual_coef_, c, atol=1e-7 * np.abs(c).max())
    expected = (reference.dense_from_blocks(kernel.blocks(Z, X)) @ c.reshape(-1)).reshape(-1, P)
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_array_equal(model.predict(Z), mean)
    np.testing.assert_allclose(std, reference.std(kernel, X, Z, 0.3), atol=1e-6)


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_leave_one_out_equals_refitting(solver, name):
    model = OperatorValuedKernelRidge(KERNELS[name], alpha=0.3, solver=solver).fit(X, Y)
    expected = reference.loo_residuals(KERNELS[name], X, Y, 0.3)
    np.testing.assert_allclose(model.loo_residuals(), expected, atol=1e-6)
    other = reference.loo_residuals(KERNELS[name], X, Y, 2.0)
    np.testing.assert_allclose(model.loo_residuals(alpha=2.0), other, atol=1e-6)


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_alpha_path_equals_separate_fits(solver, name):
    alphas = np.logspace(-1, 2, 6)
    model = OperatorValuedKernelRidge(KERNELS[name], solver=solver).fit(X, Y)
    path = model.alpha_path(alphas)
    for alpha, coefficients in zip(alphas, path, strict=True):
        separate = OperatorValuedKernelRidge(KERNELS[name], alpha=alpha, solver=solver).fit(X, Y)
        scale = np.abs(separate.dual_coef_).max()
        np.testing.assert_allclose(coefficients, separate.dual_coef_, atol=1e-7 * scale)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e2])
def test_identity_outputs_give_scikit_learn_kernel_ridge(alpha):
    ours = OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(P), gamma=0.2), alpha=alpha).fit(X, Y)
    theirs = KernelRidge(kernel="rbf", gamma=0.2, alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), atol=1e-11)
    default = OperatorValuedKernelRidge(alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(default.predict(Z), KernelRidge(alpha=alpha).fit(X, Y).predict(Z), atol=1e-11)


def test_one_output_gives_the_gaussian_process_posterior():
    kernel = RBF(0.8)
    gp = GaussianProcessRegressor(kernel, alpha=0.2, optimizer=None).fit(X, Y[:, 0])
    expected = gp.predict(Z, return_std=True)
    model = OperatorValuedKernelRidge(SeparableKernel(kernel, [[1.0]]), alpha=0.2).fit(X, Y[:, 0])
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected[0], atol=1e-10)
    np.testing.assert_allclose(std, expected[1], atol=1e-10)


def test_one_dimensional_targets_stay_one_dimensional():
    model = OperatorValuedKernelRidge().fit(X, Y[:, 0])
    assert model.predict(Z).shape == (5,)
    assert model.dual_coef_.shape == (14,)
    assert model.loo_residuals().shape == (14,)
    assert model.alpha_path([1.0, 2.0]).shape == (2, 14)
    assert [part.shape for part in model.predict(Z, return_std=True)] == [(5,), (5,)]
    assert OperatorValuedKernelRidge().fit(X, Y[:, :1]).predict(Z).shape == (5, 1)


def test_frames():
    frame, targets = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(Y, columns=list("uvw"))
    model = OperatorValuedKernelRidge(KERNELS["kraus"]).fit(frame, targets)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    plain = OperatorValuedKernelRidge(KERNELS["kraus"]).fit(X, Y)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(Z, columns=list("abc"))), plain.predict(Z))


@pytest.mark.parametrize("name", sorted(INDEFINITE))
def test_indefinite_kernels(name):
    kernel = KERNELS[name]
    with pytest.raises(ValueError, match=r"kernel is indefinite on the training points.*indefinite='krein'"):
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


@pytest.mark.parametrize("name", PSD)
def test_krein_changes_nothing_for_psd_kernels(name):
    plain = OperatorValuedKernelRidge(KERNELS[name]).fit(X, Y)
    krein = OperatorValuedKernelRidge(KERNELS[name], indefinite="krein").fit(X, Y)
    assert not krein.indefinite_
    np.testing.assert_array_equal(plain.dual_coef_, krein.dual_coef_)


@pytest.mark.parametrize("name", ["separable rbf", "transformable maps", "kraus", "sum of separable"])
def test_pickles_and_clones(name):
    model = OperatorValuedKernelRidge(KERNELS[name], solver="cg").fit(X, Y)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(Z), model.predict(Z))
    np.testing.assert_allclose(twin.loo_residuals(), model.loo_residuals())
    np.testing.assert_allclose(clone(model).fit(X, Y).dual_coef_, model.dual_coef_)


def test_grid_search_over_kernels():
    kernels = [KERNELS["separable rbf"], KERNELS["kraus"], None]
    search = GridSearchCV(OperatorValuedKernelRidge(), {"kernel": kernels, "alpha": [0.1, 1.0]}, cv=2).fit(
        X, Y
    )
    assert search.predict(Z).shape == (5, P)


def test_conjugate_gradients_warn_when_they_stop_early():
    model = OperatorValuedKernelRidge(KERNELS["transformable maps"], 1e-4, "cg", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="stopped at relative residual"):
        model.fit(X, Y)
    assert model.n_iter_ == 2
    assert model.residual_ > model.tol


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"y has 2 output\(s\), but kernel has 3"):
        OperatorValuedKernelRidge(KERNELS["kraus"]).fit(X, Y[:, :2])
    with pytest.raises(ValueError, match=r"alpha must be a positive number, got 0\.0"):
        OperatorValuedKernelRidge(alpha=0.0).fit(X, Y)
    with pytest.raises(TypeError, match=r"kernel must be None or a kernel of .*, got 'rbf'"):
        OperatorValuedKernelRidge("rbf").fit(X, Y)
    with pytest.raises(ValueError, match="solver='low_rank' needs a kernel in Kraus form"):
        OperatorValuedKernelRidge(solver="low_rank").fit(X, Y)
    with pytest.raises(ValueError, match="alphas must be positive"):
        OperatorValuedKernelRidge().fit(X, Y).alpha_path([1.0, 0.0])


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
