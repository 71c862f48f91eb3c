"""Ridge with any kernel, weights and missing targets, against dense systems; and the choice of the solver."""

import numpy as np
import pytest

from entangled_kernels.kernels import (
    SOLVERS,
    BlockRidge,
    SeparableKernel,
    factorize,
    lowest_eigenvalue,
    ridge,
    select_solver,
)
from entangled_kernels.kernels.iterative_solvers import ScaledOperator
from entangled_kernels.kernels.ridge import scale_rows
from entangled_kernels.linalg import (
    KroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
    SumOperator,
)
from kernels.registry import KERNELS, P
from kernels.sample import CASES, PAIRS, PSD, ROWS, WEIGHTS, R, X, dense_system

from reference import blocks
from reference import missing as reference

STRUCTURED = (KroneckerOperator, LowRankOperator, SumOfKroneckersOperator)
every_case = pytest.mark.parametrize("weights", CASES.values(), ids=CASES.keys())


def test_every_solver_is_tried_and_every_kernel_solved():
    assert {solver for solver, _ in PAIRS} == set(SOLVERS)
    assert {name for _, name in PAIRS} == set(PSD)


@every_case
@pytest.mark.parametrize("name", KERNELS)
def test_krein_solves_the_stabilised_problem(name, weights):
    """The normal equations of min ||y - A z||^2 + alpha z^T |A| z, A = S G S."""
    operator = KERNELS[name](X)
    factor, used = factorize(operator, weights, krein=True)
    separable = isinstance(operator, KroneckerOperator) and weights is not WEIGHTS
    assert used == ("kronecker" if separable else "dense")
    A = dense_system(operator, weights, 0.0)
    s, E = np.linalg.eigh(A)
    y = R.reshape(-1, 2) * (np.diag(dense_system(operator, weights, 0.0)) != 0)[:, None]
    z = factor.solve(y.reshape(R.shape), 0.7).reshape(-1, 2)
    gradient = A @ (A @ z - y) + 0.7 * (E * np.abs(s)) @ E.T @ z
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8 * np.abs(A).max())


@pytest.mark.parametrize("name", KERNELS)
def test_scaled_rows_equal_dense_and_keep_the_structure(name):
    operator, s = KERNELS[name](X), np.where(np.arange(12) == 5, 0.0, ROWS)
    scaled = scale_rows(operator, s)
    expected = dense_system(operator, s**2, 0.0)
    np.testing.assert_allclose(scaled.to_dense(), expected, atol=1e-12 * np.abs(expected).max())
    assert type(scaled) is (type(operator) if isinstance(operator, STRUCTURED) else ScaledOperator)


@pytest.mark.parametrize(
    ("name", "complete", "with_missing", "large"),
    [
        ("separable rbf", "kronecker", "dense", "cg"),
        ("separable linear", "low_rank_separable", "low_rank_separable", "cg"),
        ("separable features", "low_rank_separable", "low_rank_separable", "cg"),
        ("kraus", "low_rank", "low_rank", "low_rank"),
        ("entangled", "low_rank", "low_rank", "cg"),
        ("kraus with metric and features", "low_rank", "low_rank", "cg"),
        ("sum of separable", "dense", "dense", "cg"),
        ("product of separable", "kronecker", "dense", "cg"),
        ("product of kraus and separable", "dense", "dense", "cg"),
        ("transformable coordinates", "dense", "dense", "cg"),
    ],
)
def test_the_solver_follows_structure_and_size(name, complete, with_missing, large, monkeypatch):
    kernel = KERNELS[name]
    assert select_solver(kernel, X).solver == complete
    assert select_solver(kernel, X, WEIGHTS).solver == with_missing
    monkeypatch.setattr(ridge, "DENSE_SIZE", 5)
    monkeypatch.setattr(ridge, "UNSTRUCTURED_DENSE_SIZE", 5)
    assert select_solver(kernel, X).solver == ("cg" if complete == "dense" else complete)
    assert select_solver(kernel, X, WEIGHTS).solver == large


