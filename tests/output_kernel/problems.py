"""Small problems of output kernel learning."""

import numpy as np
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.output_kernel import alpha_unit, reduce_problem

ALPHAS = (0.01, 0.3, 5.0, 100.0)


def make_problem(rng, n, p, columns=None, rank=2, noise=0.3):
    """Gram matrix (of low rank when columns are given) and targets with a shared part."""
    X = rng.normal(size=(n, columns or 4))
    K = X @ X.T if columns else rbf_kernel(X)
    Y = X @ rng.normal(size=(X.shape[1], rank)) @ rng.normal(size=(rank, p)) + noise * rng.normal(size=(n, p))
    return K, Y


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, p = draw(st.integers(2, 12)), draw(st.integers(1, 6))
    K, Y = make_problem(rng, n, p, draw(st.sampled_from([None, 1, 3])))
    K *= 10.0 ** draw(st.integers(-4, 4))
    Y *= 10.0 ** draw(st.integers(-4, 4))
    rank = draw(st.sampled_from([None, 1, 2, 6]))
    alpha = 10.0 ** draw(st.floats(-3, 3)) * alpha_unit(reduce_problem(K, Y), rank=rank)
    return K, Y, alpha, rank


def output_matrix(problem, point):
    """L in all outputs, from a point in the reduced ones."""
    V = problem.outputs @ point.V
    return (V * point.levels) @ V.T
