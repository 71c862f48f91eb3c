"""scikit-learn estimators: they validate, resolve, call the layers below, and store."""

from .entangled import NoveltyWarning
from .entangled_kernel_classifier import EntangledKernelClassifier
from .entangled_kernel_ridge import EntangledKernelRidge
from .entangled_kernel_ridge_cv import EntangledKernelRidgeCV
from .multi_view import MultiViewKernelClassifier, MultiViewKernelRidge
from .multiple_kernel_ridge import MultipleKernelRidge
from .operator_fourier_ridge import OperatorFourierRidge
from .operator_kernel_var import OperatorKernelVAR
from .operator_valued_kernel_ridge import OperatorValuedKernelRidge
from .output_kernel_ridge import OutputKernelRidge
from .output_kernel_ridge_cv import OutputKernelRidgeCV

__all__ = [
    "EntangledKernelClassifier",
    "EntangledKernelRidge",
    "EntangledKernelRidgeCV",
    "MultiViewKernelClassifier",
    "MultiViewKernelRidge",
    "MultipleKernelRidge",
    "NoveltyWarning",
    "OperatorFourierRidge",
    "OperatorKernelVAR",
    "OperatorValuedKernelRidge",
    "OutputKernelRidge",
    "OutputKernelRidgeCV",
]