@every_case
@pytest.mark.parametrize("name", KERNELS)
def test_the_selected_solver_is_the_one_that_runs(name, weights):
    choice = select_solver(KERNELS[name], X, weights)
    assert choice.solver == factorize(KERNELS[name](X), weights)[1]
    assert choice.reason.endswith(".")


def test_low_rank_is_not_selected_beyond_the_number_of_targets():
    assert select_solver(KERNELS["separable linear"], X[:2]).solver == "kronecker"
    assert select_solver(KERNELS["entangled"], X[:2]).solver == "dense"
    few = np.zeros((12, P))
    few[:, 0] = 1.0  # twelve targets, and rank nine or twelve
    assert select_solver(KERNELS["separable linear"], X, few).solver == "low_rank_separable"
    assert select_solver(KERNELS["kraus with metric and features"], X, few).solver == "dense"


def test_rows_without_targets_do_not_count():
    """Three features: low rank for twelve rows, not for the three rows that have a target."""
    weights = np.zeros(12)
    assert select_solver(KERNELS["separable linear"], X, np.ones(12)).solver == "low_rank_separable"
    weights[:3] = 1.0
    assert select_solver(KERNELS["separable linear"], X, weights).solver == "kronecker"


def test_the_reason_names_structure_and_sizes():
    reasons = [select_solver(KERNELS[name], X).reason for name in ("separable rbf", "kraus")]
    assert "separable: factorise its 12 x 12 Gram matrix and its 3 x 3 output matrix" in reasons[0]
    assert "rank at most 2" in reasons[1]
    assert "Targets are missing" in select_solver(KERNELS["separable rbf"], X, WEIGHTS).reason


def test_errors_name_the_argument():
    operator = KERNELS["separable rbf"](X)
    with pytest.raises(
        ValueError, match=r"solver='low_rank' needs a kernel in Kraus form .* KroneckerOperator"
    ):
        factorize(operator, WEIGHTS, "low_rank")
    with pytest.raises(ValueError, match="solver must be 'auto' or one of"):
        factorize(operator, solver="cholesky")
    with pytest.raises(TypeError, match="kernel must be a kernel of"):
        select_solver("rbf", X)
    for weights, message in [
        (np.ones(5), r"weights must be .* shape \(12,\) or \(12, 3\), got shape \(5,\)"),
        ("none", "weights must be .* got 'none'"),
        (-np.ones(12), "weights must be finite and not negative"),
        (np.full((12, P), np.nan), "weights must be finite and not negative"),
        (np.full(12, 1e300), "squares have a finite sum, got 1e\\+300"),
    ]:
        with pytest.raises(ValueError, match=message):
            select_solver(KERNELS["separable rbf"], X, weights)


def test_options_reach_the_iteration():
    """Two iterations are too few, with and without missing targets."""
    for name, weights in [
        ("sum of separable", None),
        ("sum of separable", WEIGHTS),
        ("separable rbf", WEIGHTS),
    ]:
        factor, _ = factorize(KERNELS[name](X), weights, "cg", max_iter=2)
        factor.solve(R, 1e-4)
        assert factor.n_iter == 2
        assert factor.residual > 1e-10


# Ridge regression


rng = np.random.default_rng(8)
Y = 2.0 + rng.normal(size=(12, P))
HOLES = np.where(rng.uniform(size=(12, P)) < 0.3, np.nan, Y)
HOLES[:, 2] = np.nan
HOLES[4, 2] = 1.0  # one row has this target
HOLES[:, 0] = Y[:, 0]
HOLES_WEIGHTS = reference.target_weights(HOLES, rng.uniform(0.2, 3.0, size=(12, P)))
KERNEL = KERNELS["sum of separable"]
Z = rng.normal(size=(4, X.shape[1]))
PROBLEMS = {"complete": (Y, None), "rows": (Y, ROWS), "missing": (HOLES, HOLES_WEIGHTS)}


