"""Models of noise: what the settings of a fit make of targets that are errors and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..conditioning import Calibration
from ..linalg import Array
from .fit import Fit, fit_problem

__all__ = ["noise_coefficients"]


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
    problem, correlation = fit.problem, calibration.correlation
    share = np.clip(fit.centre()[1] / problem.weight, np.finfo(float).tiny, None)
    unit = calibration.deviation.scale / np.sqrt(share)  # (p,)
    settings, root = replace(fit.settings, solver="closed-form"), np.sqrt(problem.scale)[:, None]
    found = np.zeros((n_draws, problem.n_outputs, problem.n_features))
    for draw in range(n_draws):
        shared = rng.normal(size=(len(root), len(correlation.factor))) @ correlation.factor
        own = rng.normal(size=(len(root), problem.n_outputs)) * np.sqrt(correlation.own)
        targets = (root * (shared + own) * unit) @ problem.outputs  # (m', k)
        if targets.any():
            found[draw] = fit_problem(replace(problem, targets=targets), settings).linear.coef
    return found
