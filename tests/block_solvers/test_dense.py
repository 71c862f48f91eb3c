import numpy as np
import pytest

from entangled_kernels.block_solvers.dense import DenseFactor, DenseSpectrum
from entangled_kernels.block_solvers.shifted import cholesky_limit
from entangled_kernels.linalg import DenseOperator
from kernels.draws import random_psd


def as_operator(G, p):
    n = len(G) // p
    return DenseOperator(G.reshape(n, p, n, p).swapaxes(1, 2))


def test_several_alphas_share_one_reduction(rng):
    G, R = random_psd(rng, 12), rng.normal(size=(4, 3, 2))
    factor = DenseFactor(as_operator(G, 3))
    for _ in range(20):
        factor.solve(R, 1.0)
    assert factor.system._reflectors is None
    for alpha in 1.0 + np.arange(cholesky_limit(12) + 1.0):
        expected = np.linalg.solve(G + alpha * np.eye(12), R.reshape(12, 2))
        np.testing.assert_allclose(factor.solve(R, alpha).reshape(12, 2), expected, atol=1e-9)
    assert factor.system._reflectors is not None


def test_diagonal_blocks_of_the_inverse(rng):
    G = random_psd(rng, 12)
    blocks = DenseFactor(as_operator(G, 3)).inverse_diagonal_blocks(0.5)
    inverse = np.linalg.inv(G + 0.5 * np.eye(12))
    for i in range(4):
        np.testing.assert_allclose(blocks[i], inverse[3 * i : 3 * i + 3, 3 * i : 3 * i + 3], atol=1e-10)


def test_an_indefinite_matrix_is_refused_with_a_way_out():
    factor = DenseFactor(as_operator(np.diag([1.0, -2.0, 1.0, 1.0]), 2))
    with pytest.raises(np.linalg.LinAlgError, match=r"plus 0\.1 times .* or use indefinite='krein'"):
        factor.solve(np.ones((2, 2, 1)), 0.1)


def test_spectrum_of_a_psd_matrix_solves_the_plain_system(rng):
    operator, R = as_operator(random_psd(rng, 12, 5), 3), rng.normal(size=(4, 3, 2))
    plain, spectrum = DenseFactor(operator), DenseSpectrum(operator)
    np.testing.assert_allclose(spectrum.solve(R, 0.7), plain.solve(R, 0.7), atol=1e-10)
    np.testing.assert_allclose(
        spectrum.inverse_diagonal_blocks(0.7), plain.inverse_diagonal_blocks(0.7), atol=1e-10
    )


def test_spectrum_minimises_the_stabilised_objective(rng):
    """No other c has a smaller ||y - G c||^2 + alpha c^T |G| c."""
    B = rng.normal(size=(6, 6))
    G, y, alpha = B + B.T, rng.normal(size=(3, 2, 1)), 0.3
    s, E = np.linalg.eigh(G)
    absolute = (E * np.abs(s)) @ E.T

    def objective(c):
        return np.sum((y.ravel() - G @ c) ** 2) + alpha * c @ absolute @ c

    best = DenseSpectrum(as_operator(G, 2)).solve(y, alpha).ravel()
    for size in (1e-3, 0.1, 1.0):
        assert objective(best) < objective(best + size * rng.normal(size=6))
