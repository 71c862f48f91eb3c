import numpy as np
import pytest

from entangled_kernels import OperatorValuedKernelRidge
from entangled_kernels.block_solvers.low_rank import LowRankFactor
from entangled_kernels.kernels import KrausKernel
from entangled_kernels.linalg import LowRankOperator
from kernels.draws import random_psd


@pytest.mark.parametrize("n", [2, 10])
@pytest.mark.parametrize(
    ("rank", "metric_rank"), [(1, None), (5, None), (20, None), (0, 1), (0, 4), (1, 1), (5, 4), (20, 4)]
)
def test_solutions_by_definition(rng, n, rank, metric_rank):
    """Fewer operators and more than the Gram matrix has rows, and none beside a metric."""
    Phi, Q = rng.normal(size=(n, 4)), rng.normal(size=(12, rank))
    metric = None if metric_rank is None else random_psd(rng, 4, metric_rank)
    operator = LowRankOperator(Phi, Phi, Q, 3, metric)
    factor, G, R = LowRankFactor(operator), operator.to_dense(), rng.normal(size=(n, 3, 2))
    for alpha in (0.1, 5.0):
        inverse = np.linalg.inv(G + alpha * np.eye(3 * n))
        expected = (inverse @ R.reshape(-1, 2)).reshape(R.shape)
        np.testing.assert_allclose(factor.solve(R, alpha), expected, atol=1e-8)
        blocks = np.stack([inverse[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(n)])
        np.testing.assert_allclose(factor.inverse_diagonal_blocks(alpha), blocks, atol=1e-8)


@pytest.mark.parametrize("metric_rank", [None, 2])
def test_masked_solutions_by_definition(rng, metric_rank):
    Phi, Q = rng.normal(size=(10, 4)), rng.normal(size=(12, 5))
    mask = rng.uniform(size=(10, 3)) * (rng.uniform(size=(10, 3)) > 0.3)
    metric = None if metric_rank is None else random_psd(rng, 4, metric_rank)
    operator = LowRankOperator(Phi, Phi, Q, 3, metric)
    factor, R = LowRankFactor(operator, mask), rng.normal(size=(10, 3, 2))
    M = np.diag(mask.reshape(-1))
    inverse = np.linalg.inv(M @ operator.to_dense() @ M + 0.1 * np.eye(30))
    np.testing.assert_allclose(factor.solve(R, 0.1), (inverse @ R.reshape(-1, 2)).reshape(R.shape), atol=1e-8)
    blocks = np.stack([inverse[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(10)])
    np.testing.assert_allclose(factor.inverse_diagonal_blocks(0.1), blocks, atol=1e-8)


def test_many_points_need_no_matrix_of_their_pairs(rng):
    """The Gram matrix would take 3 TB; the residual tells the solution."""
    n, alpha = 200_000, 0.5
    Phi = rng.normal(size=(n, 3))
    operator = LowRankOperator(Phi, Phi, rng.normal(size=(9, 2)), 3)
    R = rng.normal(size=(n, 3, 1))
    solved = LowRankFactor(operator).solve(R, alpha)
    residual = R.reshape(-1, 1) - operator @ solved.reshape(-1, 1) - alpha * solved.reshape(-1, 1)
    assert np.linalg.norm(residual) < 1e-8 * np.linalg.norm(R)


def test_eigenvalues_are_those_of_the_gram_matrix(rng):
    Phi, Q = rng.normal(size=(8, 4)), rng.normal(size=(12, 5))
    operator = LowRankOperator(Phi, Phi, Q, 3)
    largest = np.linalg.eigvalsh(operator.to_dense())[-5:]
    np.testing.assert_allclose(LowRankFactor(operator).s, largest, rtol=1e-9)


def test_without_operators_the_right_hand_side_is_divided_by_alpha(rng):
    Phi, R = rng.normal(size=(5, 4)), rng.normal(size=(5, 3, 2))
    factor = LowRankFactor(LowRankOperator(Phi, Phi, np.zeros((12, 0)), 3))
    np.testing.assert_array_equal(factor.solve(R, 0.5), R / 0.5)


def test_no_operators_at_all(rng):
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    model = OperatorValuedKernelRidge(KrausKernel(np.zeros((0, 2, 3)))).fit(X, Y)
    np.testing.assert_allclose(model.loo_residuals(), Y)
