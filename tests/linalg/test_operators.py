"""What every block operator promises, checked on every registered operator."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from entangled_kernels import linalg
from entangled_kernels.linalg import (
    BlockOperator,
    HadamardOperator,
    SumOperator,
    operators,
)
from linalg.registry import OPERATORS, T_, N, P, kronecker, normal


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


def test_every_operator_is_registered():
    offered = {value for value in vars(linalg).values() if isinstance(value, type)}
    offered = {kind for kind in offered if issubclass(kind, BlockOperator)} - {BlockOperator}
    built = {type(build(np.random.default_rng(0), float, N, N)[0]) for build in OPERATORS.values()}
    assert built == offered


def test_composes_with_scipy_operators():
    operator, expected = kronecker(np.random.default_rng(0), float, N, N)
    shifted = operator + 2.0 * aslinearoperator(np.eye(N * P))
    v = np.arange(N * P, dtype=float)
    np.testing.assert_allclose(shifted @ v, expected @ v + 2.0 * v)


def test_hadamard_needs_equal_shapes():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="second has shape"):
        HadamardOperator(kronecker(rng, float, N, T_)[0], kronecker(rng, float, T_, N)[0])


def test_sums_of_real_operators_with_complex_ones_are_complex():
    rng = np.random.default_rng(0)
    (real, A), (imaginary, B) = kronecker(rng, float, N, T_), kronecker(rng, complex, N, T_)
    total = SumOperator([real, imaginary], [2.0, 1.0])
    assert total.dtype == complex
    np.testing.assert_allclose(total.to_dense(), 2.0 * A + B)
