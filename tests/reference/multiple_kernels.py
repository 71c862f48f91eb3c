"""Multiple kernel learning by definition: dense Gram matrices of n p rows."""

import numpy as np
from scipy.linalg import solve

from reference.convex import separable_ridge


def gram(kernels, output_kernels):
    return sum(np.kron(K, T) for K, T in zip(kernels, output_kernels, strict=True))


def ridge(kernels, output_kernels, Y, alpha):
    """Coefficients (n, p) and y^T (G + alpha I)^-1 y / 2."""
    G = gram(kernels, output_kernels)
    G[np.diag_indices(len(G))] += alpha
    c = solve(G, Y.reshape(-1), assume_a="pos", overwrite_a=True)
    return c.reshape(Y.shape), 0.5 * Y.reshape(-1) @ c


def dual_norm(s, norm):
    return s.max() if norm == 1.0 else np.sum(s ** (norm / (norm - 1))) ** (1 - 1 / norm)


def weights_gap(kernels, bases, Y, alpha, d, norm):
    """Objective and gap of weights d_j of K_j kron bases_j in the unit ball."""
    C, value = ridge(kernels, d[:, None, None] * bases, Y, alpha)
    s = np.array([np.sum((C.T @ K @ C) * T) for K, T in zip(kernels, bases, strict=True)])
    return value, 0.5 * (dual_norm(s, norm) - d @ s)


def own_gap(kernels, T, Y, alpha, norm=1.0):
    """Objective and gap of T_j in one Schatten ball of radius p^(1 / norm)."""
    C, value = ridge(kernels, T, Y, alpha)
    S = np.array([C.T @ K @ C for K in kernels])
    levels = np.maximum(np.linalg.eigvalsh(S).ravel(), 0.0)
    return value, 0.5 * (Y.shape[1] ** (1 / norm) * dual_norm(levels, norm) - np.sum(S * T))


def own_bound(kernels, Y, C, alpha, norm=1.0):
    """Dual value of coefficients C: no T_j in that ball have a lower objective."""
    levels = np.maximum(np.linalg.eigvalsh([C.T @ K @ C for K in kernels]).ravel(), 0.0)
    return (
        np.sum(C * Y)
        - alpha / 2 * np.sum(C**2)
        - 0.5 * Y.shape[1] ** (1 / norm) * dual_norm(levels, norm)
    )


def measured_ridge(kernels, output_kernels, Y, weights, alpha, centred):
    """Coefficients (n, p), zero in blanks, and the objective y^T (G + alpha W^-1)^-1 y / 2 on measured cells.

    Intercepts are taken at their best, which makes the coefficients of every target sum to zero.
    """
    known = weights.reshape(-1) > 0.0
    G = gram(kernels, output_kernels)[np.ix_(known, known)]
    A = np.linalg.inv(G + np.diag(alpha / weights.reshape(-1)[known]))
    y = Y.reshape(-1)[known]
    if centred:
        ones = np.tile(np.eye(Y.shape[1]), (len(Y), 1))[known]  # (N, p)
        y = y - ones @ np.linalg.solve(ones.T @ A @ ones, ones.T @ A @ y)
    C = np.zeros(Y.size)
    C[known] = A @ y
    return C.reshape(Y.shape), 0.5 * y @ A @ y


def alternation(kernels, Y, alpha, norm, steps):
    """The published alternation: ridge regression, then d_j from the norms of f_j."""
    m, p = len(kernels), Y.shape[1]
    d = np.full(m, m ** (-1 / norm))
    for _ in range(steps):
        C, _ = ridge(kernels, d[:, None, None] * np.eye(p), Y, alpha)
        size = np.sqrt(
            [max(d_j**2 * np.sum(C * (K @ C)), 0.0) for d_j, K in zip(d, kernels, strict=True)]
        )
        d = size ** (2 / (norm + 1)) / np.sum(size ** (2 * norm / (norm + 1))) ** (1 / norm)
    return d


def shared_value(kernels, Y, alpha, d, L):
    """y^T (sum_j d_j K_j kron L + alpha I)^-1 y / 2."""
    return separable_ridge(np.einsum("m,mnl->nl", d, kernels), L, Y, alpha)[1]


def shared_alternation(kernels, Y, alpha, steps, start=None):
    """Blocks in turn, as Sindhwani et al. 2013: C, then L; C again, then weights.

    For functions that are fixed the best L of trace p is along (L C^T K C L)^(1/2), and the best
    weights are along the norms of f_j. Gives d and L.
    """
    m, p = len(kernels), Y.shape[1]
    d, L = (np.full(m, 1 / m), np.eye(p)) if start is None else start
    for _ in range(steps):
        K = np.einsum("m,mnl->nl", d, kernels)
        A = separable_ridge(K, L, Y, alpha)[0].reshape(Y.shape) @ L
        squares, V = np.linalg.eigh(A.T @ K @ A + 1e-8 * np.eye(p))
        levels = np.sqrt(np.maximum(squares, 0.0))
        L = (V * (p * levels / levels.sum())) @ V.T
        C = separable_ridge(K, L, Y, alpha)[0].reshape(Y.shape)
        size = d * np.sqrt([max(np.sum((C @ L) * (k @ C)), 0.0) for k in kernels])
        d = size / size.sum()
    return d, L
