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
    StandardizedRegressor,
)
from .features import (
    ColumnWidthFeatures,
    EvidenceFeatures,
    ForestFeatures,
    GaussianFeatures,
    OperatorFourierFeatures,
    RegressorFeatures,
)

__all__ = [
    "ColumnWidthFeatures",
    "EntangledKernelRidge",
    "EntangledKernelRidgeCV",
    "EvidenceFeatures",
    "ForestFeatures",
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
    "RegressorFeatures",
    "StandardizedRegressor",
    "__version__",
]

__version__ = "0.1.0"
