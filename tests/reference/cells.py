"""Ridge over measured cells, conditioning and leave-one-out, by matrices that are written out in full."""

import numpy as np


def observed_design(Phi, weight):
    """One row (m * p,) for every measured cell, its output, and its weight."""
    n, m = Phi.shape
    p = weight.shape[1]
    rows, outputs, weights = [], [], []
    for i in range(n):
        for o in range(p):
            if weight[i, o] > 0:
                row = np.zeros(m * p)
                for f in range(m):
                    row[f * p + o] = Phi[i, f]
                rows.append(row)
                outputs.append(o)
                weights.append(weight[i, o])
    return np.array(rows), np.array(outputs), np.array(weights)


def observed_ridge(Phi, Y, weight, D, alpha, fit_intercept=True):
    """Coefficients (p, m), intercept (p,) and squared norm from the Gram matrix of the measured cells."""
    p = weight.shape[1]
    N, outputs, weights = observed_design(Phi, weight)
    y = Y[weight > 0]
    G = N @ D @ N.T
    A = G + alpha * np.diag(1 / weights)
    if not fit_intercept:
        c, b = np.linalg.solve(A, y), np.zeros(p)
    else:
        U = np.zeros((len(y), p))
        U[np.arange(len(y)), outputs] = 1.0
        system = np.block([[A, U], [U.T, np.zeros((p, p))]])
        solved = np.linalg.solve(system, np.concatenate([y, np.zeros(p)]))
        c, b = solved[: len(y)], solved[len(y) :]
    return (D @ N.T @ c).reshape(-1, p).T, b, c @ G @ c


def condition(R, z):
    """Mean and covariance of all entries of z given the finite ones."""
    known = np.isfinite(z)
    mean, covariance = np.where(known, z, 0.0), np.zeros_like(R)
    inverse = np.linalg.inv(R[np.ix_(known, known)])
    cross = R[np.ix_(~known, known)]
    mean[~known] = cross @ inverse @ z[known]
    covariance[np.ix_(~known, ~known)] = R[np.ix_(~known, ~known)] - cross @ inverse @ cross.T
    return mean, covariance


def filled_targets(Phi, Y, weight, fill_alpha, fit_intercept=True):
    """Targets with blanks predicted by a ridge fit to each target's own rows, one target at a time."""
    m = Phi.shape[1]
    filled = np.array(Y)
    for o in range(Y.shape[1]):
        own = weight[:, o] > 0
        w = weight[own, o]
        mean_phi = np.average(Phi[own], axis=0, weights=w) if fit_intercept else np.zeros(m)
        mean_y = np.average(Y[own, o], weights=w) if fit_intercept else 0.0
        A = Phi[own] - mean_phi
        C = A.T @ (w[:, None] * A)
        ridge = C + fill_alpha * np.trace(C) / m * np.eye(m)
        coef = np.linalg.solve(ridge, A.T @ (w * (Y[own, o] - mean_y)))
        filled[~own, o] = mean_y + (Phi[~own] - mean_phi) @ coef
    return filled
