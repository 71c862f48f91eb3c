"""Ways to learn an entangled kernel, behind one registry.

Every solver is a function ``solve(problem, options) -> SolverResult`` that knows nothing of estimators. To
add one, write such a function and name it in `SOLVERS`: the tests run over the registry.
"""

from .registry import SOLVERS, Solver, solve
from .result import Progress, SolverOptions, SolverResult

__all__ = ["SOLVERS", "Progress", "Solver", "SolverOptions", "SolverResult", "solve"]
