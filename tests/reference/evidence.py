"""Marginal likelihoods from the density of a Gaussian, one output after the other."""

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern


def kernel(theta, shape, squares, X, Z):
    """Kernel values at logarithms (three weights, noise, common width) and additions to the log widths."""
    c1, c2, c3, _, width = np.exp(theta[:5])
    relative = np.exp(theta[5:])
    X, Z = X / relative, Z / relative
    nu = {"gaussian": np.inf, "matern": 2.5, "exponential": 0.5}[shape]
    near = (RBF(width) if nu == np.inf else Matern(width, nu=nu))(X, Z)
    linear = X @ Z.T
    return c1 * near + c2 * linear + c3 * (linear**2 if squares else near * linear)


def mean_log_density(X, Y, theta, shape, squares=False):
    """Mean over outputs of the log density of the known targets."""
    A = kernel(theta, shape, squares, X, X) + np.exp(theta[3]) * np.eye(len(X))
    values = []
    for y in Y.T:
        known = np.flatnonzero(~np.isnan(y))
        values.append(multivariate_normal.logpdf(y[known], cov=A[np.ix_(known, known)]))
    return np.mean(values)


def process_prediction(X, y, X_new, theta, low, high, weight=1.0):
    """Predictions of an exponential, linear and quadratic process.

    The squares get columns that are clipped to the range from low to high.
    """
    c3, noise = np.exp(theta[[2, 3]])
    without = theta.copy()
    without[2] = -np.inf
    relative = np.exp(theta[5:])

    def values(A, B):
        inner = (np.clip(A, low, high) / relative) @ (B / relative).T
        return kernel(without, "exponential", True, A, B) + c3 * inner**2

    return values(X_new, X) @ np.linalg.solve(values(X, X) + noise / weight * np.eye(len(X)), y)
