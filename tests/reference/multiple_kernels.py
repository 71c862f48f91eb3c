"""Multiple kernel learning by definition: dense Gram matrices of n p rows."""

import numpy as np


def gram(kernels, output_kernels):
    return sum(np.kron(K, T) for K, T in zip(kernels, output_kernels, strict=True))


def ridge(kernels, output_kernels, Y, alpha):
    """Coefficients (n, p) and y^T (G + alpha I)^-1 y / 2."""
    G = gram(kernels, output_kernels)
    c = np.linalg.solve(G + alpha * np.eye(len(G)), Y.reshape(-1))
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


def alternation(kernels, Y, alpha, norm, steps):
    """The published alternation: ridge regression, then d_j from the norms of f_j."""
    m, p = len(kernels), Y.shape[1]
    d = np.full(m, m ** (-1 / norm))
    for _ in range(steps):
        C, _ = ridge(kernels, d[:, None, None] * np.eye(p), Y, alpha)
        size = np.sqrt([max(d_j**2 * np.sum(C * (K @ C)), 0.0) for d_j, K in zip(d, kernels, strict=True)])
        d = size ** (2 / (norm + 1)) / np.sum(size ** (2 * norm / (norm + 1))) ** (1 / norm)
    return d
