import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.linalg import (
    is_ppt,
    nearest_kronecker,
    negativity,
    operator_schmidt,
    partial_transpose_eigenvalues,
    realignment,
)
from linalg.states import BELL, horodecki, random_psd, separable_mixture, werner

dimensions = st.tuples(st.integers(1, 4), st.integers(1, 4))
seeds = st.integers(0, 2**32 - 1)


def test_bell_state():
    assert not is_ppt(BELL, (2, 2))
    np.testing.assert_allclose(partial_transpose_eigenvalues(BELL, (2, 2))[0], -0.5, atol=1e-14)
    np.testing.assert_allclose(negativity(BELL, (2, 2)), 0.5, atol=1e-14)
    np.testing.assert_allclose(realignment(BELL, (2, 2)), 2.0, atol=1e-14)
    np.testing.assert_allclose(operator_schmidt(BELL, (2, 2)).values, 0.5, atol=1e-14)


@pytest.mark.parametrize("distance", [1e-6, 1e-3, 0.1, 0.3])
def test_werner_states_change_verdict_at_one_third(distance):
    below, above = werner(1 / 3 - distance), werner(1 / 3 + distance)
    assert is_ppt(below, (2, 2))
    assert not is_ppt(above, (2, 2))
    np.testing.assert_allclose(negativity(above, (2, 2)), 3 * distance / 4, rtol=1e-6)


@given(dims=dimensions, n_terms=st.integers(1, 5), seed=seeds)
def test_separable_mixtures_pass_every_test(dims, n_terms, seed):
    rho = separable_mixture(seed, dims, n_terms)
    rho /= np.trace(rho).real
    assert is_ppt(rho, dims)
    np.testing.assert_allclose(negativity(rho, dims), 0.0, atol=1e-12)
    assert realignment(rho, dims) <= 1 + 1e-12


@pytest.mark.parametrize("a", [0.1, 0.225, 0.5, 0.8])
def test_bound_entanglement_is_silent_in_ppt_and_found_by_realignment(a):
    rho = horodecki(a)
    np.testing.assert_allclose(np.trace(rho), 1.0)
    assert np.linalg.eigvalsh(rho)[0] > -1e-14
    assert is_ppt(rho, (3, 3))
    assert realignment(rho, (3, 3)) > 1


@pytest.mark.parametrize("dtype", [float, complex])
@given(dims=dimensions, seed=seeds)
def test_schmidt_terms_sum_to_the_matrix(dims, seed, dtype):
    A = random_psd(np.random.default_rng(seed), dims[0] * dims[1], dtype)[
        ::-1
    ]  # not Hermitian either
    values, left, right = operator_schmidt(A, dims)
    rebuilt = sum(s * np.kron(B, C) for s, B, C in zip(values, left, right, strict=True))
    np.testing.assert_allclose(rebuilt, A, atol=1e-11)
    for factors in (left, right):
        flat = factors.reshape(len(factors), -1)
        np.testing.assert_allclose(flat @ flat.conj().T, np.eye(len(flat)), atol=1e-12)


@pytest.mark.parametrize("dtype", [float, complex])
@given(dims=dimensions, seed=seeds)
def test_nearest_kronecker_is_psd_and_optimal(dims, seed, dtype):
    A = random_psd(np.random.default_rng(seed), dims[0] * dims[1], dtype)
    B, C = nearest_kronecker(A, dims)
    values = operator_schmidt(A, dims).values
    np.testing.assert_allclose(
        np.linalg.norm(A - np.kron(B, C)) ** 2, np.sum(values[1:] ** 2), atol=1e-9 * values[0] ** 2
    )
    for factor in (B, C):
        np.testing.assert_allclose(factor, factor.conj().T, atol=1e-10 * values[0])
        assert np.linalg.eigvalsh(factor)[0] > -1e-10 * values[0]


def test_nearest_kronecker_is_psd_where_the_leading_value_is_repeated():
    B, C = nearest_kronecker(BELL, (2, 2))  # all four Schmidt values are equal
    np.testing.assert_allclose(np.kron(B, C), np.eye(4) / 4, atol=1e-12)


def test_nearest_kronecker_of_a_traceless_product():
    A = np.kron(np.diag([1.0, -1.0]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(np.kron(*nearest_kronecker(A, (2, 2))), A, atol=1e-12)


def test_stacks_are_treated_matrix_by_matrix():
    A = np.stack([BELL, werner(0.2), werner(0.9)])
    np.testing.assert_array_equal(is_ppt(A, (2, 2)), [False, True, False])
    for function in (negativity, realignment, partial_transpose_eigenvalues):
        stacked = function(A, (2, 2))
        np.testing.assert_allclose(stacked, [function(matrix, (2, 2)) for matrix in A], atol=1e-14)
    B, C = nearest_kronecker(A, (2, 2))
    for i, matrix in enumerate(A):
        np.testing.assert_allclose(
            np.kron(B[i], C[i]), np.kron(*nearest_kronecker(matrix, (2, 2))), atol=1e-12
        )
    assert operator_schmidt(A, (2, 2)).left.shape == (3, 4, 2, 2)


def test_matrices_must_be_hermitian():
    with pytest.raises(ValueError, match="A must be Hermitian"):
        is_ppt(np.triu(np.ones((4, 4))), (2, 2))


@pytest.mark.parametrize("dims", [(2, 2), (2, 3), (3, 4)])
def test_agrees_with_qutip(dims):
    qutip = pytest.importorskip("qutip", reason="cross-check against QuTiP, from the dev extra")
    A = random_psd(np.random.default_rng(0), dims[0] * dims[1])
    A /= np.trace(A).real
    state = qutip.Qobj(A, dims=[list(dims), list(dims)])
    np.testing.assert_allclose(negativity(A, dims), qutip.negativity(state, 0), atol=1e-12)
