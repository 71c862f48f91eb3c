"""Output kernel learning: a separable kernel k(x, z) L whose output part L is learned with the fit."""

from .learn import learn_output_kernel, output_kernel_path
from .measured_cells import MeasuredProblem, reduce_cells
from .penalised import fixed_output_kernel, learn_penalised
from .penalties import PENALTIES, OutputPenalty, graph_output_kernel
from .problem import OutputKernelProblem, alpha_unit, reduce_problem, solve_sylvester
from .result import OutputKernelResult

__all__ = [
    "PENALTIES",
    "MeasuredProblem",
    "OutputKernelProblem",
    "OutputKernelResult",
    "OutputPenalty",
    "alpha_unit",
    "fixed_output_kernel",
    "graph_output_kernel",
    "learn_output_kernel",
    "learn_penalised",
    "output_kernel_path",
    "reduce_cells",
    "reduce_problem",
    "solve_sylvester",
]
