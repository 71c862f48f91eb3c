"""Every registered solver against the dense solution, on every registered kernel that it accepts."""

import numpy as np
import pytest

from block_solvers.sample import R, X
from entangled_kernels.block_solvers import SOLVERS, choose_solver, factorize, lowest_eigenvalue, registry
from entangled_kernels.block_solvers.registry import low_rank_dimension
from entangled_kernels.linalg import KroneckerOperator, SumOperator
from kernels.registry import INDEFINITE, KERNELS, P

from reference import blocks as reference

PSD = sorted(set(KERNELS) - INDEFINITE)
PAIRS = [(s, k) for s, solver in SOLVERS.items() for k in PSD if solver.accepts(KERNELS[k](X))]


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_solver_equals_dense(solver, name):
    operator = KERNELS[name](X)
    G = operator.to_dense()
    factor, used = factorize(operator, solver)
    assert used == solver
    for alpha in (0.1, 1.0, 2.0, 3.0, 5.0, 30.0):  # more alphas than share Cholesky factors
        expected = np.linalg.solve(G + alpha * np.eye(len(G)), R.reshape(-1, 2)).reshape(R.shape)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(factor.solve(R, alpha), expected, atol=1e-8 * scale)
    inverse = np.linalg.inv(G + 0.5 * np.eye(len(G))).reshape(12, P, 12, P)
    blocks = np.stack([inverse[i, :, i] for i in range(12)])
    np.testing.assert_allclose(factor.inverse_diagonal_blocks(0.5), blocks, atol=1e-8)


def test_every_solver_is_tried_and_every_kernel_solved():
    assert {solver for solver, _ in PAIRS} == set(SOLVERS)
    assert {name for _, name in PAIRS} == set(PSD)


@pytest.mark.parametrize("name", KERNELS)
def test_krein_solves_the_stabilised_problem(name):
    """The normal equations of min ||y - G c||^2 + alpha c^T |G| c."""
    operator = KERNELS[name](X)
    G = operator.to_dense()
    s, E = np.linalg.eigh(G)
    factor, used = factorize(operator, krein=True)
    c, y = factor.solve(R, 0.7).reshape(-1, 2), R.reshape(-1, 2)
    gradient = G @ (G @ c - y) + 0.7 * (E * np.abs(s)) @ E.T @ c
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8 * np.abs(G).max())
    assert used in ("kronecker", "dense")
    inverse = ((E * np.where(s < -1e-10, -1, 1) / (np.abs(s) + 0.7)) @ E.T).reshape(12, P, 12, P)
    expected = np.stack([inverse[i, :, i] for i in range(12)])
    np.testing.assert_allclose(factor.inverse_diagonal_blocks(0.7), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("separable rbf", "kronecker"),
        ("separable linear", "low_rank_separable"),
        ("separable features", "low_rank_separable"),
        ("kraus", "low_rank"),
        ("entangled", "low_rank"),
        ("multiple of kraus", "low_rank"),
        ("sum of separable", "dense"),
        ("product of separable", "kronecker"),
        ("product of kraus and separable", "dense"),
        ("product of a sum and separable", "dense"),
        ("transformable coordinates", "dense"),
    ],
)
def test_auto_follows_the_structure(name, expected, monkeypatch):
    assert choose_solver(KERNELS[name](X)) == expected
    monkeypatch.setattr(registry, "DENSE_SIZE", 10)
    monkeypatch.setattr(registry, "UNSTRUCTURED_DENSE_SIZE", 10)
    assert choose_solver(KERNELS[name](X)) == ("cg" if expected == "dense" else expected)


def test_auto_does_not_use_low_rank_beyond_the_size_of_the_gram_matrix():
    few = X[:2]
    assert choose_solver(KERNELS["separable linear"](few)) == "kronecker"
    assert choose_solver(KERNELS["entangled"](few)) == "dense"


@pytest.mark.parametrize("name", KERNELS)
def test_rank_is_bounded_by_structure(name):
    operator = KERNELS[name](X)
    rank = np.linalg.matrix_rank(operator.to_dense())
    assert rank <= low_rank_dimension(operator) <= 12 * P
    if name in ("kraus", "separable linear"):
        assert low_rank_dimension(operator) < 12 * P


def test_a_solver_says_what_it_needs():
    with pytest.raises(
        ValueError, match=r"solver='low_rank' needs a kernel in Kraus form .* KroneckerOperator"
    ):
        factorize(KERNELS["separable rbf"](X), "low_rank")
    with pytest.raises(ValueError, match="solver must be 'auto' or one of"):
        factorize(KERNELS["separable rbf"](X), "cholesky")


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dense_size", [10, 3000])
def test_lowest_eigenvalue(name, dense_size, monkeypatch):
    monkeypatch.setattr(registry, "DENSE_SIZE", dense_size)
    eigenvalues = np.linalg.eigvalsh(reference.dense_from_blocks(KERNELS[name].blocks(X)))
    lowest, scale = lowest_eigenvalue(KERNELS[name](X))
    assert lowest == pytest.approx(eigenvalues[0], abs=1e-3 * scale)
    assert scale == pytest.approx(np.abs(eigenvalues).max(), rel=1e-3)


def test_options_reach_the_iteration():
    operator = KERNELS["sum of separable"](X)
    factor, _ = factorize(operator, "cg", tol=1e-3, max_iter=7)
    assert (factor.tol, factor.max_iter) == (1e-3, 7)


def test_an_eigenvector_ends_the_lanczos_steps(monkeypatch):
    """On a multiple of the identity the Krylov space has one dimension."""
    monkeypatch.setattr(registry, "DENSE_SIZE", 1)
    term = KroneckerOperator(np.eye(5), -2.0 * np.eye(2))
    assert lowest_eigenvalue(SumOperator([term], [1.5])) == pytest.approx((-3.0, 3.0))