@pytest.mark.parametrize("chunk", [1, 2**22])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("case", PROBLEMS)
def test_ridge_equals_the_definition(case, intercept, chunk, monkeypatch):
    monkeypatch.setattr(ridge, "CHUNK_NUMBERS", chunk)
    targets, weights = PROBLEMS[case]
    W = reference.target_weights(targets, weights)
    model = BlockRidge(KERNEL(X), weights, fit_intercept=intercept)
    for alpha in (0.1, 2.0):
        c, b = reference.fit(KERNEL, X, targets, W, alpha, intercept)
        ours = model.coefficients(targets, alpha)
        np.testing.assert_allclose(ours[0], c, atol=1e-9)
        np.testing.assert_allclose(ours[1], b, atol=1e-9)
        np.testing.assert_array_equal(model.intercepts(targets, alpha), ours[1])
        cross = KERNEL(X, Z).to_dense().reshape(12, P, -1)
        prior = np.einsum("ioo->io", KERNEL.diag(Z))
        variance = prior - model.variance_reduction(cross, alpha)
        expected = reference.std(KERNEL, X, W, Z, alpha, intercept)
        np.testing.assert_allclose(np.sqrt(variance), expected, atol=1e-9)
        expected = reference.loo_residuals(KERNEL, X, targets, W, alpha, intercept)
        np.testing.assert_allclose(model.loo_residuals(targets, alpha), expected, atol=1e-9)


def test_a_constant_added_to_a_target_moves_its_intercept_only():
    model = BlockRidge(KERNEL(X), HOLES_WEIGHTS, fit_intercept=True)
    c, b = model.coefficients(HOLES, 0.3)
    moved_c, moved_b = model.coefficients(HOLES + np.array([0.0, 100.0, -7.0]), 0.3)
    np.testing.assert_allclose(moved_c, c, atol=1e-10)
    np.testing.assert_allclose(moved_b - b, [0.0, 100.0, -7.0], atol=1e-10)


def test_the_largest_residual_of_all_solves_is_kept():
    model = BlockRidge(KERNEL(X), HOLES_WEIGHTS, "cg", fit_intercept=True, max_iter=2)
    model.coefficients(HOLES, 1e-4)
    assert model.residual >= model.factor.residual > 1e-10
    assert model.n_iter == 2


# The lowest eigenvalue


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dense_size", [10, 3000])
def test_lowest_eigenvalue(name, dense_size, monkeypatch):
    monkeypatch.setattr(ridge, "DENSE_SIZE", dense_size)
    eigenvalues = np.linalg.eigvalsh(blocks.dense_from_blocks(KERNELS[name].blocks(X)))
    lowest, scale = lowest_eigenvalue(KERNELS[name](X))
    assert lowest == pytest.approx(eigenvalues[0], abs=1e-3 * scale)
    assert scale == pytest.approx(np.abs(eigenvalues).max(), rel=1e-3)


def test_an_eigenvector_ends_the_lanczos_steps(monkeypatch):
    """On a multiple of the identity the Krylov space has one dimension."""
    monkeypatch.setattr(ridge, "DENSE_SIZE", 1)
    term = KroneckerOperator(np.eye(5), -2.0 * np.eye(2))
    assert lowest_eigenvalue(SumOperator([term], [1.5])) == pytest.approx((-3.0, 3.0))


def test_weights_of_one_are_no_weights():
    operator = SeparableKernel("rbf", np.eye(2) + 1.0)(X)
    plain, _ = factorize(operator)
    for ones in (np.ones(12), np.ones((12, 2))):
        factor, used = factorize(operator, ones)
        assert used == "kronecker"
        np.testing.assert_array_equal(factor.solve(R[:, :2], 0.5), plain.solve(R[:, :2], 0.5))
