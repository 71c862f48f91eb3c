"""Convex learning of kernels by definition: dense Gram matrices, penalties and conjugates by eigenvalues.

Every certificate is computed from the training Gram matrix and the returned parameters alone.
"""

import numpy as np
from scipy.optimize import brentq


def value(name, L, exponent=2.0, l1_ratio=0.5):
    """P(L) for one psd matrix, by its definition."""
    levels = np.maximum(np.linalg.eigvalsh(L), 0.0)
    return {
        "frobenius": lambda: 0.5 * np.sum(L**2),
        "schatten": lambda: 0.5 * np.sum(levels**exponent),
        "trace": lambda: 0.5 * np.trace(L),
        "elastic": lambda: 0.5 * (l1_ratio * np.trace(L) + (1 - l1_ratio) * np.sum(L**2)),
        "entrywise": lambda: 0.5 * np.sum(np.abs(L) ** exponent),
    }[name]()


def norm(name, L, exponent=2.0):
    """The norm whose ball is the constraint."""
    levels = np.maximum(np.linalg.eigvalsh(L), 0.0)
    return {
        "frobenius": lambda: np.sqrt(np.sum(L**2)),
        "schatten": lambda: np.sum(levels**exponent) ** (1 / exponent),
        "trace": lambda: np.trace(L),
        "entrywise": lambda: np.sum(np.abs(L) ** exponent) ** (1 / exponent),
    }[name]()


def dual_norm(name, S, exponent=2.0):
    """Maximum of <L, S> over the unit ball, by Hoelder's inequality."""
    if name == "frobenius":
        return np.sqrt(np.sum(S**2))
    if name == "trace":
        return np.linalg.eigvalsh(S)[-1]
    other = exponent / (exponent - 1)
    sizes = np.abs(S) if name == "entrywise" else np.maximum(np.linalg.eigvalsh(S), 0.0)
    return sizes.max() * np.sum((sizes / sizes.max()) ** other) ** (1 / other)


def conjugate(name, S, exponent=2.0, l1_ratio=0.5):
    """P*(S / 2), from scalar conjugates: s l / 2 - l^q / 2 is largest at l = (s / q)^(1 / (q - 1))."""
    squares = np.maximum(np.linalg.eigvalsh(S), 0.0)

    def power(s, q):
        stationary = (s / q) ** (1 / (q - 1))
        return np.sum(0.5 * s * stationary - 0.5 * stationary**q)

    return {
        "frobenius": lambda: np.sum((S / 2) ** 2) / 2,
        "schatten": lambda: power(squares, exponent),
        "elastic": lambda: np.sum(np.maximum(squares - l1_ratio, 0.0) ** 2) / (8 * (1 - l1_ratio)),
        "entrywise": lambda: power(np.abs(S), exponent),
    }[name]()


def cluster_support(S, low, high):
    """Maximum of <L, S> over L = mean part + levels in [low, high] with sum at most p - 1."""
    p = len(S)
    H = np.linalg.qr(np.eye(p) - 1.0 / p)[0][:, : p - 1]
    squares = np.linalg.eigvalsh(H.T @ S @ H)
    # The dual of the linear program is piecewise linear in one multiplier; its minimum is at a
    # corner.
    corners = np.append(np.maximum(squares, 0.0), 0.0)
    rest = squares - corners[:, None]
    return S.sum() / p + np.min(
        corners * (p - 1.0) + np.sum(np.maximum(low * rest, high * rest), axis=1)
    )


def ridge(G, y, alpha):
    """Coefficients, and y^T (G + alpha I)^-1 y / 2."""
    c = np.linalg.solve(G + alpha * np.eye(len(y)), y)
    return c, 0.5 * y @ c


def separable_ridge(K, L, Y, alpha):
    """The same for the Gram matrix K kron L, from the eigenvectors of both."""
    (values, U), (levels, V) = np.linalg.eigh(K), np.linalg.eigh(L)
    C = U @ ((U.T @ Y @ V) / (np.outer(values, levels) + alpha)) @ V.T
    return C.reshape(-1), 0.5 * np.sum(Y * C)


def output_kernel_bound(K, Y, C, alpha, name, constraint=False, **settings):
    """Dual value of coefficients C (n, p): no L has a lower objective."""
    p, S = Y.shape[1], C.T @ K @ C
    data = np.sum(C * Y) - alpha / 2 * np.sum(C**2)
    if name == "cluster":
        return data - 0.5 * cluster_support(S, *settings["level_bounds"])
    if constraint and name == "elastic":
        return data - 0.5 * elastic_support(S, value(name, np.eye(p), **settings), **settings)
    if constraint:
        return data - 0.5 * norm(name, np.eye(p), **settings) * dual_norm(name, S, **settings)
    if name == "trace":
        # The conjugate is zero up to a largest eigenvalue of one, and infinite beyond.
        return data if np.linalg.eigvalsh(S)[-1] <= 1 + 1e-9 else -np.inf
    return data - conjugate(name, S, **settings)


