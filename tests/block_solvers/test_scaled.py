import numpy as np
import pytest

from block_solvers.sample import X
from entangled_kernels.block_solvers.scaled import ScaledOperator, scale_rows
from entangled_kernels.linalg import KroneckerOperator, LowRankOperator, SumOfKroneckersOperator
from kernels.registry import KERNELS, P

STRUCTURED = (KroneckerOperator, LowRankOperator, SumOfKroneckersOperator)


@pytest.fixture
def scale(rng):
    scale = rng.uniform(0.5, 2.0, size=(len(X), P))
    scale[2, 1] = scale[5, 0] = 0.0
    return scale


@pytest.mark.parametrize("name", KERNELS)
def test_scaled_cells_equal_dense(name, scale, rng):
    operator = KERNELS[name](X)
    expected = np.diag(scale.reshape(-1)) @ operator.to_dense() @ np.diag(scale.reshape(-1))
    scaled = ScaledOperator(operator, scale)
    atol = 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(scaled.to_dense(), expected, atol=atol)
    V = rng.normal(size=(len(X) * P, 2))
    np.testing.assert_allclose(scaled @ V, expected @ V, atol=100 * atol)
    np.testing.assert_allclose(scaled.H @ V, expected.T @ V, atol=100 * atol)


@pytest.mark.parametrize("name", KERNELS)
def test_scaled_rows_equal_dense_and_keep_the_structure(name, scale):
    operator, s = KERNELS[name](X), scale[:, 2]
    scaled = scale_rows(operator, s)
    expected = np.kron(np.diag(s), np.eye(P)) @ operator.to_dense() @ np.kron(np.diag(s), np.eye(P))
    np.testing.assert_allclose(scaled.to_dense(), expected, atol=1e-12 * np.abs(expected).max())
    assert type(scaled) is (type(operator) if isinstance(operator, STRUCTURED) else ScaledOperator)
