"""Ridge systems with block Gram matrices: plain solvers chosen by structure, which know no estimator."""

from .registry import SOLVERS, Factor, Solver, choose_solver, factorize, lowest_eigenvalue

__all__ = ["SOLVERS", "Factor", "Solver", "choose_solver", "factorize", "lowest_eigenvalue"]
