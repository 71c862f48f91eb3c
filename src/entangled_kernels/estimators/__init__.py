"""scikit-learn estimators: they validate, resolve, call the layers below, and store."""

from .entangled_kernel_ridge import EntangledKernelRidge

__all__ = ["EntangledKernelRidge"]
