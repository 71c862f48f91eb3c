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
    "choose_shrinkage",
    "estimate_correlation",
    "group_patterns",
    "information",
    "plan_measurements",
]

Mask = NDArray[np.bool_]

# No target is known to more digits than this because others are measured.
_SMALLEST_VARIANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Conditional:
    """What is known of some rows once some of their targets are measured.

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
    """R = factor^T factor + diag(own).

    Attributes
    ----------
    factor : ndarray of shape (r, p)
        No more rows than targets or residuals, so that nothing p x p is needed where targets are
        many.
    own : ndarray of shape (p,)
        What each target shares with no other, positive.
    """

    factor: Array
    own: Array

    @classmethod
    def identity(cls, n_outputs: int) -> Correlation:
        """Targets that tell nothing of each other."""
        return cls(np.zeros((0, n_outputs)), np.ones(n_outputs))

    def shrunk(self, share: float) -> Correlation:
        """The mean of this and of unrelated targets, which have the weight ``share``."""
        return Correlation(np.sqrt(1.0 - share) * self.factor, (1.0 - share) * self.own + share)

    @property
    def n_outputs(self) -> int:
        """Number of targets, p."""
        return len(self.own)

    def diagonal(self) -> Array:
        """Variances, (p,)."""
        return np.asarray(np.einsum("ro,ro->o", self.factor, self.factor) + self.own)

    def dense(self) -> Array:
        """R as a matrix (p, p)."""
        return np.asarray(self.factor.T @ self.factor + np.diag(self.own))

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
        F, own = self.factor[:, known], self.own[known, None]
        cross = F.T @ self.factor[:, ~known]
        r, q = F.shape
        if q == 0 or r == 0:
            return cross, cross / own
        # By the smaller of two systems.
        if 2 * r >= q:
            matrix, right = F.T @ F, cross
            matrix[np.diag_indices(q)] += own[:, 0]
        else:
            matrix, right = F @ (F.T / own), F @ (cross / own)
            matrix[np.diag_indices(r)] += 1.0
        _, solution, failed = dposv(matrix, right)
        if failed:
            raise np.linalg.LinAlgError("the covariance of given targets must be positive definite")
        return cross, np.asarray(solution if 2 * r >= q else (cross - F.T @ solution) / own)


# Shares of the identity that are tried; with 1 the error of a target says nothing of the others.
SHRINKAGES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
# The largest share within this many standard errors of the best one is taken.
ALLOWANCE = 1.5
# Parts of the rows on which shares are compared, and how many halves of the targets, with the other
# halves, and single targets are taken as given.
N_PARTS, N_HALVES, N_SINGLE = 5, 8, 8
# Errors beyond so many times the typical one count as if they were at that distance.
FAR = 3.0
# Of more targets, or rows, than this some are drawn for the comparison.
MOST_TARGETS, MOST_ROWS = 64, 300
# A pair of targets with so many rows is trusted half as much as one with all.
_HALF_TRUSTED = 2.0


def estimate_correlation(Z: Array, weight: Array, shrinkage: float) -> Correlation:
    """Correlation of residuals about zero, shrunk towards that of unrelated targets.

    Parameters
    ----------
    Z : ndarray of shape (N, p)
        Residuals in units of their deviations, NaN where a target was not measured.
    weight : ndarray of shape (N,)
    shrinkage : float
        Share of the identity, between 0 and 1.

    Notes
    -----
    With blanks each pair of targets counts the rows that have both, less where these are few, and
    the matrix is made psd by leaving out negative eigenvalues. Complete residuals of many targets
    stay what they are, a factor with as many rows as there are residuals. Time N p min(N, p).
    """
    N, p = Z.shape
    if shrinkage >= 1.0 or N == 0:
        return Correlation.identity(p)
    known = np.isfinite(Z)
    if known.all():
        F = np.sqrt(weight / weight.sum())[:, None] * Z
        factor = F if p > N else _root(F.T @ F)
    else:
        factor = _root(_pairwise(np.where(known, Z, 0.0), known, weight))
    length = np.linalg.norm(factor, axis=0)
    factor = factor / np.where(length > 0.0, length, 1.0)
    return Correlation(factor, np.where(length > 0.0, 0.0, 1.0)).shrunk(shrinkage)


def choose_shrinkage(Z: Array, weight: Array, rng: np.random.Generator) -> float:
    """The share of the identity with which given targets predict the others best, on rows left out.

    Parameters
    ----------
    Z : ndarray of shape (N, p)
        One residual for each row, in units of their deviations, NaN where a target is missing.
    weight : ndarray of shape (N,)
    rng : numpy.random.Generator
        Draws the targets that are taken as given.

    Notes
    -----
    Shares are compared by the squared errors of the other targets, given halves of the targets and
    given single ones. A row whose error is more than three times the typical one counts as if it
    were at that distance, so that a few rows far out do not decide. The largest share within 1.5
    standard errors, over rows, of the best one is taken: a relation must show before it is used,
    since predictions must not become worse by what is given.

    Time 5 x 24 x 10 systems of half the targets and less.
    """
    if Z.shape[1] <= 1 or len(Z) < 4:
        return 1.0
    if Z.shape[1] > MOST_TARGETS:
        Z = Z[:, np.sort(rng.choice(Z.shape[1], MOST_TARGETS, replace=False))]
    if len(Z) > MOST_ROWS:
        some = np.sort(rng.choice(len(Z), MOST_ROWS, replace=False))
        Z, weight = Z[some], weight[some]
    p = Z.shape[1]
    halves = np.zeros((N_HALVES, p), dtype=bool)
    for half in halves:
        half[rng.permutation(p)[: p // 2]] = True
    single = np.eye(p, dtype=bool)[rng.permutation(p)[:N_SINGLE]]
    # Of few targets there are few halves.
    patterns, repeats = np.unique(np.vstack([halves, ~halves, single]), axis=0, return_counts=True)
    losses, part = np.zeros((len(SHRINKAGES), len(Z))), np.arange(len(Z)) % N_PARTS
    complete = bool(np.isfinite(Z).all())
    for number in range(min(N_PARTS, len(Z))):
        train, test = part != number, part == number
        unshrunk = estimate_correlation(Z[train], weight[train], 0.0)
        for which, shrinkage in enumerate(SHRINKAGES):
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
                losses[which, test] += (
                    repeat * squares.sum(axis=1) / np.maximum(1, present.sum(axis=1))
                )
    typical = np.median(losses, axis=0)
    limit = FAR**2 * float(np.median(typical))
    far = (typical > limit) & (limit > 0.0)
    losses *= weight * np.divide(limit, typical, out=np.ones(len(Z)), where=far)
    excess = losses - losses[losses.mean(axis=1).argmin()]
    allowed = ALLOWANCE * excess.std(axis=1, ddof=1) / np.sqrt(len(Z))
    return SHRINKAGES[int(np.flatnonzero(excess.mean(axis=1) <= allowed).max())]


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
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T)


def group_patterns(known: Mask) -> Iterator[tuple[Index, Mask]]:
    """Rows (their places) that have the same targets known, and which these are.

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
