import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.linalg import (
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    is_identity,
    multiple_of_identity,
)
from linalg.registry import OPERATORS, T_, N, P

STRUCTURED = [
    "kronecker",
    "low_rank_kronecker",
    "sum_of_kroneckers",
    "low_rank",
    "low_rank_with_metric",
]


@given(p=st.integers(1, 5), c=st.floats(-1e6, 1e6))
def test_multiples_of_the_identity_give_their_factor(p, c):
    assert multiple_of_identity(c * np.eye(p)) == c
    changed = c * np.eye(p)
    changed[0, -1] += 1.0
    assert multiple_of_identity(changed) == (c + 1.0 if p == 1 else None)


def test_is_identity():
    assert is_identity(np.eye(3))
    assert is_identity(np.zeros((0, 0)))
    for other in (
        2.0 * np.eye(3),
        np.eye(3)[:2],
        np.eye(3)[::-1],
        np.eye(3) + 1e-300,
        np.zeros((3, 0)),
    ):
        assert not is_identity(other)


@pytest.mark.parametrize("c", [2.5, 0.0, -1.0, 1j])
@pytest.mark.parametrize("columns", [1, 4])
def test_outputs_that_share_one_scalar_kernel(rng, c, columns):
    Phi, Psi, T = rng.normal(size=(N, 2)), rng.normal(size=(T_, 2)), c * np.eye(P)
    V = rng.normal(size=(T_ * P, columns))
    expected = np.kron(Phi @ Psi.T, T) @ V
    np.testing.assert_allclose(KroneckerOperator(Phi @ Psi.T, T) @ V, expected, atol=1e-12)
    np.testing.assert_allclose(LowRankKroneckerOperator(Phi, Psi, T) @ V, expected, atol=1e-12)


@pytest.mark.parametrize("name", STRUCTURED)
def test_adjoints_keep_the_structure(name):
    operator, dense = OPERATORS[name](np.random.default_rng(0), complex, N, T_)
    assert type(operator.adjoint()) is type(operator)
    np.testing.assert_allclose(operator.adjoint().to_dense(), dense.conj().T, atol=1e-12)
    np.testing.assert_allclose(operator.adjoint().adjoint().to_dense(), dense, atol=1e-12)


@pytest.mark.parametrize("build", [LowRankKroneckerOperator, LowRankOperator])
def test_low_rank_products_form_nothing_of_the_size_of_the_matrix(rng, build):
    """The matrix would take 80 GB."""
    n, m = 20_000, 2
    Phi = rng.normal(size=(n, m))
    last = (
        rng.normal(size=(5, 5))
        if build is LowRankKroneckerOperator
        else rng.normal(size=(m * 5, 3))
    )
    operator = (
        build(Phi, Phi, last) if build is LowRankKroneckerOperator else build(Phi, Phi, last, 5)
    )
    V = rng.normal(size=(n * 5, 2))
    product = operator @ V
    for i in (0, n - 1):
        row = operator.block_rows(slice(i, i + 1))[0]  # (n, 5, 5)
        expected = np.einsum("top,tpc->oc", row, V.reshape(n, 5, 2))
        np.testing.assert_allclose(product[5 * i : 5 * i + 5], expected, rtol=1e-9, atol=1e-9)
    assert operator.diagonal_blocks().shape == (n, 5, 5)


def test_low_rank_operator_without_any_rank(rng):
    Phi = rng.normal(size=(3, 4))
    operator = LowRankOperator(Phi, Phi, np.zeros((8, 0)), 2, np.eye(4))
    np.testing.assert_allclose(operator.to_dense(), np.kron(Phi @ Phi.T, np.eye(2)))
    assert operator.blocks().shape == (3, 3, 2, 2)
