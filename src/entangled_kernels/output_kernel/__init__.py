"""Output kernel learning: a separable kernel k(x, z) L whose output part L is learned with the fit."""

from .learn import OutputKernelResult, learn_output_kernel, output_kernel_path
from .problem import OutputKernelProblem, alpha_unit, reduce_problem, solve_sylvester

__all__ = [
    "OutputKernelProblem",
    "OutputKernelResult",
    "alpha_unit",
    "learn_output_kernel",
    "output_kernel_path",
    "reduce_problem",
    "solve_sylvester",
]
