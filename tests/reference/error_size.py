"""Sizes of errors by definition: loops over cells, and the penalised likelihood by a general optimiser."""

import numpy as np
from scipy.optimize import minimize


def basis_row(row, knots):
    """Basis functions of one row, for knots (5, q) of the columns, in units of their ranges."""
    straight, bends = [], [[], [], []]
    for value, (low, first, middle, third, high) in zip(row, knots.T, strict=True):
        value = min(max(middle if np.isnan(value) else value, low), high)
        unit = high - low
        straight.append((value - low) / unit if unit > 0 else 0.0)
        for bend, knot in zip(bends, (first, middle, third), strict=True):
            bend.append(abs(value - knot) / unit if unit > 0 else 0.0)
    return np.concatenate([straight, *bends])


def penalised_loss(parameters, basis, A, weight, offset, penalty):
    """Negative log-likelihood of Laplace errors of size exp(s), plus half the penalty of the squares."""
    total = 0.0
    for row, a, w, known in zip(basis, A, weight, offset, strict=True):
        s = known + parameters[0] + row @ parameters[1:]
        total += w * (a * np.exp(-s) + s)
    return total + 0.5 * penalty * np.sum(parameters[1:] ** 2)


def log_sizes(basis, A, weight, offset, penalty):
    """Log sizes (n,) of the rows at the optimum."""
    arguments = (basis, A, weight, offset, penalty)
    best = minimize(penalised_loss, np.zeros(1 + basis.shape[1]), arguments, tol=1e-10)
    return offset + best.x[0] + basis @ best.x[1:]


def interval_score(z, half, level):
    """Score of the interval from -half to half for a residual of absolute size z."""
    return 2.0 * half + (2.0 / (1.0 - level) * (z - half) if z > half else 0.0)


def quantile(values, mass, level):
    """The least value up to which the share of the mass is at least the level."""
    order = np.argsort(values, kind="stable")
    reached = 0.0
    for i in order:
        reached += mass[i]
        if reached >= (level - 1e-9) * mass.sum():
            return values[i]
    return values[order[-1]]


def interval_scores(Z, mass, sizes, levels):
    """Mean score over levels of every cell; zero for a cell without mass."""
    scores = np.zeros(Z.shape)
    for target in range(Z.shape[1]):
        known = mass[:, target] > 0
        ratio = Z[known, target] / sizes[known, target]
        for level in levels:
            factor = quantile(ratio, mass[known, target], level)
            for i in np.flatnonzero(known):
                half = factor * sizes[i, target]
                scores[i, target] += interval_score(Z[i, target], half, level) / len(levels)
    return scores
