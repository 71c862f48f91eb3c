"""Ridge regression whose Gram matrix is linear in learned parameters: penalties, solvers, certificates."""

from .certificate import Gram, Point, certify
from .penalties import Cluster, Elastic, Entrywise, Penalty, Schatten
from .solve import SOLVERS, Solution, solve_convex

__all__ = [
    "SOLVERS",
    "Cluster",
    "Elastic",
    "Entrywise",
    "Gram",
    "Penalty",
    "Point",
    "Schatten",
    "Solution",
    "certify",
    "solve_convex",
]
