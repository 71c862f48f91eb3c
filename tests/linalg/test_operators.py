import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from entangled_kernels.linalg import (
    DenseOperator,
    FunctionOperator,
    HadamardOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
    SumOperator,
    operators,
)

N, T_, P, M, R = 7, 5, 3, 4, 6
OPERATORS = {}


def register(build):
    OPERATORS[build.__name__] = build
    return build


def normal(rng, dtype, *shape):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if dtype is complex else real


def as_dense(blocks):
    return np.block([list(row) for row in blocks])


@register
def dense(rng, dtype, n, t):
    blocks = normal(rng, dtype, n, t, P, P)
    return DenseOperator(blocks), as_dense(blocks)


@register
def function(rng, dtype, n, t):
    blocks = normal(rng, dtype, n, t, P, P)
    operator = FunctionOperator(lambda rows: blocks[rows], lambda cols: blocks[:, cols], n, t, P, dtype)
    return operator, as_dense(blocks)


@register
def kronecker(rng, dtype, n, t):
    K, T = normal(rng, dtype, n, t), normal(rng, dtype, P, P)
    return KroneckerOperator(K, T), np.kron(K, T)


@register
def low_rank_kronecker(rng, dtype, n, t):
    Phi, Psi, T = normal(rng, dtype, n, M), normal(rng, dtype, t, M), normal(rng, dtype, P, P)
    return LowRankKroneckerOperator(Phi, Psi, T), np.kron(Phi @ Psi.conj().T, T)


@register
def sum_of_kroneckers(rng, dtype, n, t):
    Ks, Ts = normal(rng, dtype, 3, n, t), normal(rng, dtype, 3, P, P)
    return SumOfKroneckersOperator(Ks, Ts), sum(np.kron(K, T) for K, T in zip(Ks, Ts, strict=True))


@register
def low_rank(rng, dtype, n, t):
    Phi, Psi, Q = normal(rng, dtype, n, M), normal(rng, dtype, t, M), normal(rng, dtype, M * P, R)
    expected = np.kron(Phi, np.eye(P)) @ Q @ Q.conj().T @ np.kron(Psi, np.eye(P)).conj().T
    return LowRankOperator(Phi, Psi, Q, P), expected


@register
def low_rank_with_metric(rng, dtype, n, t):
    Phi, Psi, Q = normal(rng, dtype, n, M), normal(rng, dtype, t, M), normal(rng, dtype, M * P, R)
    A = normal(rng, dtype, M, M)
    D = np.kron(A, np.eye(P)) + Q @ Q.conj().T
    expected = np.kron(Phi, np.eye(P)) @ D @ np.kron(Psi, np.eye(P)).conj().T
    return LowRankOperator(Phi, Psi, Q, P, A), expected


@register
def weighted_sum(rng, dtype, n, t):
    (a, A), (b, B) = kronecker(rng, dtype, n, t), low_rank(rng, dtype, n, t)
    return SumOperator([a, b], [1.0, -2.0]), A - 2 * B


@register
def hadamard(rng, dtype, n, t):
    (a, A), (b, B) = kronecker(rng, dtype, n, t), low_rank(rng, dtype, n, t)
    return HadamardOperator(a, b), A * B


@pytest.fixture(params=[1, 10**6], ids=["one_row_at_a_time", "one_chunk"])
def chunk(request, monkeypatch):
    monkeypatch.setattr(operators, "CHUNK_NUMBERS", request.param)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(N, T_), (T_, N), (N, N)])
@pytest.mark.parametrize("build", OPERATORS.values(), ids=OPERATORS.keys())
def test_lazy_equals_dense(build, shape, dtype, chunk):
    rng = np.random.default_rng(0)
    operator, expected = build(rng, dtype, *shape)
    assert isinstance(operator, LinearOperator)
    assert operator.shape == expected.shape
    assert operator.dtype == expected.dtype
    close = {"rtol": 1e-12, "atol": 1e-10}
    np.testing.assert_allclose(operator.to_dense(), expected, **close)
    n, t = shape
    blocks = expected.reshape(n, P, t, P).swapaxes(1, 2)
    np.testing.assert_allclose(operator.blocks(), blocks, **close)
    np.testing.assert_allclose(operator.block_rows(slice(1, 3)), blocks[1:3], **close)
    diagonal = blocks[np.arange(min(n, t)), np.arange(min(n, t))]
    np.testing.assert_allclose(operator.diagonal_blocks(), diagonal, **close)
    for columns in (1, 4):
        V, W = normal(rng, dtype, t * P, columns), normal(rng, dtype, n * P, columns)
        np.testing.assert_allclose(operator @ V, expected @ V, **close)
        np.testing.assert_allclose(operator.H @ W, expected.conj().T @ W, **close)
        np.testing.assert_allclose(operator.T @ W, expected.T @ W, **close)
    np.testing.assert_allclose(operator @ V[:, 0], expected @ V[:, 0], **close)
    np.testing.assert_allclose(operator.rmatvec(W[:, 0]), expected.conj().T @ W[:, 0], **close)


def test_composes_with_scipy_operators():
    operator, expected = kronecker(np.random.default_rng(0), float, N, N)
    shifted = operator + 2.0 * aslinearoperator(np.eye(N * P))
    v = np.arange(N * P, dtype=float)
    np.testing.assert_allclose(shifted @ v, expected @ v + 2.0 * v)


def test_hadamard_needs_equal_shapes():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="second has shape"):
        HadamardOperator(kronecker(rng, float, N, T_)[0], kronecker(rng, float, T_, N)[0])


def test_low_rank_operator_without_any_rank(rng):
    Phi = rng.normal(size=(3, 4))
    operator = LowRankOperator(Phi, Phi, np.zeros((8, 0)), 2, np.eye(4))
    np.testing.assert_allclose(operator.to_dense(), np.kron(Phi @ Phi.T, np.eye(2)))
    assert operator.blocks().shape == (3, 3, 2, 2)
