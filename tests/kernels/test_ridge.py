"""Ridge with any kernel, weights and missing targets, against dense systems; and the choice of the solver."""

import numpy as np
import pytest

from entangled_kernels.kernels import (
    SOLVERS,
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
