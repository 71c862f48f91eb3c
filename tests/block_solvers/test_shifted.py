import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.block_solvers.shifted import ShiftedSystem, cholesky_limit


@pytest.mark.parametrize("n", [1, 2, 3, 20])
@pytest.mark.parametrize("reduced", [True, False])
def test_shifted_systems(rng, n, reduced):
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


@given(n=st.integers(1, 12), columns=st.integers(0, 5), seed=st.integers(0, 2**32 - 1))
def test_the_reduction_changes_no_solution_and_not_the_matrix(n, columns, seed):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n))
    A, right, shifts = B @ B.T, rng.normal(size=(n, columns)), rng.uniform(0.1, 10, size=columns)
    kept = A.copy()
    system = ShiftedSystem(A)
    plain = system.solve(shifts, right)
    system.reduce()
    system.reduce()
    np.testing.assert_allclose(system.solve(shifts, right), plain, atol=1e-8 * np.abs(plain).max(initial=0.0))
    np.testing.assert_array_equal(A, kept)


@pytest.mark.parametrize("reduced", [True, False])
def test_the_lower_triangle_is_not_read(rng, reduced):
    B = rng.normal(size=(6, 6))
    A, right = B @ B.T, rng.normal(size=(6, 2))
    system = ShiftedSystem(np.triu(A) + np.tril(rng.normal(size=(6, 6)), -1))
    if reduced:
        system.reduce()
    np.testing.assert_allclose(system.solve(np.ones(2), right), np.linalg.solve(A + np.eye(6), right))


def test_equal_shifts_share_a_factorisation(rng, monkeypatch):
    system, seen = ShiftedSystem(np.eye(4)), []
    solve = system._solve_cholesky
    monkeypatch.setattr(system, "_solve_cholesky", lambda shift, R: (seen.append(shift), solve(shift, R))[1])
    system.solve(np.array([2.0, 1.0, 2.0, 2.0]), rng.normal(size=(4, 4)))
    assert seen == [1.0, 2.0]


def test_more_factorisations_are_worth_it_for_larger_matrices():
    limits = [cholesky_limit(n) for n in (1, 1000, 1500, 2400, 3000, 10**6)]
    assert limits == [5, 5, 5, 8, 10, 10]
