"""A relation that depends on the input, by definition: one covariance for every row."""

import numpy as np
from scipy.stats import multivariate_normal


def covariance(psi, operators, u):
    """Psi + sum_i M_i u u^T M_i^T for one row of features, without the constant."""
    f = np.concatenate([[1.0], u])
    return psi + sum(np.outer(M @ f, M @ f) for M in operators)


def log_likelihood(psi, operators, Z, U):
    out = []
    for z, u in zip(Z, U, strict=True):
        seen = np.flatnonzero(~np.isnan(z))
        S = covariance(psi, operators, u)[np.ix_(seen, seen)]
        out.append(
            multivariate_normal(np.zeros(len(seen)), S).logpdf(z[seen]) if len(seen) else 0.0
        )
    return np.array(out)


def left_out_error(psi, operators, z, u):
    """Squared error of each observed target, predicted from the other observed ones, summed."""
    S = covariance(psi, operators, u)
    total = 0.0
    for target in np.flatnonzero(~np.isnan(z)):
        others = [other for other in np.flatnonzero(~np.isnan(z)) if other != target]
        expected = S[target, others] @ np.linalg.solve(S[np.ix_(others, others)], z[others])
        total += (z[target] - expected) ** 2
    return total


def inverse_root(C):
    values, vectors = np.linalg.eigh(C)
    return (vectors / np.sqrt(values)) @ vectors.T


def penalised(psi, operators, Z, U, weight, alpha):
    """Weighted mean negative log likelihood plus alpha/2 sum_i tr(C M_i^T psi^-1 M_i)."""
    F = np.column_stack([np.ones(len(U)), U])
    share = weight / weight.sum()
    C = F.T @ np.diag(share) @ F
    penalty = sum(np.trace(C @ M.T @ np.linalg.solve(psi, M)) for M in operators)
    return alpha / 2 * penalty - share @ log_likelihood(psi, operators, Z, U)


def held_mean(deviation, constant, U, weight):
    """Psi and operators of deviations N_i (r, p, q + 1) with sum_i N_i N_i^T below the identity.

    M_i = root N_i C^-1/2 and psi = root (I - sum_i N_i N_i^T) root^T: the mean covariance stays
    constant.
    """
    F = np.column_stack([np.ones(len(U)), U])
    C = F.T @ np.diag(weight / weight.sum()) @ F
    root = np.linalg.cholesky(constant)
    psi = root @ (np.eye(len(constant)) - sum(N @ N.T for N in deviation)) @ root.T
    return psi, np.array([root @ N @ inverse_root(C) for N in deviation])
