"""Correlation of the errors of several targets: estimated, and conditioned on given targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dposv

from ..linalg import Array, Index

__all__ = [
    "SHRINKAGES",
    "Conditional",
    "Correlation",
    "Plan",
    "choose_shares",
    "estimate_correlation",
    "group_patterns",
    "information",
    "plan_measurements",
]

Mask = NDArray[np.bool_]

# Smallest variance of a target given others.
_SMALLEST_VARIANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Conditional:
    """Distribution of the targets of some rows, given the measured ones.

    Attributes
    ----------
    mean : ndarray of shape (n, p)
        The measured values, and expectations of the others.
    variance : ndarray of shape (n, p)
        Zero where measured.
    covariance : ndarray of shape (n, p, p) or None
        Where it was asked for.
    """

    mean: Array
    variance: Array
    covariance: Array | None = None


@dataclass(frozen=True, eq=False)
class Correlation:
    """R = factor^T factor + diag(unshared).

    Attributes
    ----------
    factor : ndarray of shape (r, p)
        No more rows than targets or residuals, so that nothing p x p is needed where targets are
        many.
    unshared : ndarray of shape (p,)
        Variance that each target shares with no other target, positive.
    """

    factor: Array
    unshared: Array

    @classmethod
    def identity(cls, n_outputs: int) -> Correlation:
        """The correlation of unrelated targets."""
        return cls(np.zeros((0, n_outputs)), np.ones(n_outputs))

    def shrunk(self, share: float) -> Correlation:
        """The mean of this and of unrelated targets, which have the weight ``share``."""
        return Correlation(
            np.sqrt(1.0 - share) * self.factor, (1.0 - share) * self.unshared + share
        )

    @property
    def n_outputs(self) -> int:
        """Number of targets, p."""
        return len(self.unshared)

    def diagonal(self) -> Array:
        """Variances, (p,)."""
        return np.asarray(np.einsum("ro,ro->o", self.factor, self.factor) + self.unshared)

    def dense(self) -> Array:
        """R as a matrix (p, p)."""
        return np.asarray(self.factor.T @ self.factor + np.diag(self.unshared))

    def condition(self, Z: Array, *, with_covariance: bool = False) -> Conditional:
        """Condition rows on their finite entries.

        Parameters
        ----------
        Z : ndarray of shape (n, p)
            Errors in units of their deviations, NaN where they are not known.
        with_covariance : bool, default=False

        Notes
        -----
        With O the known and U the other targets, the mean is R_UO R_OO^-1 z_O and the covariance
        R_UU - R_UO R_OO^-1 R_OU. Rows with the same known targets share one factorisation. Where
        more targets are known than twice the rows of the factor, systems of its size are solved
        instead (Woodbury).

        Time q^3 + q^2 p for every pattern of q known targets, and q p for every row.
        """
        n, p = Z.shape
        mean, variance = np.array(Z), np.zeros((n, p))
        covariance = np.zeros((n, p, p)) if with_covariance else None
        for rows, known in group_patterns(np.isfinite(Z)):
            cross, weights = self.regression(known)
            explained = np.einsum("qu,qu->u", cross, weights)
            left = np.maximum(self.diagonal()[~known] - explained, _SMALLEST_VARIANCE)
            other = np.flatnonzero(~known)
            mean[np.ix_(rows, other)] = Z[np.ix_(rows, np.flatnonzero(known))] @ weights
            variance[np.ix_(rows, other)] = left
            if covariance is not None:
                others = self.factor[:, ~known]
                remaining = others.T @ others - cross.T @ weights
                remaining[np.diag_indices(len(other))] = left
                covariance[np.ix_(rows, other, other)] = remaining
        return Conditional(mean, variance, covariance)

    def regression(self, known: Mask) -> tuple[Array, Array]:
        """R_OU and R_OO^-1 R_OU, (q, u) both, for the known targets O and the others U."""
        F, unshared = self.factor[:, known], self.unshared[known, None]
        cross = F.T @ self.factor[:, ~known]
        r, q = F.shape
        if q == 0 or r == 0:
            return cross, cross / unshared
        # By the smaller of two systems.
        if 2 * r >= q:
            matrix, right = F.T @ F, cross
            matrix[np.diag_indices(q)] += unshared[:, 0]
        else:
            matrix, right = F @ (F.T / unshared), F @ (cross / unshared)
            matrix[np.diag_indices(r)] += 1.0
        _, solution, failed = dposv(matrix, right)
        if failed:
            raise np.linalg.LinAlgError("the covariance of given targets must be positive definite")
        return cross, np.asarray(solution if 2 * r >= q else (cross - F.T @ solution) / unshared)


# Shares of the identity that are tried; with 1 the error of a target says nothing of the others.
SHRINKAGES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 1.0)
# Parts of the rows on which estimates are compared, and how many halves of the targets, with the
# other halves, and single targets are taken as given.
N_PARTS, N_HALVES, N_SINGLE = 5, 8, 8
# Errors larger than this many typical errors count as if they were this large.
FAR = 2.0
# Standard errors of the gain below which an estimate is not used, and above which it is used fully;
# and the same where errors count as they are, however far out.
CLEAR_GAIN, CLEAR_PLAIN_GAIN = (2.0, 4.0), (0.0, 1.0)
# With more targets, or rows, the comparison draws this number of them.
MOST_TARGETS, MOST_ROWS = 64, 300
# The second estimate is computed for at most this number of targets.
MOST_SCREENED = 512
# Correlations r with r^2 below this many squared standard errors become zero in the second estimate.
SCREENED = 3.0
# Degrees of freedom of the distribution of errors by which rows far out have less weight, and how
# often its scatter and these weights are computed in turn.
TAILS, TAIL_STEPS = 5.0, 5
# A pair of targets with this number of common rows is trusted half as much as one with all.
_HALF_TRUSTED = 2.0


def estimate_correlation(Z: Array, weight: Array, shares: Array) -> Correlation:
    """Correlation of residuals about zero: the mean of two estimates and the identity.

    Parameters
    ----------
    Z : ndarray of shape (N, p)
        Residuals in units of their deviations, NaN where a target was not measured.
    weight : ndarray of shape (N,)
    shares : ndarray of shape (2,)
        Shares of the two estimates, as `choose_shares` gives them. The identity has the rest, which
        is positive.

    Notes
    -----
    The first estimate is S = sum_i w_i u_i z_i z_i^T, brought to a diagonal of ones. The weights
    u_i = (5 + p) / (5 + z_i^T S^-1 z_i), five steps from u_i = 1, are those of a t distribution
    with five degrees of freedom, so that a few rows far out do not decide alone; in them
    covariances count N / (N + p). The second estimate leaves out what may be chance: it multiplies
    each correlation r of the first, over N rows, by max(0, 1 - 3 s^2 / r^2), where
    s^2 = (1 - r^2)^2 / N is the variance of r. With more than 512 targets both estimates are the
    first.

    With missing values each pair of targets counts the rows that have both, less where these are
    few. Then, and with as many targets as rows, u_i = 1. Negative eigenvalues are left out.
    Complete residuals of many targets stay what they are, a factor with as many rows as there are
    residuals. Time N p min(N, p), and p^3 for the second estimate.
    """
    if len(Z) == 0 or not np.any(shares):
        return Correlation.identity(Z.shape[1])
    estimates = _estimates(Z, weight, screened=bool(shares[1]) and Z.shape[1] <= MOST_SCREENED)
    if len(estimates) == 1:
        return estimates[0].shrunk(1.0 - float(np.sum(shares)))
    first, second = (
        share * R.factor.T @ R.factor for share, R in zip(shares, estimates, strict=True)
    )
    return _unit_diagonal(_root(first + second), float(np.sum(shares)))


def choose_shares(Z: Array, weight: Array, rng: np.random.Generator) -> Array:
    """Shares (2,) of the estimates of `estimate_correlation`, by how well given targets predict others.

    Parameters
    ----------
    Z : ndarray of shape (N, p)
        One residual for each row, in units of their deviations, NaN where a target is missing.
    weight : ndarray of shape (N,)
    rng : numpy.random.Generator
        Draws the targets that are taken as given.

    Notes
    -----
    Each estimate, mixed with shares of the identity, predicts rows that are left out: halves of the
    targets given the other halves, and given single targets. The loss of a row is its mean squared
    error. Rows that are more than twice as far out as the typical row count as if they were there.

    The least mean loss L_k of estimate k over the loss without given targets, L_0, is a gain of
    1 - L_k / L_0. The share that the estimate has there is multiplied by how clear the gain is: from
    0 with a gain of two of its standard errors to 1 with four, and, where rows far out count as
    they are, from 0 without a gain to 1 with one standard error. Of two estimates the weights are
    proportional to L_k^(-N/2), the likelihood of normal errors with unknown variance.

    Time 2 x 5 x 24 x 12 systems of half the targets and less.
    """
    if Z.shape[1] <= 1 or len(Z) < 4:
        return np.zeros(2)
    screened = Z.shape[1] <= MOST_SCREENED
    if Z.shape[1] > MOST_TARGETS:
        Z = Z[:, np.sort(rng.choice(Z.shape[1], MOST_TARGETS, replace=False))]
    if len(Z) > MOST_ROWS:
        some = np.sort(rng.choice(len(Z), MOST_ROWS, replace=False))
        Z, weight = Z[some], weight[some]
    plain = _held_out_losses(Z, weight, screened, rng)  # (estimates, shrinkages, N)
    typical = np.median(plain, axis=1, keepdims=True)
    limit = FAR**2 * np.median(typical, axis=2, keepdims=True)
    far = (typical > limit) & (limit > 0.0)
    plain *= weight
    losses = plain * np.divide(limit, typical, out=np.ones_like(typical), where=far)
    means = losses.mean(axis=2)
    least = np.maximum(means.min(axis=1), np.finfo(float).tiny)
    likelihood = (least.min() / least) ** (0.5 * len(Z))
    shares = np.zeros(2)
    for number, best in enumerate(means.argmin(axis=1)):
        clear = min(
            _clearness(rows[number, best], rows[number, -1], limits)
            for rows, limits in ((losses, CLEAR_GAIN), (plain, CLEAR_PLAIN_GAIN))
        )
        shares[number] = likelihood[number] * clear * (1.0 - SHRINKAGES[best])
    return np.asarray(shares / likelihood.sum())


def _held_out_losses(Z: Array, weight: Array, screened: bool, rng: np.random.Generator) -> Array:
    """Losses (estimates, shrinkages, N) of rows that had no part in the estimates."""
    p = Z.shape[1]
    halves = np.zeros((N_HALVES, p), dtype=bool)
    for half in halves:
        half[rng.permutation(p)[: p // 2]] = True
    single = np.eye(p, dtype=bool)[rng.permutation(p)[:N_SINGLE]]
    # Of few targets there are few halves.
    patterns, repeats = np.unique(np.vstack([halves, ~halves, single]), axis=0, return_counts=True)
    losses, part = np.zeros((1 + screened, len(SHRINKAGES), len(Z))), np.arange(len(Z)) % N_PARTS
    complete = bool(np.isfinite(Z).all())
    for number in range(min(N_PARTS, len(Z))):
        train, test = part != number, part == number
        for estimate, unshrunk in enumerate(_estimates(Z[train], weight[train], screened)):
            for place, shrinkage in enumerate(SHRINKAGES):
                correlation = unshrunk.shrunk(shrinkage)
                for given, repeat in zip(patterns, repeats, strict=True):
                    if complete:
                        expected = Z[test][:, given] @ correlation.regression(given)[1]
                    else:
                        known = np.where(given, Z[test], np.nan)
                        expected = correlation.condition(known).mean[:, ~given]
                    error = Z[test][:, ~given] - expected
                    present = np.isfinite(error)
                    squares = np.where(present, error, 0.0) ** 2
                    losses[estimate, place, test] += (
                        repeat * squares.sum(axis=1) / np.maximum(1, present.sum(axis=1))
                    )
    return losses


def _clearness(losses: Array, without: Array, limits: tuple[float, float]) -> float:
    """How clear the gain of losses (N,) over those without given targets is, between 0 and 1.

    It is 0 where the gain is no more than the first limit, in its standard errors, and 1 from the
    second limit on.
    """
    if losses.mean() >= without.mean():
        return 0.0
    ratio = losses.mean() / without.mean()
    error = (losses - ratio * without).std(ddof=1) / np.sqrt(len(losses)) / without.mean()
    error = max(error, np.finfo(float).eps)
    low, high = limits
    return float(np.clip((1.0 - ratio - low * error) / ((high - low) * error), 0.0, 1.0))


def _estimates(Z: Array, weight: Array, screened: bool) -> list[Correlation]:
    """The estimates of `estimate_correlation`, not shrunk; the second only if ``screened``."""
    (N, p), known = Z.shape, np.isfinite(Z)
    if known.all():
        weight = weight * _tail_weights(Z, weight)
        F = np.sqrt(weight / weight.sum())[:, None] * Z
        factor = F if p > N else _root(F.T @ F)
    else:
        factor = _root(_pairwise(np.where(known, Z, 0.0), known, weight))
    first = _unit_diagonal(factor)
    if not screened:
        return [first]
    R, pairs = first.factor.T @ first.factor, known.astype(float)
    variance = (1.0 - np.minimum(R**2, 1.0)) ** 2 / np.maximum(pairs.T @ pairs, 1.0)
    kept = 1.0 - SCREENED * variance / np.maximum(R**2, np.finfo(float).tiny)
    return [first, _unit_diagonal(_root(R * np.maximum(kept, 0.0)))]


def _tail_weights(Z: Array, weight: Array) -> Array:
    """Weights of rows (N,) of a t distribution about zero: small far out, judged by all targets together."""
    # A target without errors does not count.
    Z = Z[:, (weight[:, None] * Z).any(axis=0)]
    (N, p), tails = Z.shape, np.ones(len(Z))
    for _ in range(TAIL_STEPS if p < N else 0):
        S = (Z * (weight * tails / weight.sum())[:, None]).T @ Z
        S[~np.eye(p, dtype=bool)] *= N / (N + p)
        distances = np.einsum("io,io->i", Z, np.linalg.solve(S, Z.T).T)
        tails = (TAILS + p) / (TAILS + distances)
    return np.asarray(tails)


def _unit_diagonal(factor: Array, share: float = 1.0) -> Correlation:
    """Correlation with the directions of a factor, and the identity for the rest of the share."""
    length = np.linalg.norm(factor, axis=0)
    factor = factor / np.where(length > 0.0, length, 1.0)
    return Correlation(factor, np.where(length > 0.0, 0.0, 1.0)).shrunk(1.0 - share)


def _pairwise(Z: Array, known: NDArray[np.bool_], weight: Array) -> Array:
    """Covariances of pairs over the rows that have both; blanks of Z are zero."""
    share = weight / weight.max()
    both = (known * share[:, None]).T @ known.astype(float)
    matrix = (Z * share[:, None]).T @ Z / np.maximum(both, np.finfo(float).tiny)
    trust = both / (both + _HALF_TRUSTED)
    np.fill_diagonal(trust, 1.0)
    return np.asarray(matrix * trust)


def _root(matrix: Array) -> Array:
    """F with F^T F the psd part of a symmetric matrix."""
    values, vectors = eigh(matrix)
    keep = values > 0.0
    factor = np.sqrt(values[keep])[:, None] * vectors[:, keep].T
    # Where the matrix is zero, the eigenvectors may be so only to rounding.
    factor[:, np.diag(matrix) == 0.0] = 0.0
    return np.asarray(factor)


def group_patterns(known: Mask) -> Iterator[tuple[Index, Mask]]:
    """Groups of rows with the same known targets: numbers of the rows, and a mask of the targets.

    Examples
    --------
    >>> known = np.array([[True, False], [False, False], [True, False]])
    >>> [(rows.tolist(), pattern.tolist()) for rows, pattern in group_patterns(known)]
    [([1], [False, False]), ([0, 2], [True, False])]
    """
    n, p = known.shape
    if n == 0:
        return
    if p == 0 or (known == known[0]).all():
        yield np.arange(n), known[0]
        return
    packed = np.ascontiguousarray(np.packbits(known, axis=1))
    _, group = np.unique(packed.view([("", packed.dtype)] * packed.shape[1]), return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1]):
        yield rows, known[rows[0]]


def information(correlation: Correlation) -> Array:
    """Share of the variance of target b that measuring a removes, (p, p) with a in rows and ones inside.

    It is the squared correlation of their errors.
    """
    R, variance = correlation.dense(), correlation.diagonal()
    return np.asarray(R**2 / np.outer(variance, variance))


class Plan(NamedTuple):
    """Targets in the order in which to measure them, and the share of all variance that each removes."""

    order: Index
    reduction: Array


def plan_measurements(
    correlation: Correlation, known: Mask, importance: Array, cost: Array
) -> Plan:
    """Order in which to measure the targets that are not known yet.

    Parameters
    ----------
    correlation : Correlation
    known : ndarray of shape (p,)
    importance : ndarray of shape (p,)
        What the variance of each target counts for, in units of its own deviation squared.
    cost : ndarray of shape (p,)
        Positive.

    Returns
    -------
    plan : Plan
        Next comes the target whose measurement is expected to remove most of the sum of all
        variances for its cost, given those before it. Reductions are shares of that sum as it is
        before any of them.

    Notes
    -----
    With S the covariance given what is known, measuring a takes S_ab^2 / S_aa off the variance of
    b; then S is updated. Time p^2 for every measurement.
    """
    R, other = correlation.dense(), np.flatnonzero(~known)
    S = R[np.ix_(other, other)]
    if known.any():
        cross = R[np.ix_(np.flatnonzero(known), other)]
        S = S - cross.T @ np.linalg.solve(R[np.ix_(known, known)], cross)
    weight, price = importance[other], cost[other]
    total = max(float(weight @ np.diag(S)), np.finfo(float).tiny)
    left, order, reduction = list(range(len(other))), [], []
    while left:
        variances = np.maximum(np.diag(S)[left], np.finfo(float).tiny)
        gains = (S[left] ** 2 @ weight) / variances
        best = int(np.argmax(gains / price[left]))
        target = left.pop(best)
        order.append(int(other[target]))
        reduction.append(float(gains[best]) / total)
        S = S - np.outer(S[:, target], S[target]) / variances[best]
    return Plan(np.array(order, dtype=np.intp), np.array(reduction))
