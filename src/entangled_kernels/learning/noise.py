"""Models of noise: what the settings of a fit make of targets that are errors and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from ..conditioning import Calibration
from ..linalg import Array
from .alignment import Alignment
from .fit import Fit, FitSettings, fit_problem
from .problem import Problem, reduce_rows

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
        B = root * _draw_errors(len(root), fit, calibration, rng)[place]  # (m', p)
        if B.any():
            found[draw] = fit_problem(_with_targets(problem, B), settings).linear.coef
    return found


class AveragedPart(NamedTuple):
    """One feature map of an average: features of rows (n, m), settings, and shares of it, (1,) or (p,)."""

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

    Time for every part that of `reduce_rows`, and n_draws times n m p and that of `fit_problem`; memory that
    of the features once more, and of one draw.
    """
    weight, n, p = fit.problem.weight, len(parts[0].Phi), fit.problem.n_outputs
    found = [np.zeros((n_draws, p, part.Phi.shape[1])) for part in parts]
    reduced: list[tuple[Problem, Array]] = []
    for draw in range(n_draws):
        E = _draw_errors(n, fit, calibration, rng) * np.sqrt(n / weight)  # (n, p)
        if not E.any():
            continue
        if not reduced:
            rows = np.full(n, weight / n)
            problems = [reduce_rows(part.Phi, E, rows, centred=fit.problem.centred)[0] for part in parts]
            reduced = [
                (problem, (part.Phi - problem.mean_phi) @ problem.features)  # (n, m')
                for problem, part in zip(problems, parts, strict=True)
            ]
        for (problem, Z), part, coefs in zip(reduced, parts, found, strict=True):
            settings = replace(part.settings, solver="closed-form")
            own = fit_problem(_with_targets(problem, (weight / n) * Z.T @ E), settings).linear.coef
            coefs[draw] = part.share[:, None] * own
    return np.concatenate(found, axis=2)


def _with_targets(problem: Problem, B: Array) -> Problem:
    """The problem with other second moments with the targets, (m', p), for a kernel in closed form.

    Outputs get a basis of what these moments reach, which need not be what others did. The unit of the
    alignment, which nobody asks for, is any.
    """
    m, p = B.shape
    outputs = np.eye(p) if m >= p else np.asarray(qr(B.T, mode="economic")[0])
    targets = B @ outputs  # (m', k)
    b, ones = targets / np.sqrt(problem.scale)[:, None], outputs.sum(axis=0)
    whitened = Alignment(
        problem.whitened.mix, C=None, B=b, q=b, g=None, ones=ones, norms=(1.0, 1.0), n_outputs=p
    )
    return replace(problem, targets=targets, outputs=outputs, whitened=whitened, missing=None)


def _draw_errors(n: int, fit: Fit, calibration: Calibration, rng: np.random.Generator) -> Array:
    """Errors of n rows, (n, p), larger where a share of the cells was measured."""
    measured = np.clip(fit.centre()[1] / fit.problem.weight, np.finfo(float).tiny, None)
    unit, correlation = calibration.deviation / np.sqrt(measured), calibration.correlation  # (p,)
    shared = rng.normal(size=(n, len(correlation.factor))) @ correlation.factor
    own = rng.normal(size=(n, fit.problem.n_outputs)) * np.sqrt(correlation.own)
    return np.asarray((shared + own) * unit)
