"""Learning an entangled kernel and a ridge solution from moments of the rows.

Moments -> `Problem` -> solvers (the alignment and its maximum) -> `LearnedKernel` -> ridge ->
posterior; `fit_problem` is the whole way from a problem to a `Fit`. Missing targets are a matter of
`Moments`, which keep one group of targets for each set of rows, and of the problem made of them.
"""

from .fit import Fit, LinearModel, fit_problem
from .missing import complete_moments, fill_rows
from .moments import Moments, RowSample
from .posterior import leave_one_out
from .problem import Problem, reduce_moments, reduce_rows
from .ridge import LearnedKernel
from .solvers import SOLVERS, FitSettings, Progress

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
    "complete_moments",
    "fill_rows",
    "fit_problem",
    "leave_one_out",
    "reduce_moments",
    "reduce_rows",
]
