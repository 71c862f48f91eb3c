import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.linalg import partial_trace, partial_transpose
from entangled_kernels.linalg.partial import as_bipartite
from linalg.states import random_psd

from reference import blocks as reference

dimensions = st.tuples(st.integers(1, 4), st.integers(1, 4))
seeds = st.integers(0, 2**32 - 1)


def random_matrix(seed, size, lead=(), dtype=complex):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(*lead, size, size))
    return A + 1j * rng.normal(size=A.shape) if dtype is complex else A


@given(dims=dimensions, seed=seeds)
def test_each_index_gets_an_axis(dims, seed):
    (d0, d1), A = dims, random_matrix(seed, dims[0] * dims[1])
    A4 = as_bipartite(A, dims)
    assert A4.shape == (d0, d1, d0, d1)
    for i, a, j, b in np.ndindex(A4.shape):
        assert A4[i, a, j, b] == A[i * d1 + a, j * d1 + b]


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("keep", [0, 1])
@given(dims=dimensions, seed=seeds)
def test_partial_trace_is_the_sum_over_one_index(dims, seed, keep, dtype):
    A = random_matrix(seed, dims[0] * dims[1], dtype=dtype)
    np.testing.assert_allclose(
        partial_trace(A, dims, keep), reference.partial_trace(A, dims, keep), atol=1e-12
    )


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("system", [0, 1])
@given(dims=dimensions, seed=seeds)
def test_partial_transpose_swaps_one_pair_of_indices(dims, seed, system, dtype):
    A = random_matrix(seed, dims[0] * dims[1], dtype=dtype)
    expected = reference.partial_transpose(A, dims, system)
    np.testing.assert_array_equal(partial_transpose(A, dims, system), expected)


@given(dims=dimensions, seed=seeds)
def test_invariants(dims, seed):
    A = random_matrix(seed, dims[0] * dims[1])
    trace = np.trace(A)
    np.testing.assert_allclose(np.trace(partial_trace(A, dims, 0)), trace)
    np.testing.assert_allclose(np.trace(partial_trace(A, dims, 1)), trace)
    twice = partial_transpose(partial_transpose(A, dims), dims)
    np.testing.assert_array_equal(twice, A)
    both = partial_transpose(partial_transpose(A, dims, 0), dims, 1)
    np.testing.assert_array_equal(both, A.T)


@given(dims=dimensions, seed=seeds)
def test_partial_trace_of_a_product(dims, seed):
    B, C = random_matrix(seed, dims[0]), random_matrix(seed + 1, dims[1])
    np.testing.assert_allclose(partial_trace(np.kron(B, C), dims, 0), np.trace(C) * B, atol=1e-12)
    np.testing.assert_allclose(partial_trace(np.kron(B, C), dims, 1), np.trace(B) * C, atol=1e-12)


def test_stacks_are_treated_matrix_by_matrix():
    A = random_matrix(0, 6, lead=(2, 5))
    for function in (partial_trace, partial_transpose):
        stacked = function(A, (2, 3))
        for i, j in np.ndindex(2, 5):
            np.testing.assert_allclose(stacked[i, j], function(A[i, j], (2, 3)))


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"A has shape \(5, 5\), but dims=\(2, 3\)"):
        partial_trace(np.eye(5), (2, 3))
    with pytest.raises(ValueError, match="keep must be 0"):
        partial_trace(np.eye(6), (2, 3), keep=2)
    with pytest.raises(ValueError, match="system must be 0"):
        partial_transpose(np.eye(6), (2, 3), system=-1)


@pytest.mark.parametrize("dims", [(2, 2), (2, 3), (3, 4)])
def test_agrees_with_qutip(dims):
    qutip = pytest.importorskip("qutip", reason="cross-check against QuTiP, from the dev extra")
    A = random_psd(np.random.default_rng(0), dims[0] * dims[1])
    A /= np.trace(A).real
    state = qutip.Qobj(A, dims=[list(dims), list(dims)])
    for keep in (0, 1):
        np.testing.assert_allclose(
            partial_trace(A, dims, keep), state.ptrace(keep).full(), atol=1e-13
        )
    for system, mask in ((0, [1, 0]), (1, [0, 1])):
        expected = qutip.partial_transpose(state, mask).full()
        np.testing.assert_allclose(partial_transpose(A, dims, system), expected, atol=1e-13)
