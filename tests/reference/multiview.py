"""Multi-view metric learning by the published objective and alternation, on dense features."""

import numpy as np


def blocks(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def metric_penalty(A, sizes, sparse):
    """Squared Frobenius norm, or the sum of the norms of the blocks."""
    if not sparse:
        return np.sum(A**2)
    parts = blocks(sizes)
    return sum(np.linalg.norm(A[v, w]) for v in parts for w in parts)


def objective(U, sizes, Y, g, A, alpha, eta, sparse=False):
    """||Y - U g||^2 + alpha tr(g^T A^-1 g) + eta N(A); A may be singular beside g."""
    inner = np.trace(g.T @ np.linalg.pinv(A, rcond=1e-12, hermitian=True) @ g)
    return np.sum((Y - U @ g) ** 2) + alpha * inner + eta * metric_penalty(A, sizes, sparse)


def best_metric(g, sizes, alpha, eta, sparse=False):
    """The best A for g: (alpha g g^T / (2 eta))^(1/3), or for one target and blocks along g g^T."""
    if sparse:
        total = sum(np.linalg.norm(g[part]) for part in blocks(sizes))
        return np.sqrt(alpha / eta) * g @ g.T / total
    levels, V = np.linalg.eigh(alpha / (2 * eta) * g @ g.T)
    return (V * np.cbrt(np.maximum(levels, 0.0))) @ V.T


def loop(U, sizes, Y, alpha, eta, steps):
    """The published alternation from A = I: ridge regression for g, then the metric."""
    A = np.eye(U.shape[1])
    for _ in range(steps):
        g = A @ U.T @ np.linalg.solve(U @ A @ U.T + alpha * np.eye(len(U)), Y)
        A = best_metric(g, sizes, alpha, eta)
    return g, A


def group_lasso(U, sizes, y, penalty, steps):
    """Minimum of ||y - U g||^2 + penalty sum_v |g_v| by proximal gradient."""
    g = np.zeros(U.shape[1])
    step = 0.5 / np.linalg.norm(U, 2) ** 2
    for _ in range(steps):
        g = g - 2 * step * U.T @ (U @ g - y)
        for part in blocks(sizes):
            size = np.linalg.norm(g[part])
            g[part] *= max(1 - step * penalty / size, 0.0) if size > 0 else 0.0
    return g


def gap(kernels, Y, alpha, eta, output_kernels, weights, sparse):
    """Objective of the convex problem and its duality gap, from the Gram matrix of n p rows.

    Frobenius: output kernel learning on the summed kernel with ridge (eta alpha^2)^(1/3). Sparse:
    weights with penalty sum(d) / 2 and ridge sqrt(alpha eta), whose conjugate is infinite beyond s
    = 1: there what kernels can reach of c is shrunk.
    """
    rho = np.sqrt(alpha * eta) if sparse else np.cbrt(eta * alpha**2)
    G = sum(np.kron(K, T) for K, T in zip(kernels, output_kernels, strict=True))
    c = np.linalg.solve(G + rho * np.eye(len(G)), Y.reshape(-1))
    C, data = c.reshape(Y.shape), 0.5 * Y.reshape(-1) @ c
    if not sparse:
        L, S = output_kernels[0], C.T @ kernels.sum(axis=0) @ C
        value = data + 0.5 * np.sum(L**2)
        return value, value - (np.sum(C * Y) - 0.5 * rho * np.sum(C**2) - np.sum(S**2) / 8)
    largest = max(np.sum(C * (K @ C)) for K in kernels)
    values, U = np.linalg.eigh(kernels.sum(axis=0))
    U = U[:, values > 1e-10 * values[-1]]
    inside = U @ (U.T @ C)
    t = 1.0
    if largest > 1.0:
        t = min(1.0 / np.sqrt(largest), np.sum(inside * Y) / (rho * np.sum(inside**2)))
    C = C - (1.0 - t) * inside
    value = data + 0.5 * np.sum(weights)
    return value, value - (np.sum(C * Y) - 0.5 * rho * np.sum(C**2))
