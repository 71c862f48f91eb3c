"""Slow, obvious versions of ridge regression with missing targets: a list of targets, one linear system.

Minimises sum w (y - f - b)^2 + alpha ||f||^2 over the targets of positive weight. All others are
missing. With an intercept the system is bordered: the coefficients of each output sum to zero.
"""

import numpy as np


def target_weights(Y, weights=None):
    """Weight of every target, zero where it is missing, as a table."""
    n, p = Y.shape
    out = np.zeros((n, p))
    for i in range(n):
        for o in range(p):
            if not np.isnan(Y[i, o]):
                out[i, o] = (
                    1.0
                    if weights is None
                    else weights[i]
                    if np.ndim(weights) == 1
                    else weights[i, o]
                )
    return out


def present_targets(W):
    return [(i, o) for i in range(W.shape[0]) for o in range(W.shape[1]) if W[i, o] > 0]


def bordered_system(kernel, X, W, alpha, intercept):
    """[[G + alpha W^-1, O], [O^T, 0]] over the targets that are not missing; O holds the output of each."""
    blocks, present, p = kernel.blocks(X), present_targets(W), W.shape[1]
    N, extra = len(present), p if intercept else 0
    A = np.zeros((N + extra, N + extra))
    for a, (i, o) in enumerate(present):
        for b, (j, q) in enumerate(present):
            A[a, b] = blocks[i, j, o, q]
        A[a, a] += alpha / W[i, o]
        if intercept:
            A[a, N + o] = A[N + o, a] = 1.0
    return A


def fit(kernel, X, Y, W, alpha, intercept):
    """Coefficients c (n, p), zero where missing, and intercepts b (p,), zero without any target."""
    present, p = present_targets(W), W.shape[1]
    A = bordered_system(kernel, X, W, alpha, intercept)
    y = np.array([Y[i, o] for i, o in present] + ([0.0] * p if intercept else []))
    keep = [a for a in range(len(A)) if a < len(present) or W[:, a - len(present)].any()]
    solution = np.zeros(len(A))
    solution[keep] = np.linalg.solve(A[np.ix_(keep, keep)], y[keep])
    c = np.zeros(W.shape)
    for (i, o), value in zip(present, solution, strict=False):
        c[i, o] = value
    return c, solution[len(present) :] if intercept else np.zeros(p)


def predict(kernel, X, Z, c, b):
    blocks = kernel.blocks(Z, X)
    out = np.zeros((len(Z), len(b)))
    for t in range(len(Z)):
        for i in range(len(X)):
            out[t] += blocks[t, i] @ c[i]
        out[t] += b
    return out


def std(kernel, X, W, Z, alpha, intercept):
    """Posterior deviation for noise variance alpha / w and a flat prior on the intercepts."""
    present, p = present_targets(W), W.shape[1]
    A = bordered_system(kernel, X, W, alpha, intercept)
    cross, own = kernel.blocks(Z, X), kernel.blocks(Z)
    out = np.zeros((len(Z), p))
    for t in range(len(Z)):
        for q in range(p):
            k = np.zeros(len(A))
            for a, (i, o) in enumerate(present):
                k[a] = cross[t, i, q, o]
            if intercept:
                k[len(present) + q] = 1.0
            out[t, q] = np.sqrt(max(0.0, own[t, t, q, q] - k @ np.linalg.solve(A, k)))
    return out


def loo_residuals(kernel, X, Y, W, alpha, intercept):
    """Refit without each row in turn; NaN where missing, or if no other row has the target."""
    n, p = W.shape
    out = np.full((n, p), np.nan)
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        c, b = fit(kernel, X[rest], Y[rest], W[rest], alpha, intercept)
        f = predict(kernel, X[rest], X[i : i + 1], c, b)[0]
        for o in range(p):
            if W[i, o] > 0 and (not intercept or W[rest, o].any()):
                out[i, o] = Y[i, o] - f[o]
    return out
