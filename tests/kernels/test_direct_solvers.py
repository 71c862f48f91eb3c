"""Direct solvers against dense inverses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.kernels.direct_solvers import (
    DenseFactor,
    KroneckerFactor,
    KroneckerSpectrum,
    LowRankFactor,
    LowRankKroneckerFactor,
    ShiftedSystem,
    cholesky_limit,
    krein_inverse,
)
from entangled_kernels.linalg import (
    DenseOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
)
from kernels.draws import random_psd
from kernels.registry import P
from kernels.sample import MASK, X, check_factor, dense_system


def reduced(system):
    """The same system after so many shifts that it is reduced."""
    system.seen.update(range(10))
    return system


@pytest.mark.parametrize("prepare", [reduced, lambda system: system])
@given(n=st.integers(1, 12), columns=st.integers(0, 5), seed=st.integers(0, 2**32 - 1))
def test_shifted_systems(n, columns, seed, prepare):
    """Only the upper triangle is read, and the matrix stays as it is."""
    rng = np.random.default_rng(seed)
    A, right = random_psd(rng, n), rng.normal(size=(n, columns))
    system = prepare(ShiftedSystem(np.triu(A) + np.tril(rng.normal(size=(n, n)), -1)))
    kept = system.A.copy()
    shifts = rng.choice([0.1, 1.0, 7.0], size=columns)
    solved = system.solve(shifts, right)
    for shift, x, r in zip(shifts, solved.T, right.T, strict=True):
        expected = np.linalg.solve(A + shift * np.eye(n), r)
        np.testing.assert_allclose(x, expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(system.A, kept)


@pytest.mark.parametrize("prepare", [reduced, lambda system: system])
def test_an_indefinite_matrix_is_refused_with_a_way_out(prepare):
    system = prepare(ShiftedSystem(np.diag([1.0, 2.0, -3.0, 1.0])))
    with pytest.raises(ValueError, match="Increase alpha"):
        system.solve(np.array([0.5]), np.ones((4, 1)))


OUTPUTS = {
    "identity": 2.0 * np.eye(3),
    "zero": np.zeros((3, 3)),
    "singular": np.diag([1.0, 0.0, 2.0]),
    "repeated": np.ones((3, 3)) + np.eye(3),
    "rotated": random_psd(np.random.default_rng(0), 3),
}


@pytest.mark.parametrize("T", OUTPUTS.values(), ids=OUTPUTS.keys())
@pytest.mark.parametrize("factor", [KroneckerFactor, KroneckerSpectrum, LowRankKroneckerFactor])
@pytest.mark.parametrize("columns", [1, 3])
def test_every_kind_of_output_matrix(factor, T, columns):
    operator = LowRankKroneckerOperator(X, X, T)
    solver = factor(operator)
    for alpha in (0.1, 3.0):
        check_factor(solver, dense_system(operator, None, alpha), alpha, 3, columns=columns)


def test_many_distinct_output_eigenvalues_share_a_reduction():
    many = cholesky_limit(12) + 1
    operator = KroneckerOperator(X @ X.T, np.diag(1.0 + np.arange(many)))
    check_factor(KroneckerFactor(operator), dense_system(operator, None, 1.0), 1.0, many)


@pytest.mark.parametrize("krein", [True, False])
def test_spectrum_of_an_indefinite_product(rng, krein):
    B = rng.normal(size=(6, 6))
    K, T, alpha = B + B.T, np.diag([1.0, -0.5]), 0.37
    s, E = np.linalg.eigh(np.kron(K, T))
    system = np.sign(s) * (np.abs(s) + alpha) if krein else s + alpha
    spectrum = KroneckerSpectrum(KroneckerOperator(K, T), krein=krein)
    check_factor(spectrum, (E * system) @ E.T, alpha, 2)


def test_zero_eigenvalues_count_as_positive():
    s = np.array([0.5, 0.0, -1e-16, -1.0])
    np.testing.assert_allclose(krein_inverse(s, 0.5), [1.0, 2.0, 2.0, -1.0 / 1.5])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n", [2, 10])
@pytest.mark.parametrize(
    ("rank", "metric_rank"),
    [(0, None), (1, None), (5, None), (20, None), (0, 1), (0, 4), (1, 1), (5, 4), (20, 4)],
)
def test_low_rank_by_definition(rng, n, rank, metric_rank, masked):
    """Fewer operators and more than the Gram matrix has rows, none, and none beside a metric."""
    Phi, Q = rng.normal(size=(n, 4)), rng.normal(size=(12, rank))
    metric = None if metric_rank is None else random_psd(rng, 4, metric_rank)
    operator = LowRankOperator(Phi, Phi, Q, 3, metric)
    mask = MASK[:n] if masked else None
    factor = LowRankFactor(operator, mask)
    for alpha in (0.1, 5.0):
        A = dense_system(operator, mask**2 if masked else None, alpha)
        check_factor(factor, A, alpha, 3, atol=1e-7)


def test_low_rank_of_a_separable_kernel_with_a_mask():
    operator = LowRankKroneckerOperator(X, X, OUTPUTS["singular"])
    check_factor(LowRankFactor(operator, MASK), dense_system(operator, MASK**2, 0.3), 0.3, 3)


def test_many_points_need_no_matrix_of_their_pairs(rng):
    """The Gram matrix would take 3 TB; the residual checks the solution."""
    n, alpha = 200_000, 0.5
    Phi = rng.normal(size=(n, 3))
    operator = LowRankOperator(Phi, Phi, rng.normal(size=(9, 2)), 3)
    right = rng.normal(size=(n, 3, 1))
    solved = LowRankFactor(operator).solve(right, alpha).reshape(-1, 1)
    residual = right.reshape(-1, 1) - operator @ solved - alpha * solved
    assert np.linalg.norm(residual) < 1e-8 * np.linalg.norm(right)


def as_operator(G, p):
    n = len(G) // p
    return DenseOperator(G.reshape(n, p, n, p).swapaxes(1, 2))


@pytest.mark.parametrize("mask", [None, MASK], ids=["complete", "missing"])
@pytest.mark.parametrize("krein", [False, True])
def test_dense_by_definition(rng, krein, mask):
    """More alphas than share Cholesky factors; the stabilised problem of a psd matrix is the plain one."""
    operator = as_operator(random_psd(rng, 36, 20), P)
    factor = DenseFactor(operator, mask, krein=krein)
    for alpha in 1.0 + np.arange(cholesky_limit(36) + 2.0):
        check_factor(
            factor, dense_system(operator, None if mask is None else mask**2, alpha), alpha, P
        )


def test_spectrum_minimises_the_stabilised_objective(rng):
    """No other c has a smaller ||y - G c||^2 + alpha c^T |G| c."""
    B = rng.normal(size=(6, 6))
    G, y, alpha = B + B.T, rng.normal(size=(3, 2, 1)), 0.3
    s, E = np.linalg.eigh(G)
    absolute = (E * np.abs(s)) @ E.T

    def objective(c):
        return np.sum((y.ravel() - G @ c) ** 2) + alpha * c @ absolute @ c

    best = DenseFactor(as_operator(G, 2), krein=True).solve(y, alpha).ravel()
    for size in (1e-3, 0.1, 1.0):
        assert objective(best) < objective(best + size * rng.normal(size=6))
