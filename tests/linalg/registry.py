"""Block operators beside their dense matrices: an operator is tested by being registered here."""

import numpy as np

from entangled_kernels.linalg import (
    DenseOperator,
    FunctionOperator,
    HadamardOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
    SumOperator,
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
    operator = FunctionOperator(
        lambda rows, columns: blocks[np.ix_(rows, columns)], np.arange(n), np.arange(t), P, dtype
    )
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
