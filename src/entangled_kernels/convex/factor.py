"""Descent on a factor B of L = B B^T by L-BFGS, for spectral penalties whose conjugate is not smooth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .certificate import Gram, Point, Step, duality_gap
from .descent import minimise
from .penalties import SpectralPenalty, compose

__all__ = ["factor_round"]

Array = NDArray[np.float64]

# Levels below this share of the largest start a round from it, so that they can grow again.
FLOOR = 1e-12
# What the preconditioner adds, as a share of the slope of the penalty, for directions without curvature.
DAMPING = 0.1


def factor_round(gram: Gram, penalty: SpectralPenalty, point: Point, steps: int, tol: float = 0.0) -> Step:
    """Better parameters than those of a point; steps end early where the gap is within a tolerance.

    Notes
    -----
    Minimises J(B B^T) over a stack of square B. The gradient with respect to L is P'(L) - S / 2, and so
    2 (P'(L) - S / 2) B with respect to B. A constraint N(L) <= r enters by L = t B B^T with L on its
    boundary; there P' is replaced by N' <L, S> / (2 <L, N'>), the multiple of the normal that leaves
    nothing of the gradient along L. A full factor has no minima but the one of the convex problem.

    In the eigenbasis of the point's L, where B is diag(sqrt(levels)), the second derivative with respect to
    B_ij is near 2 (curvature_ij levels_j + P'_i - S_ii / 2): B is scaled by its inverse root.
    """
    levels, V = np.linalg.eigh(point.L)  # (m, k), (m, k, k)
    levels = np.maximum(levels, FLOOR * levels.max())
    slope, scale = _slope(penalty, levels, point.S, V)
    diagonal = 2.0 * gram.curvature(point.L, point.C) * levels[:, None, :]
    rotated = np.einsum("mki,mkl,mli->mi", V, point.S, V)  # diagonal of V^T S V, (m, k)
    rest = np.maximum(slope - 0.5 * rotated, 0.0) + DAMPING * slope
    unit = 1.0 / np.sqrt(scale * (diagonal + 2.0 * rest[:, :, None]))  # (m, k, k)

    within = False

    def value_and_slope(X: Array) -> tuple[float, Array]:
        left, sizes, right = np.linalg.svd(X * unit)
        W = V @ left
        free = sizes**2
        scale = penalty.level_scale(free)
        L = compose(scale * free, W)
        C, _ = gram.solve(L)
        S = gram.squares(C)
        P = penalty.level_value(scale * free)
        value = 0.5 * float(np.vdot(gram.targets, C)) + P
        nonlocal within
        within = duality_gap(gram, penalty, P, L, C, S)[0] <= tol * (value + gram.constant)
        slope, _ = _slope(penalty, scale * free, S, W)
        inner = -W.transpose(0, 2, 1) @ S @ W  # (m, k, k), in the basis W
        inner[:, np.arange(len(slope[0])), np.arange(len(slope[0]))] += 2.0 * slope
        return value, scale * (left @ ((inner * sizes[:, None, :]) @ right)) * unit

    start = np.zeros_like(point.L)
    index = np.arange(levels.shape[1])
    start[:, index, index] = np.sqrt(levels)
    X, evaluations = minimise(value_and_slope, start / unit, steps, lambda: within)
    left, sizes, _ = np.linalg.svd(X * unit)
    return Step(compose(penalty.level_scale(sizes**2) * sizes**2, V @ left), None, evaluations)


def _slope(penalty: SpectralPenalty, levels: Array, S: Array, V: Array) -> tuple[Array, float]:
    """The gradient of the penalty by level, (m, k), and the factor to the boundary of a ball."""
    slope = penalty.level_slope(levels)
    if penalty.radius is None:
        return slope, 1.0
    along = float(np.einsum("mi,mki,mkl,mli->", levels, V, S, V))  # <L, S>
    normal = float(np.vdot(slope, levels))
    return 0.5 * along / max(normal, np.finfo(float).tiny) * slope, penalty.level_scale(levels)
