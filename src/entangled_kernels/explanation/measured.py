"""Measured targets in an explanation: what they change, and what of an input's effect they take over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..conditioning import Calibration, group_patterns
from ..linalg import Array, Index

__all__ = ["Mixture", "measured_effects", "mixtures"]


class Mixture(NamedTuple):
    """Rows of one pattern of measured targets, (t,), and how their predictions follow.

    With f the predictions without measurements and y the measured targets, those with them are
    follow @ f + weights @ y: ``follow`` (p, p) has zeros in the rows of measured targets, ``weights`` (p, p)
    in these and in the columns of targets that are not measured.
    """

    rows: Index
    follow: Array
    weights: Array


def mixtures(
    calibration: Calibration | None, measured: Array | None, shape: tuple[int, int]
) -> list[Mixture]:
    """How the predictions of rows follow, one mixture for every pattern of measured targets.

    Parameters
    ----------
    calibration : Calibration or None
        Not needed without measured targets.
    measured : ndarray of shape (n, p) or None
        NaN where a target is to be predicted.
    shape : tuple
        (n, p)

    Notes
    -----
    With D the deviations and R the correlation of errors, the targets U that are not measured follow the
    measured ones O by T = D_U R_UO R_OO^-1 D_O^-1: f_U + T (y_O - f_O). Where deviations depend on the input
    they do so by one factor for all targets, which cancels. A relation that depends on the input is held at
    its mean, the correlation.

    Time q^3 + q^2 p for a pattern of q measured targets.
    """
    n, p = shape
    if measured is None or calibration is None:
        return [Mixture(np.arange(n), np.eye(p), np.zeros((p, p)))]
    scale, found = calibration.deviation, []
    unit = np.where(scale > 0.0, scale, 1.0)
    for rows, known in group_patterns(np.isfinite(measured)):
        places, weights = np.flatnonzero(known), np.zeros((p, p))
        if len(places):
            # The answer to each measured error of one deviation.
            Z = np.full((len(places), p), np.nan)
            Z[:, places] = np.eye(len(places))
            answer = calibration.correlation.condition(Z).mean  # (q, p)
            weights[:, places] = (scale * answer / unit[places, None]).T
        weights[places] = 0.0
        follow = np.diag((~known).astype(np.float64)) - weights
        found.append(Mixture(np.asarray(rows), follow, weights))
    return found


def measured_effects(
    calibration: Calibration, measured: Array, found: list[Mixture]
) -> tuple[Index, Array, Array, Array]:
    """Places of the targets that are measured somewhere, (q,), and their effect, size and noise, (q, p).

    Rows where a target is measured and the other is not count; NaN where there is none. The noise is that of
    errors which are not related: their correlation over N rows is below 2/sqrt(N) but for one time in twenty,
    less what it is shrunk by.
    """
    known = np.isfinite(measured)
    places = np.flatnonzero(known.any(axis=0))
    p = measured.shape[1]
    deviation = np.array([measured[known[:, place], place].std() for place in places])  # (q,)
    sums, squares, counts = (np.zeros((len(places), p)) for _ in range(3))
    for rows, _, weights in found:
        own = known[rows[0]] if len(rows) else np.zeros(p, dtype=bool)
        both = np.outer(own[places], ~own)
        sums += len(rows) * np.where(both, weights.T[places], 0.0)
        squares += len(rows) * np.where(both, weights.T[places] ** 2, 0.0)
        counts += len(rows) * both
    counts = np.where(counts > 0.0, counts, np.nan)
    scale = calibration.deviation
    chance = 2.0 * (1.0 - calibration.shrinkage) / np.sqrt(calibration.residuals.n_rows)
    ratio = scale / np.where(scale > 0.0, scale, 1.0)[places, None]  # (q, p)
    unit = deviation[:, None]
    return places, unit * sums / counts, unit * np.sqrt(squares / counts), unit * chance * ratio
