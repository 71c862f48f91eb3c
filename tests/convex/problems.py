"""Small problems of the convex family."""

import numpy as np
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.convex import (
    Cluster,
    Elastic,
    Entrywise,
    KroneckerGram,
    OutputPenalty,
    Schatten,
    alpha_unit,
    reduce_problem,
)

ALPHAS = (0.01, 0.3, 5.0, 100.0)


def penalties(k):
    """One of every kind, for k levels."""
    return [
        Schatten(2.0),
        Schatten(4 / 3),
        Schatten(1.0),
        Schatten(1.0, radius=float(k)),
        Schatten(1.5, radius=k ** (2 / 3)),
        Elastic(0.5),
        Elastic(0.3, radius=0.5 * k),
        Entrywise(1),
        Entrywise(2),
        Entrywise(3, radius=k ** (5 / 6)),
        Cluster(0.2, 3.0, float(k)),
    ]


def label(penalty):
    return repr(penalty).replace("radius=None", "")


def make_gram(rng, q, k, alpha):
    mixing = rng.normal(size=(2, k))
    targets = rng.normal(size=(q, 2)) @ mixing + 0.3 * rng.normal(size=(q, k))
    return KroneckerGram(targets, alpha, np.sort(rng.gamma(0.5, size=q)) + 1e-3)


def random_psd(rng, k, rank=None):
    B = rng.normal(size=(k, rank or k))
    return B @ B.T


def make_problem(rng, n, p, columns=None, rank=2, noise=0.3):
    """Gram matrix (of low rank when columns are given) and targets with a shared part."""
    X = rng.normal(size=(n, columns or 4))
    K = X @ X.T if columns else rbf_kernel(X)
    Y = X @ rng.normal(size=(X.shape[1], rank)) @ rng.normal(size=(rank, p)) + noise * rng.normal(
        size=(n, p)
    )
    return K, Y


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, p = draw(st.integers(2, 12)), draw(st.integers(1, 6))
    K, Y = make_problem(rng, n, p, draw(st.sampled_from([None, 1, 3])))
    K *= 10.0 ** draw(st.integers(-4, 4))
    Y *= 10.0 ** draw(st.integers(-4, 4))
    rank = draw(st.sampled_from([None, 1, 2, 6]))
    alpha = 10.0 ** draw(st.floats(-3, 3)) * alpha_unit(
        reduce_problem(K, Y), OutputPenalty(rank=rank)
    )
    return K, Y, alpha, rank


def make_kernels(rng, n, p, m, linear=False):
    """Gram matrices of groups of two columns, and targets of which the first group decides most."""
    X = rng.normal(size=(n, 2 * m))
    groups = [X[:, 2 * j : 2 * j + 2] for j in range(m)]
    K = np.stack([A @ A.T if linear else rbf_kernel(A, gamma=0.5) for A in groups])
    Y = groups[0] @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    return K, Y


def draw_sizes(rng, largest):
    """Rows and outputs from 3 to 60, with a block Gram matrix of no more rows than the largest."""
    while True:
        n, p = rng.integers(3, 61, size=2)
        if n * p <= largest:
            return n, p


def random_stack(rng, m, p):
    B = rng.normal(size=(m, p, p))
    return B @ B.transpose(0, 2, 1) / p
