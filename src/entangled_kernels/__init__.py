"""Multi-output kernel regression with entangled operator-valued kernels."""

from .estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    MultiViewKernelRidge,
    OperatorFourierRidge,
    OperatorKernelVAR,
    OperatorKernelVARCV,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from .features import EvidenceFeatures, GaussianFeatures, OperatorFourierFeatures

__all__ = [
    "EntangledKernelRidge",
    "EntangledKernelRidgeCV",
    "EvidenceFeatures",
    "GaussianFeatures",
    "MultiViewKernelClassifier",
    "MultiViewKernelRidge",
    "MultipleKernelRidge",
    "OperatorFourierFeatures",
    "OperatorFourierRidge",
    "OperatorKernelVAR",
    "OperatorKernelVARCV",
    "OperatorValuedKernelRidge",
    "OutputKernelRidge",
    "OutputKernelRidgeCV",
    "__version__",
]

__version__ = "0.1.0"
