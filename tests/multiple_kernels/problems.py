"""Small problems of multiple kernel learning."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel


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
