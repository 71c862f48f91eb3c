"""Descent on a factor B of L = B B^T by L-BFGS, for spectral penalties whose conjugate is not smooth."""

from __future__ import annotations

import numpy as np

from ..linalg import Array
from .certificate import Gram, Point, Preconditioner, Step, duality_gap
from .descent import minimise
from .penalties import SpectralPenalty, compose

__all__ = ["factor_round"]

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
    B_ij is near 2 (curvature_ij levels_j + P'_i - S_ii / 2): B is scaled by its inverse root. Of matrices of
    size one, b with L = b^2, the whole Hessian 4 b b^T curvature + 2 diag(P' - S / 2) is at hand, and few
    steps are left to L-BFGS.
    """
    levels, V = np.linalg.eigh(point.L)  # (m, k), (m, k, k)
    levels = np.maximum(levels, FLOOR * levels.max())
    slope, scale = _slope(penalty, levels, point.S, V)
    rotated = np.einsum("mki,mkl,mli->mi", V, point.S, V)  # diagonal of V^T S V, (m, k)
    rest = np.maximum(slope - 0.5 * rotated, 0.0) + DAMPING * slope
    curvature = gram.curvature(point.L, point.C)
    if curvature.ndim == 2:
        change = _whole_change(curvature, levels[:, 0], rest[:, 0], scale, ball=penalty.radius is not None)
    else:
        change = _change(curvature, levels, rest, scale)

    within = False

    def value_and_slope(X: Array) -> tuple[float, Array]:
        left, sizes, right = np.linalg.svd(change.forward(X))
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
        return value, change.adjoint(scale * (left @ ((inner * sizes[:, None, :]) @ right)))

    start = np.zeros_like(point.L)
    index = np.arange(levels.shape[1])
    start[:, index, index] = np.sqrt(levels)
    X, evaluations = minimise(value_and_slope, change.inverse(start), steps, lambda: within, whitened=True)
    left, sizes, _ = np.linalg.svd(change.forward(X))
    return Step(compose(penalty.level_scale(sizes**2) * sizes**2, V @ left), None, evaluations)


def _change(curvature: Array, levels: Array, rest: Array, scale: float) -> Preconditioner:
    """B = X times the inverse roots of its second derivatives, entry by entry."""
    unit = 1.0 / np.sqrt(2.0 * scale * (curvature * levels[:, None, :] + rest[:, :, None]))  # (m, k, k)
    return Preconditioner(lambda X: X * unit, lambda B: B / unit, lambda B: B * unit)


def _whole_change(
    curvature: Array, levels: Array, rest: Array, scale: float, *, ball: bool
) -> Preconditioner:
    """b = R X with R R^T the inverse of the Hessian; of a ball, in which the size of b is free, across b."""
    b = np.sqrt(levels)
    hessian = scale * (4.0 * b[:, None] * curvature * b + 2.0 * np.diag(rest))  # (m, m)
    if ball:
        across = np.eye(len(b)) - np.outer(b, b) / levels.sum()
        size = float(np.trace(hessian)) / len(b)
        hessian = across @ hessian @ across + size * np.outer(b, b) / levels.sum()
    values, U = np.linalg.eigh(hessian)
    roots = np.sqrt(np.maximum(values, FLOOR * values[-1]))

    def shaped(vector: Array) -> Array:
        return np.asarray(vector)[:, None, None]

    return Preconditioner(
        lambda X: shaped(U @ (X[:, 0, 0] / roots)),
        lambda B: shaped(roots * (U.T @ B[:, 0, 0])),
        lambda B: shaped((U.T @ B[:, 0, 0]) / roots),
    )


def _slope(penalty: SpectralPenalty, levels: Array, S: Array, V: Array) -> tuple[Array, float]:
    """The gradient of the penalty by level, (m, k), and the factor to the boundary of a ball."""
    slope = penalty.level_slope(levels)
    if penalty.radius is None:
        return slope, 1.0
    along = float(np.einsum("mi,mki,mkl,mli->", levels, V, S, V))  # <L, S>
    normal = float(np.vdot(slope, levels))
    return 0.5 * along / max(normal, np.finfo(float).tiny) * slope, penalty.level_scale(levels)
