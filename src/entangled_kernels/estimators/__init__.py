"""scikit-learn estimators: they validate, resolve, call the layers below, and store."""

from .entangled_kernel_ridge import EntangledKernelRidge
from .operator_valued_kernel_ridge import OperatorValuedKernelRidge

__all__ = ["EntangledKernelRidge", "OperatorValuedKernelRidge"]
