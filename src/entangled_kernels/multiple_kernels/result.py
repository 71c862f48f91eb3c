"""What comes of multiple kernel learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array
from .problem import KernelsProblem

__all__ = ["KernelsResult", "expand", "intercept"]


@dataclass(frozen=True, eq=False)
class KernelsResult:
    """Learned kernels sum_j k_j(x, z) T_j, the dual coefficients that go with them, and how they were found.

    Attributes
    ----------
    C : ndarray of shape (n, p)
        Dual coefficients: the model is f(x) = sum_ij k_j(x, x_i) T_j C[i] / scale_j + intercept.
    weights : ndarray of shape (m,), or (m, p) where every output has its own
        Weights of the kernels.
    output_kernels : ndarray of shape (m, p, p)
        T_j.
    intercept : ndarray of shape (p,)
    value : float
        The objective.
    gap : float
        Duality gap: the objective is at most this much above its minimum. Where weights and an output kernel
        are learned together, the sum of the gaps of both, each with the other held fixed.
    converged : bool
    reason : str
        ``"tolerance"``, ``"max_iter"`` or ``"stalled"``.
    n_iter : int
        Evaluations of the objective.
    witness : ndarray of shape (n, p)
        Dual coefficients whose dual value is that of the objective less the gap: C unless others are better.
    """

    C: Array
    weights: Array
    output_kernels: Array
    intercept: Array
    value: float
    gap: float
    converged: bool
    reason: str
    n_iter: int
    witness: Array


def expand(
    problem: KernelsProblem,
    C: Array,
    alpha: float,
    weights: Array,
    output_kernels: Array,
    outcome: tuple[float, float, bool, str, int],
    witness: Array | None = None,
) -> KernelsResult:
    """The result in the coordinates of the rows, with its intercept."""
    C = problem.rows(C, alpha)
    witness = C if witness is None else problem.rows(witness, alpha)
    constant = intercept(problem, C, output_kernels, problem.mean_y)
    return KernelsResult(C, weights, output_kernels, constant, *outcome, witness)


def intercept(problem: KernelsProblem, C: Array, output_kernels: Array, mean: Array) -> Array:
    """Intercepts (p,) of kernels as they were given, from the means of what centred kernels leave."""
    shift = np.einsum("mn,np,mpq->q", problem.mean_k / problem.scales[:, None], C, output_kernels)  # (p,)
    return np.asarray(mean - shift)
