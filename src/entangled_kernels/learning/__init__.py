"""Learning an entangled kernel and a ridge solution from moments of the rows.

Moments -> compression -> `Problem` -> solvers (the alignment and its maximum) -> `LearnedKernel` -> ridge ->
posterior; `fit_problem` is the whole way from a problem to a `Fit`.
"""

from .compression import compress_for_fit
from .fit import Fit, FitSettings, LinearModel, fit_problem
from .kernel import LearnedKernel
from .moments import Moments
from .problem import Problem, reduce_moments, reduce_rows
from .row_sample import RowSample
from .solvers import SOLVERS, Progress, SolverOptions

__all__ = [
    "SOLVERS",
    "Fit",
    "FitSettings",
    "LearnedKernel",
    "LinearModel",
    "Moments",
    "Problem",
    "Progress",
    "RowSample",
    "SolverOptions",
    "compress_for_fit",
    "fit_problem",
    "reduce_moments",
    "reduce_rows",
]
