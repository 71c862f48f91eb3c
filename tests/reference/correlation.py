"""The correlation of errors by definition: one row, pair of targets and pattern at a time."""

import numpy as np

from entangled_kernels.uncertainty import SHRINKAGES


def robust(Z, weight):
    """Correlation about zero with the row weights of a t distribution with five degrees of freedom."""
    N, p = Z.shape
    tails = np.ones(N)
    for step in range(6):
        S = np.zeros((p, p))
        for z, w, u in zip(Z, weight / weight.sum(), tails, strict=True):
            S += w * u * np.outer(z, z)
        if p < N and step < 5:
            A = N / (N + p) * S + p / (N + p) * np.diag(np.diag(S))
            tails = np.array([(5 + p) / (5 + z @ np.linalg.inv(A) @ z) for z in Z])
    unit = np.sqrt(np.diag(S))
    return S / np.outer(unit, unit)


def screened(Z, weight):
    """That of `robust`, each correlation less by how likely it is chance; brought back to psd."""
    R = robust(Z, weight)
    for a in range(len(R)):
        for b in range(len(R)):
            variance = (1 - R[a, b] ** 2) ** 2 / len(Z)
            if 3 * variance >= R[a, b] ** 2:
                R[a, b] = 0.0
            else:
                R[a, b] *= 1 - 3 * variance / R[a, b] ** 2
    values, vectors = np.linalg.eigh(R)
    R = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
    unit = np.sqrt(np.diag(R))
    return R / np.outer(unit, unit)


ESTIMATES = (robust, screened)


def mean_correlation(Z, weight, shares):
    p = Z.shape[1]
    parts = [share * make(Z, weight) for share, make in zip(shares, ESTIMATES, strict=True)]
    return sum(parts) + (1 - sum(shares)) * np.eye(p)


def losses(make, shrinkage, Z, weight, patterns):
    """Squared errors of left-out rows, a mean over the other targets and a sum over the patterns."""
    N, p = Z.shape
    out = np.zeros(N)
    for i in range(N):
        others = [j for j in range(N) if j % 5 != i % 5]
        R = (1 - shrinkage) * make(Z[others], weight[others]) + shrinkage * np.eye(p)
        for given in patterns:
            rest = [o for o in range(p) if o not in given]
            coef = np.linalg.solve(R[np.ix_(given, given)], R[np.ix_(given, rest)])
            out[i] += np.mean((Z[i, rest] - Z[i, given] @ coef) ** 2)
    return out


def clearness(losses, without, low, high):
    """Where 1 - ratio lies between ``low`` and ``high`` standard errors, by the delta method."""
    ratio = losses.mean() / without.mean()
    if ratio >= 1:
        return 0.0
    influence = (losses - ratio * without) / without.mean()
    t = (1 - ratio) / (influence.std(ddof=1) / np.sqrt(len(losses)))
    return min(1.0, max(0.0, (t - low) / (high - low)))


def choose_shares(Z, weight, patterns):
    """Shares of the two estimates; ``patterns`` are lists of given targets, with repetitions."""
    shares, least = [], []
    for make in ESTIMATES:
        plain = np.array([losses(make, s, Z, weight, patterns) for s in SHRINKAGES])
        typical = np.median(plain, axis=0)
        limit = 4.0 * np.median(typical)
        plain = plain * weight
        drawn_in = plain * np.array([limit / t if t > limit else 1.0 for t in typical])
        best = int(np.argmin(drawn_in.mean(axis=1)))
        clear = clearness(drawn_in[best], drawn_in[-1], 2.0, 4.0)
        clear = min(clear, clearness(plain[best], plain[-1], 0.0, 1.0))
        shares.append((1 - SHRINKAGES[best]) * clear)
        least.append(drawn_in[best].mean())
    likelihood = np.array(least) ** (-len(Z) / 2)
    return np.array(shares) * likelihood / likelihood.sum()
