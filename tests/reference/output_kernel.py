"""Output kernel learning by definition: Kronecker products, finite differences, the published updates."""

import numpy as np


def objective(K, Y, C, L, alpha, rank=None):
    """The published objective: Frobenius penalty, or the trace when a rank is given."""
    residual = Y - K @ C @ L
    penalty = np.sum(L**2) if rank is None else np.trace(L)
    return np.sum(residual**2) / (2 * alpha) + np.trace(C.T @ K @ C @ L) / 2 + penalty / 2


def sylvester(K, Y, L, alpha):
    """K C L + alpha C = Y as one linear system of n p unknowns, row-major."""
    n, p = Y.shape
    return np.linalg.solve(np.kron(K, L.T) + alpha * np.eye(n * p), Y.reshape(-1)).reshape(n, p)


def reduced_objective(K, Y, L, alpha, rank=None):
    return objective(K, Y, sylvester(K, Y, L, alpha), L, alpha, rank)


def directional_derivative(function, at, direction, step=1e-5):
    """Central difference."""
    return (function(at + step * direction) - function(at - step * direction)) / (2 * step)


def published_update(K, Y, C, alpha):
    """Symmetric minimiser of the objective for fixed C, from its normal equations.

    d/dL of the objective is F^T (F L - Y) / alpha + C^T F / 2 + L with F = K C; its symmetric part
    is zero.
    """
    p = Y.shape[1]
    F = K @ C
    basis = []
    for i in range(p):
        for j in range(i, p):
            E = np.zeros((p, p))
            E[i, j] = E[j, i] = 1.0
            basis.append(E)
    H = np.array(
        [[np.sum((F @ D) * (F @ E)) / alpha + np.sum(D * E) for E in basis] for D in basis]
    )
    g = np.array([np.sum(D * (F.T @ Y / alpha - C.T @ F / 2)) for D in basis])
    return sum(x * E for x, E in zip(np.linalg.solve(H, g), basis, strict=True))


def alternate(K, Y, alpha, steps):
    """The published alternation from L = I: the Sylvester equation, then L for fixed C."""
    L = np.eye(Y.shape[1])
    for _ in range(steps):
        L = published_update(K, Y, sylvester(K, Y, L, alpha), alpha)
    return L
