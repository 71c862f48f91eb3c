import numpy as np
import pytest

from block_solvers.sample import X
from entangled_kernels.block_solvers import factorize
from entangled_kernels.block_solvers.kronecker import (
    KroneckerFactor,
    KroneckerSpectrum,
    LowRankKroneckerFactor,
    krein_inverse,
)
from entangled_kernels.block_solvers.shifted import cholesky_limit
from entangled_kernels.linalg import KroneckerOperator, LowRankKroneckerOperator
from kernels.draws import random_psd

OUTPUTS = {
    "identity": 2.0 * np.eye(3),
    "zero": np.zeros((3, 3)),
    "singular": np.diag([1.0, 0.0, 2.0]),
    "repeated": np.ones((3, 3)) + np.eye(3),
    "rotated": random_psd(np.random.default_rng(0), 3),
}
every_output = pytest.mark.parametrize("T", OUTPUTS.values(), ids=OUTPUTS.keys())


def inverse(K, T, alpha):
    G = np.kron(K, T)
    return np.linalg.inv(G + alpha * np.eye(len(G)))


def diagonal_blocks(A, p):
    n = len(A) // p
    return np.stack([A[i * p : i * p + p, i * p : i * p + p] for i in range(n)])


@every_output
@pytest.mark.parametrize("factor", [KroneckerFactor, KroneckerSpectrum, LowRankKroneckerFactor])
@pytest.mark.parametrize("columns", [1, 3])
def test_every_kind_of_output_matrix(rng, factor, T, columns):
    operator = LowRankKroneckerOperator(X, X, T)
    solver = factor(operator)
    R = rng.normal(size=(len(X), 3, columns))
    for alpha in (0.1, 3.0):
        dense = inverse(X @ X.T, T, alpha)
        expected = (dense @ R.reshape(-1, columns)).reshape(R.shape)
        np.testing.assert_allclose(solver.solve(R, alpha), expected, atol=1e-9 * np.abs(expected).max())
        blocks = solver.inverse_diagonal_blocks(alpha)
        np.testing.assert_allclose(blocks, diagonal_blocks(dense, 3), atol=1e-9)


def test_equal_output_eigenvalues_share_a_factorisation():
    K = X @ X.T
    shared, _ = factorize(KroneckerOperator(K, np.eye(8) + 1.0))
    shared.solve(np.ones((12, 8, 1)), 1.0)
    assert shared.system._reflectors is None
    many = cholesky_limit(12) + 1
    distinct, _ = factorize(KroneckerOperator(K, np.diag(1.0 + np.arange(many))))
    distinct.solve(np.ones((12, many, 1)), 1.0)
    assert distinct.system._reflectors is not None


@pytest.mark.parametrize("krein", [True, False])
def test_spectrum_of_an_indefinite_product(rng, krein):
    B = rng.normal(size=(6, 6))
    K, T = B + B.T, np.diag([1.0, -0.5])
    spectrum = KroneckerSpectrum(KroneckerOperator(K, T), krein=krein)
    R, alpha = rng.normal(size=(6, 2, 2)), 0.37
    s, E = np.linalg.eigh(np.kron(K, T))
    inverted = np.sign(s) / (np.abs(s) + alpha) if krein else 1.0 / (s + alpha)
    dense = (E * inverted) @ E.T
    np.testing.assert_allclose(spectrum.solve(R, alpha).reshape(-1, 2), dense @ R.reshape(-1, 2), atol=1e-9)
    np.testing.assert_allclose(spectrum.inverse_diagonal_blocks(alpha), diagonal_blocks(dense, 2), atol=1e-9)


def test_stabilised_inverse_is_the_plain_one_of_a_psd_spectrum(rng):
    s = np.concatenate([rng.uniform(size=5), [0.0, -1e-16]])
    np.testing.assert_allclose(krein_inverse(s, 0.5), 1.0 / (s + 0.5))
    np.testing.assert_allclose(krein_inverse(-np.ones(2), 0.5), -1.0 / 1.5)
    np.testing.assert_array_equal(krein_inverse(np.zeros(2), 0.5), 2.0)
