"""Operator-valued kernels, and ridge systems with any of them."""

from .algebra import HadamardKernel, SumKernel
from .base import OperatorValuedKernel
from .diagnosis import EntanglementReport, entanglement_report
from .kraus import EntangledKernel, KrausKernel
from .ridge import (
    SOLVERS,
    BlockRidge,
    Factor,
    Solver,
    SolverChoice,
    factorize,
    lowest_eigenvalue,
    select_solver,
)
from .scalar import ExponentialDot, FeatureKernel, MatrixKernel
from .separable import SeparableKernel
from .unstructured import (
    CurlFreeKernel,
    DivergenceFreeKernel,
    PartialTraceKernel,
    TransformableKernel,
)

__all__ = [
    "SOLVERS",
    "BlockRidge",
    "CurlFreeKernel",
    "DivergenceFreeKernel",
    "EntangledKernel",
    "EntanglementReport",
    "ExponentialDot",
    "Factor",
    "FeatureKernel",
    "HadamardKernel",
    "KrausKernel",
    "MatrixKernel",
    "OperatorValuedKernel",
    "PartialTraceKernel",
    "SeparableKernel",
    "Solver",
    "SolverChoice",
    "SumKernel",
    "TransformableKernel",
    "entanglement_report",
    "factorize",
    "lowest_eigenvalue",
    "select_solver",
]
