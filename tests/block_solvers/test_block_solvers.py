"""Every registered solver against the dense solution, on every registered kernel that it accepts."""

import numpy as np
import pytest

from entangled_kernels.block_solvers import SOLVERS, choose_solver, factorize, lowest_eigenvalue, registry
from entangled_kernels.block_solvers.conjugate_gradient import (
    NystroemPreconditioner,
    nearest_kronecker_of_sum,
)
from entangled_kernels.block_solvers.shifted import ShiftedSystem, cholesky_limit
from entangled_kernels.linalg import (
    DenseOperator,
    KroneckerOperator,
    SumOfKroneckersOperator,
    operator_schmidt,
)
from kernels.registry import INDEFINITE, KERNELS, D, P

from reference import blocks as reference

rng = np.random.default_rng(5)
X, R = rng.normal(size=(12, D)), rng.normal(size=(12, P, 2))
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


def test_a_solver_says_what_it_needs():
    with pytest.raises(
        ValueError, match=r"solver='low_rank' needs a kernel in Kraus form .* KroneckerOperator"
    ):
        factorize(KERNELS["separable rbf"](X), "low_rank")
    with pytest.raises(ValueError, match="solver must be 'auto' or one of"):
        factorize(KERNELS["separable rbf"](X), "cholesky")


@pytest.mark.parametrize("n", [1, 2, 3, 20])
@pytest.mark.parametrize("reduced", [True, False])
def test_shifted_systems(n, reduced):
    B = rng.normal(size=(n, n))
    A, right = B @ B.T, rng.normal(size=(n, 3))
    system = ShiftedSystem(A)
    if reduced:
        system.reduce()
    shifts = np.array([0.1, 7.0, 0.1])
    expected = [np.linalg.solve(A + s * np.eye(n), r) for s, r in zip(shifts, right.T, strict=True)]
    np.testing.assert_allclose(system.solve(shifts, right), np.transpose(expected), atol=1e-9)


@pytest.mark.parametrize("reduced", [True, False])
def test_shifted_systems_refuse_indefinite_matrices(reduced):
    system = ShiftedSystem(np.diag([1.0, 2.0, -3.0, 1.0]))
    if reduced:
        system.reduce()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        system.solve(np.array([0.5]), np.ones((4, 1)))


def test_equal_output_eigenvalues_share_a_factorisation():
    K = X @ X.T
    shared, _ = factorize(KroneckerOperator(K, np.eye(8) + 1.0))
    shared.solve(np.ones((12, 8, 1)), 1.0)
    assert shared.system._reflectors is None
    many = cholesky_limit(12) + 1
    distinct, _ = factorize(KroneckerOperator(K, np.diag(1.0 + np.arange(many))))
    distinct.solve(np.ones((12, many, 1)), 1.0)
    assert distinct.system._reflectors is not None


def test_conjugate_gradients_report_their_residual():
    operator = KERNELS["sum of separable"](X)
    factor, _ = factorize(operator, "cg", tol=1e-6)
    solved = factor.solve(R, 0.01)
    error = R - (operator @ solved.reshape(-1, 2)).reshape(R.shape) - 0.01 * solved
    relative = np.linalg.norm(error, axis=(0, 1)) / np.linalg.norm(R, axis=(0, 1))
    assert factor.residual == pytest.approx(relative.max())
    assert 0 < factor.residual < 1e-5
    assert 1 < factor.n_iter < 36
    np.testing.assert_array_equal(factor.solve(np.zeros_like(R), 0.01), 0.0)


def test_nystroem_preconditioner_is_exact_on_low_rank():
    """On a Gram matrix of lower rank than the sketch, it inverts G + alpha I up to a factor."""
    Z = rng.normal(size=(36, 8))
    operator = DenseOperator((Z @ Z.T).reshape(12, P, 12, P).swapaxes(1, 2))
    applied = NystroemPreconditioner(operator).solve(R, 0.3).reshape(-1, 2)
    back = (Z @ Z.T + 0.3 * np.eye(36)) @ applied
    np.testing.assert_allclose(back, 0.3 * R.reshape(-1, 2), atol=1e-6)


def test_nystroem_preconditioner_saves_iterations():
    points = rng.normal(size=(200, D))
    operator = (KERNELS["kraus"] + KERNELS["separable rbf"])(points)
    factor, _ = factorize(operator, "cg")
    right = rng.normal(size=(200, P, 1))
    factor.solve(right, 0.01)
    with_sketch = factor.n_iter

    class Nothing:
        def solve(self, V, alpha):
            return V

    factor._preconditioner = Nothing()
    factor.solve(right, 0.01)
    assert with_sketch < factor.n_iter / 2


def test_preconditioner_of_a_sum_is_the_nearest_kronecker_product():
    operator = KERNELS["sum of separable"](X)
    assert isinstance(operator, SumOfKroneckersOperator)
    nearest = nearest_kronecker_of_sum(operator).to_dense()
    G = operator.to_dense()
    values = operator_schmidt(G, (12, P)).values
    assert np.linalg.norm(G - nearest) == pytest.approx(np.linalg.norm(values[1:]), rel=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dense_size", [10, 3000])
def test_lowest_eigenvalue(name, dense_size, monkeypatch):
    monkeypatch.setattr(registry, "DENSE_SIZE", dense_size)
    eigenvalues = np.linalg.eigvalsh(reference.dense_from_blocks(KERNELS[name].blocks(X)))
    lowest, scale = lowest_eigenvalue(KERNELS[name](X))
    assert lowest == pytest.approx(eigenvalues[0], abs=1e-3 * scale)
    assert scale == pytest.approx(np.abs(eigenvalues).max(), rel=1e-3)
