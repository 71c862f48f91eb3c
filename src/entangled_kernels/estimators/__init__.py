"""Estimators with the interface of scikit-learn."""

from .operator_valued_kernel_ridge import OperatorValuedKernelRidge

__all__ = ["OperatorValuedKernelRidge"]
