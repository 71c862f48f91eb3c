"""Output kernel learning with any convex penalty, and ridge regression with a given output kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..convex import Elastic, Penalty, Schatten, Solution, solve_convex
from ..convex.kronecker import KroneckerGram
from ..convex.penalties import SpectralPenalty, compose
from ..linalg import Array
from .measured_cells import MeasuredProblem, learn_measured
from .penalties import OutputPenalty
from .problem import OutputKernelProblem, alpha_unit, solve_sylvester
from .result import OutputKernelResult

__all__ = ["fixed_output_kernel", "learn_penalised"]

# Levels of a start are at least this share of the largest, so that all directions can grow.
FLOOR = 1e-2
# Those of a given start, as a share of the size of L.
WARM_FLOOR = 1e-6


def fixed_output_kernel(
    problem: OutputKernelProblem | MeasuredProblem,
    alpha: float,
    L: ArrayLike,
    *,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> OutputKernelResult:
    """Ridge regression with the kernel k(x, z) L for a given psd L (p, p).

    Where targets have blanks it takes steps, no more than ``max_iter``, until the duality gap is at most
    tol^2 times the objective; complete targets have a closed form.
    """
    L = np.array(L, dtype=np.float64)
    if isinstance(problem, MeasuredProblem):
        return learn_measured(
            problem,
            alpha,
            lambda complete, *_: _given(complete, L, alpha, "fixed"),
            fixed=L,
            max_iter=max_iter,
            tol=tol,
        )
    return _given(problem, L, alpha, "fixed")


def learn_penalised(
    problem: OutputKernelProblem,
    alpha: float,
    penalty: OutputPenalty,
    *,
    start: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> OutputKernelResult:
    """Learn the output kernel L with a convex penalty P.

    Minimises vec(Y)^T (K kron L + alpha I)^-1 vec(Y) / 2 + P(L) over psd L, or, as a constraint, the first
    term alone over the L whose penalty is at most that of the identity.

    Parameters
    ----------
    problem : OutputKernelProblem
    alpha : float
    penalty : OutputPenalty
    start : array-like of shape (p, p), optional
        Positive semi-definite L to start from, such as the solution for an alpha near by.
    max_iter : int, default=1000
        Evaluations of the objective or its dual after which the search ends.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol^2 times the objective. Where the penalty is strongly convex
        the relative error of L then is of the order of tol.

    Notes
    -----
    A penalty on eigenvalues does not rise when L is compressed to the directions of the outputs that K can
    reach, and only these are worked on; clusters are those of what is left of the outputs without their mean.
    Penalties on entries need all outputs.

    Time n p (n + p) once, then q k^2 + k^3 for an evaluation, k <= min(q, p) directions, q the rank of K.
    """
    basis, targets, fixed = _directions(problem, penalty)
    k, p = basis.shape[1], len(basis)
    if k == 0:
        L = np.eye(p) if penalty.is_ball else np.zeros((p, p))
        return _given(problem, L, alpha, "zero")
    built = penalty.build(p, k)
    gram = KroneckerGram(problem.values, targets, alpha, _constant(problem, targets, alpha))
    first = None if start is None else basis.T @ np.asarray(start) @ basis
    solution = solve_convex(
        gram, built, _start(problem, gram, penalty, built, first), max_iter=max_iter, tol=tol**2
    )
    return _learned(problem, basis, targets, fixed, solution, alpha)


def _directions(problem: OutputKernelProblem, penalty: OutputPenalty) -> tuple[Array, Array, Array]:
    """Orthonormal directions (p, k) of the outputs to learn on, targets (q, k) there, and L elsewhere."""
    p = len(problem.outputs)
    if penalty.name == "entrywise":
        return np.eye(p), problem.targets @ problem.outputs.T, np.zeros((p, p))
    if penalty.name != "cluster":
        return problem.outputs, problem.targets, np.zeros((p, p))
    centred = problem.outputs - problem.outputs.mean(axis=0)  # (p, k)
    left, sizes, right = np.linalg.svd(centred @ problem.targets.T, full_matrices=False)
    kept = sizes > max(p, len(right)) * np.finfo(float).eps * np.linalg.norm(problem.targets)
    basis = left[:, kept]
    rest = np.eye(p) - 1.0 / p - basis @ basis.T
    return basis, right[kept].T * sizes[kept], 1.0 / p + penalty.level_bounds[0] * rest


def _constant(problem: OutputKernelProblem, targets: Array, alpha: float) -> float:
    """The objective of what is not learned on: targets K cannot reach, and for clusters their mean."""
    constant = float(np.vdot(problem.rest, problem.rest)) / (2 * alpha)
    # By row of the eigenbasis, what the directions leave of the targets; their level is one.
    left = np.sum(problem.targets**2, axis=1) - np.sum(targets**2, axis=1)
    return constant + 0.5 * float(np.sum(np.maximum(left, 0.0) / (problem.values + alpha)))


def _start(
    problem: OutputKernelProblem,
    gram: KroneckerGram,
    penalty: OutputPenalty,
    built: Penalty,
    first: Array | None,
) -> Array:
    """A given start, or the best L for the fit of kernel ridge, with no level next to zero."""
    level = 1.0 if penalty.is_ball else alpha_unit(problem, penalty=penalty) / alpha_unit(problem, fixed=True)
    if first is not None:
        levels, V = np.linalg.eigh(first)
        floor = WARM_FLOOR * level
    elif isinstance(built, SpectralPenalty):
        # K^1/2 C L of kernel ridge, whose squares the best levels follow.
        G = (np.sqrt(gram.values) * level / (gram.values * level + gram.alpha))[:, None] * gram.targets
        squares, V = np.linalg.eigh(G.T @ G)
        levels = built.level_best(np.maximum(squares, 0.0)[None])[0]
        floor = FLOOR * float(levels.max())
    else:
        return level * np.eye(gram.targets.shape[1])[None]
    levels = np.maximum(levels, max(floor, np.finfo(float).tiny))
    if isinstance(built, Schatten | Elastic):
        levels = levels * built.level_scale(levels)
    return compose(levels[None], V[None])


def _given(problem: OutputKernelProblem, L: Array, alpha: float, reason: str) -> OutputKernelResult:
    """The result for an L that was not learned."""
    C = solve_sylvester(problem, L, alpha)
    value = 0.5 * float(np.vdot(C, problem.Y))
    weighted = C * problem.root_weight[:, None]
    return OutputKernelResult(
        weighted, L, _intercept(problem, weighted, L), value, 0.0, C, True, reason, 1, np.array([value])
    )


def _learned(
    problem: OutputKernelProblem, basis: Array, targets: Array, fixed: Array, solution: Solution, alpha: float
) -> OutputKernelResult:
    """The result in all outputs, from the solution on a basis of them."""
    point = solution.point
    B = basis @ point.L[0]  # (p, k)
    L = B @ basis.T + fixed
    L = 0.5 * (L + L.T)
    # Where nothing is learned the level is one, and the coefficients are those of kernel ridge.
    left = problem.targets @ problem.outputs.T - targets @ basis.T  # (q, p)
    elsewhere = problem.vectors @ (left / (problem.values + alpha)[:, None]) + problem.rest / alpha
    C, witness = (problem.vectors @ (inside @ basis.T) + elsewhere for inside in (point.C, point.witness))
    weighted = C * problem.root_weight[:, None]
    return OutputKernelResult(
        weighted,
        L,
        _intercept(problem, weighted, L),
        point.value,
        point.gap,
        witness,
        solution.converged,
        solution.reason,
        solution.n_iter,
        solution.history,
    )


def _intercept(problem: OutputKernelProblem, C: Array, L: Array) -> Array:
    return np.asarray(problem.mean_y - (problem.mean_k @ C) @ L)
