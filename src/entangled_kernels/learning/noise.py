"""Models of noise: what the settings of a fit make of targets that are errors and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..conditioning import Calibration
from ..linalg import Array
from .fit import Fit, FitSettings, fit_problem
from .problem import reduce_rows

__all__ = ["AveragedPart", "noise_coefficients", "noise_of_average"]


def noise_coefficients(fit: Fit, calibration: Calibration, n_draws: int, rng: np.random.Generator) -> Array:
    """Coefficients (n_draws, p, m) of models fitted to draws of the errors alone.

    Parameters
    ----------
    fit : Fit
        Whose features and settings are used; the kernel is learned anew, in closed form.
    calibration : Calibration
        Errors of held-out rows: their deviations, and how they go together.
    n_draws : int
    rng : numpy.random.Generator

    Notes
    -----
    With E (n, p) errors of covariance S, independent of the inputs, the moments sum_i phi_i e_i^T have in the
    coordinates of the problem, where those of the features are diag(scale), the covariance diag(scale) kron
    S. So they are drawn as they are, without any rows, and the model is fitted to them. Where targets have
    blanks, errors of a target are larger by the root of one over the share of its cells that were measured.

    Time n_draws times that of `fit_problem`.
    """
    problem = fit.problem
    settings, root = replace(fit.settings, solver="closed-form"), np.sqrt(problem.scale)[:, None]
    found = np.zeros((n_draws, problem.n_outputs, problem.n_features))
    # From the longest axis to the shortest, in whatever order the problem has them.
    place = np.argsort(np.argsort(-problem.scale, kind="stable"))
    for draw in range(n_draws):
        errors = _draw_errors(len(root), fit, calibration, rng)[place]
        targets = (root * errors) @ problem.outputs  # (m', k)
        if targets.any():
            found[draw] = fit_problem(replace(problem, targets=targets), settings).linear.coef
    return found


class AveragedPart(NamedTuple):
    """One feature map of an average: features of rows (n, m), settings, and share for every target, (p,)."""

    Phi: Array
    settings: FitSettings
    share: Array


def noise_of_average(
    parts: Sequence[AveragedPart], fit: Fit, calibration: Calibration, n_draws: int, rng: np.random.Generator
) -> Array:
    """Coefficients (n_draws, p, sum of m) of averages over feature maps, fitted to draws of the errors alone.

    Parameters
    ----------
    parts : list of AveragedPart
        With features of the same rows.
    fit : Fit
        Of the best candidate, which knows how many rows there were in training, and how many cells.
    calibration : Calibration
    n_draws : int
    rng : numpy.random.Generator

    Notes
    -----
    All parts see the same errors E (n, p), so that what they make of these goes together as it does in the
    average. Where training had the weight W, a row counts W / n times, and errors are smaller by sqrt(n / W):
    so the moments have the covariance that those of the training rows would have.

    Time for every part that of `reduce_rows`, and n_draws times n m p and that of `fit_problem`.
    """
    weight, n = fit.problem.weight, len(parts[0].Phi)
    errors = np.stack([_draw_errors(n, fit, calibration, rng) for _ in range(n_draws)]) * np.sqrt(n / weight)
    found = [np.zeros((n_draws, errors.shape[2], part.Phi.shape[1])) for part in parts]
    if not errors.any():
        return np.concatenate(found, axis=2)
    for (Phi, given, share), coefs in zip(parts, found, strict=True):
        settings, rows = replace(given, solver="closed-form"), np.full(n, weight / n)
        problem = reduce_rows(Phi, errors[0], rows, centred=fit.problem.centred)[0]
        Z = (Phi - problem.mean_phi) @ problem.features  # (n, m')
        for draw, E in enumerate(errors):
            targets = (weight / n) * Z.T @ E @ problem.outputs  # (m', k)
            if targets.any():
                own = fit_problem(replace(problem, targets=targets), settings).linear.coef
                coefs[draw] = share[:, None] * own
    return np.concatenate(found, axis=2)


def _draw_errors(n: int, fit: Fit, calibration: Calibration, rng: np.random.Generator) -> Array:
    """Errors of n rows, (n, p), larger where a share of the cells was measured."""
    measured = np.clip(fit.centre()[1] / fit.problem.weight, np.finfo(float).tiny, None)
    unit, correlation = calibration.deviation.scale / np.sqrt(measured), calibration.correlation  # (p,)
    shared = rng.normal(size=(n, len(correlation.factor))) @ correlation.factor
    own = rng.normal(size=(n, fit.problem.n_outputs)) * np.sqrt(correlation.own)
    return np.asarray((shared + own) * unit)
