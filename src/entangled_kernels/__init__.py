"""Multi-output kernel regression with entangled operator-valued kernels."""

from .estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from .features import (
    ColumnWidthFeatures,
    EvidenceFeatures,
    ForestFeatures,
    GaussianFeatures,
    RegressorFeatures,
)

__all__ = [
    "ColumnWidthFeatures",
    "EntangledKernelRidge",
    "EntangledKernelRidgeCV",
    "EvidenceFeatures",
    "ForestFeatures",
    "GaussianFeatures",
    "OperatorValuedKernelRidge",
    "OutputKernelRidge",
    "OutputKernelRidgeCV",
    "RegressorFeatures",
    "__version__",
]

__version__ = "0.1.0"
