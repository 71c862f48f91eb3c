"""Slow, obvious versions: loops over indices, dense Kronecker products, explicit inverses."""

import numpy as np


def partial_trace(A, dims, keep):
    d0, d1 = dims
    out = np.zeros((dims[keep],) * 2, dtype=A.dtype)
    for i in range(d0):
        for j in range(d0):
            for a in range(d1):
                for b in range(d1):
                    value = A[i * d1 + a, j * d1 + b]
                    if keep == 0 and a == b:
                        out[i, j] += value
                    if keep == 1 and i == j:
                        out[a, b] += value
    return out


def partial_transpose(A, dims, system):
    d0, d1 = dims
    out = np.zeros_like(A)
    for i in range(d0):
        for j in range(d0):
            for a in range(d1):
                for b in range(d1):
                    row, column = (
                        (i * d1 + b, j * d1 + a) if system == 1 else (j * d1 + a, i * d1 + b)
                    )
                    out[row, column] = A[i * d1 + a, j * d1 + b]
    return out


def entangled_blocks(U, T, Phi, Psi):
    """K(x, z) = tr_K(U (T kron phi(x) phi(z)^T) U^T) by its definition, for all pairs."""
    p, m = len(T), Phi.shape[1]
    out = np.zeros((len(Phi), len(Psi), p, p))
    for i, x in enumerate(Phi):
        for j, z in enumerate(Psi):
            P = U @ np.kron(T, np.outer(x, z)) @ U.T
            out[i, j] = [
                [np.trace(P[a * m : a * m + m, b * m : b * m + m]) for b in range(p)]
                for a in range(p)
            ]
    return out


def kraus_blocks(kraus, Phi, Psi, metric=None):
    out = np.zeros((len(Phi), len(Psi), kraus.shape[1], kraus.shape[1]))
    for i, x in enumerate(Phi):
        for j, z in enumerate(Psi):
            out[i, j] = sum(M @ np.outer(x, z) @ M.T for M in kraus)
            if metric is not None:
                out[i, j] += (x @ metric @ z) * np.eye(kraus.shape[1])
    return out


def choi(kraus):
    return sum(np.outer(M.ravel(order="F"), M.ravel(order="F").conj()) for M in kraus)


def dense_from_blocks(blocks):
    return np.block([list(row) for row in blocks])


def ridge_coefficients(G, Y, alpha):
    return np.linalg.solve(G + alpha * np.eye(len(G)), Y.reshape(-1)).reshape(Y.shape)


def loo_residuals(kernel, X, Y, alpha):
    """Refit without each sample in turn."""
    out = np.empty_like(Y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        G = dense_from_blocks(kernel.blocks(X[rest]))
        c = ridge_coefficients(G, Y[rest], alpha)
        out[i] = Y[i] - dense_from_blocks(kernel.blocks(X[i : i + 1], X[rest])) @ c.reshape(-1)
    return out


def std(kernel, X, Z, alpha):
    G = dense_from_blocks(kernel.blocks(X))
    cross = dense_from_blocks(kernel.blocks(X, Z))
    posterior = dense_from_blocks(kernel.blocks(Z)) - cross.T @ np.linalg.solve(
        G + alpha * np.eye(len(G)), cross
    )
    return np.sqrt(np.clip(np.diag(posterior), 0, None)).reshape(len(Z), -1)
