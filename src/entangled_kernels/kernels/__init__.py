"""Operator-valued kernels."""

from .algebra import HadamardKernel, SumKernel
from .base import OperatorValuedKernel
from .diagnosis import EntanglementReport, entanglement_report
from .entangled import EntangledKernel
from .kraus import KrausKernel
from .partial_trace import PartialTraceKernel
from .scalar import ExponentialDot, FeatureKernel, MatrixKernel
from .separable import SeparableKernel
from .transformable import TransformableKernel
from .vector_fields import CurlFreeKernel, DivergenceFreeKernel

__all__ = [
    "CurlFreeKernel",
    "DivergenceFreeKernel",
    "EntangledKernel",
    "EntanglementReport",
    "ExponentialDot",
    "FeatureKernel",
    "HadamardKernel",
    "KrausKernel",
    "MatrixKernel",
    "OperatorValuedKernel",
    "PartialTraceKernel",
    "SeparableKernel",
    "SumKernel",
    "TransformableKernel",
    "entanglement_report",
]