def output_kernel_objective(K, Y, L, alpha, name, constraint=False, **settings):
    """y^T (K kron L + alpha I)^-1 y / 2 and the penalty, if it is one."""
    n, p = Y.shape
    solve = (
        ridge(np.kron(K, L), Y.reshape(-1), alpha)
        if n * p <= 500
        else separable_ridge(K, L, Y, alpha)
    )
    free = constraint or name == "cluster"
    return solve[1] + (0.0 if free else value(name, L, **settings))


def output_kernel_gap(K, Y, L, alpha, name, constraint=False, **settings):
    """Objective and duality gap at L, from the block Gram matrix K kron L."""
    n, p = Y.shape
    c, _ = ridge(np.kron(K, L), Y.reshape(-1), alpha)
    C = c.reshape(n, p)
    if name == "trace" and not constraint:
        # Where the conjugate is infinite, c is scaled to where it is not.
        largest = np.linalg.eigvalsh(C.T @ K @ C)[-1]
        C = C * min(1.0, 1.0 / np.sqrt(largest), np.sum(C * Y) / (alpha * np.sum(C**2)))
    J = output_kernel_objective(K, Y, L, alpha, name, constraint, **settings)
    return J, J - output_kernel_bound(K, Y, C, alpha, name, constraint, **settings)


def elastic_support(S, bound, l1_ratio):
    """Maximum of <L, S> over P(L) <= bound: minimum over v of v bound + v P*(S / v), convex in v."""
    squares = np.maximum(np.linalg.eigvalsh(S), 0.0)
    grid = np.logspace(-12, 12, 4001) * squares.max()
    for _ in range(4):
        above = np.maximum(squares - 0.5 * l1_ratio * grid[:, None], 0.0)
        values = grid * bound + np.sum(above**2, axis=1) / (2 * (1 - l1_ratio) * grid)
        i = np.argmin(values)
        grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 4001)
    return values.min()


def kernel_ridge_alternation(K, Y, alpha, best_levels, steps, start=None):
    """The published alternation: the Sylvester equation, then levels from those of A^T K A, A = C L.

    Ciliberto et al. 2015 add delta^2 = 1e-8 to the squares. Gives the last L and how often C was
    solved for.
    """
    values, U = np.linalg.eigh(K)
    values, T = np.maximum(values, 0.0), U.T @ Y
    L = np.eye(Y.shape[1]) if start is None else start
    for _ in range(steps):
        levels, V = np.linalg.eigh(L)
        A = ((T @ V) / (np.outer(values, np.maximum(levels, 0.0)) + alpha) * levels) @ V.T
        squares, V = np.linalg.eigh(A.T @ (values[:, None] * A) + 1e-8 * np.eye(len(L)))
        L = (V * best_levels(np.maximum(squares, 0.0))) @ V.T
    return L


def coordinate_ascent(K, Y, alpha, k, epochs, rng, start=None):
    """Stochastic dual coordinate ascent of Jawanpuria et al. 2015, for the square loss.

    The penalty is sum |L_ij|^q / 2, q = 2k / (2k - 1), for which L = (S / q)^(2k-1) entrywise. An
    epoch goes once over all coefficients in random order and puts each where the dual value is
    largest, the others fixed: there the slope y - alpha c - (K C L)_it, which falls in c, is zero.
    Gives C, and L by it.
    """
    n, p = Y.shape
    q = 2 * k / (2 * k - 1)
    C = np.zeros((n, p)) if start is None else start.copy()
    image, S = K @ C, C.T @ K @ C
    for _ in range(epochs):
        for place in rng.permutation(n * p):
            i, t = divmod(place, p)

            def row(step, i=i, t=t):
                """Row t of S after a step of coefficient (i, t)."""
                changed = S[t] + step * image[i]
                changed[t] += step * image[i, t] + step**2 * K[i, i]
                return changed

            def slope(step, i=i, t=t):
                column = (row(step) / q) ** (2 * k - 1)
                return (
                    Y[i, t]
                    - alpha * (C[i, t] + step)
                    - image[i] @ column
                    - step * K[i, i] * column[t]
                )

            first = slope(0.0)
            if abs(first) <= 1e-14 * (1.0 + np.abs(Y[i, t])):
                continue
            # Without the kernel the slope falls by alpha a unit, so that the zero is not beyond
            # this.
            step = brentq(slope, 0.0, first / alpha * (1 + 1e-9), xtol=1e-14, rtol=1e-10)
            S[t] = row(step)
            S[:, t] = S[t]
            C[i, t] += step
            image[:, t] += step * K[:, i]
    return C, (S / q) ** (2 * k - 1)
