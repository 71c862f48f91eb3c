"""What measuring one target says of the others, and which to measure next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array, Index
from .correlation import Correlation

__all__ = ["Plan", "information", "plan_measurements"]

Mask = NDArray[np.bool_]


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


def plan_measurements(correlation: Correlation, known: Mask, importance: Array, cost: Array) -> Plan:
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
        Next comes the target whose measurement is expected to remove most of the sum of all variances for
        its cost, given those before it. Reductions are shares of that sum as it is before any of them.

    Notes
    -----
    With S the covariance given what is known, measuring a takes S_ab^2 / S_aa off the variance of b; then S
    is updated. Time p^2 for every measurement.
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
