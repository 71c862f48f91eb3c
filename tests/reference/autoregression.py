"""Nonlinear autoregression by definition, and series whose network is known."""

import numpy as np


def hadamard_gram(windows, B, gamma, output_gamma, other=None):
    """Gram matrix (n p, t p) of B_ij exp(-gamma |x - z|^2) exp(-output_gamma |x_i - z_j|^2), all entries."""
    other = windows if other is None else other
    n, p, _ = windows.shape
    between = np.exp(-gamma * np.sum((windows[:, None] - other) ** 2, axis=(2, 3)))  # (n, t)
    pairs = np.exp(
        -output_gamma * np.sum((windows[:, :, None, None] - other) ** 2, axis=4)
    )  # (n, p, t, p)
    G = B[:, None, :] * between[:, None, :, None] * pairs
    return G.reshape(n * p, len(other) * p)


def sparse_series(rng, p=10, steps=150, parents=2, noise=0.5):
    """A series in which every variable follows two others, through saturating functions; and the network."""
    network = np.zeros((p, p), dtype=bool)
    for i in range(p):
        network[i, rng.choice(np.delete(np.arange(p), i), parents, replace=False)] = True
    slope, sign = rng.uniform(0.5, 1.5, size=(p, p)), rng.choice([-1.0, 1.0], size=(p, p))
    x = [rng.normal(size=p)]
    for _ in range(steps + 49):
        u = slope * x[-1]
        effect = 1.5 * np.tanh(2 * u) * np.exp(-0.1 * u**2)
        x.append(np.sum(network * sign * effect, axis=1) + noise * rng.normal(size=p))
    return np.array(x[50:]), network


def differences(predict, windows, step=1e-5):
    """Jacobian (t, p, p, lags) by central differences."""
    t, p, lags = windows.shape
    J = np.empty((t, p, p, lags))
    for j in range(p):
        for k in range(lags):
            shift = np.zeros((p, lags))
            shift[j, k] = step
            J[:, :, j, k] = (predict(windows + shift) - predict(windows - shift)) / (2 * step)
    return J


def proximal_alternation(solve, squares, Y, radius, steps, start=None):
    """Coefficients and B in turn, as Lim et al. 2015, without sparsity: B psd, of a norm up to the radius.

    Coefficients are solved for exactly, where the published loop takes proximal steps. B takes a
    gradient step, whose length is halved until the objective falls, and is projected. Gives B,
    values, evaluations.

    Parameters
    ----------
    solve, squares : callable
        From B to C (n, p), and from C to S (p, p), <B, S> = c^T G_B c.
    """

    def value_at(B):
        C = solve(B)
        return 0.5 * np.sum(C * Y), C

    B = np.eye(Y.shape[1]) if start is None else start
    value, C = value_at(B)
    values, evaluations, length = [value], 1, 1.0
    for _ in range(steps):
        S = squares(C)
        length *= 4.0
        for _ in range(60):
            levels, V = np.linalg.eigh(B + length * S / 2)
            new = (V * np.maximum(levels, 0.0)) @ V.T
            new *= min(1.0, radius / np.linalg.norm(new))
            other, candidate = value_at(new)
            evaluations += 1
            if other < value:
                B, value, C = new, other, candidate
                break
            length /= 2.0
        values.append(value)
    return B, values, evaluations
