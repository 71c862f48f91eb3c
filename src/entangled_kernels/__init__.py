"""Multi-output kernel regression with entangled operator-valued kernels."""

from .estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    MultipleKernelRidge,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from .features import EvidenceFeatures, GaussianFeatures

__all__ = [
    "EntangledKernelRidge",
    "EntangledKernelRidgeCV",
    "EvidenceFeatures",
    "GaussianFeatures",
    "MultipleKernelRidge",
    "OperatorValuedKernelRidge",
    "OutputKernelRidge",
    "OutputKernelRidgeCV",
    "__version__",
]

__version__ = "0.1.0"
