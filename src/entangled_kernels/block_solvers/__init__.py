"""Ridge systems with block Gram matrices: plain solvers chosen by structure, which know no estimator."""

from .observed import factorize_observed
from .registry import SOLVERS, Factor, Solver, choose_solver, factorize, lowest_eigenvalue
from .ridge import ObservedRidge

__all__ = [
    "SOLVERS",
    "Factor",
    "ObservedRidge",
    "Solver",
    "choose_solver",
    "factorize",
    "factorize_observed",
    "lowest_eigenvalue",
]
