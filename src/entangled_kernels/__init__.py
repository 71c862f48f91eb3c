"""Multi-output kernel regression with entangled operator-valued kernels."""

from .estimators import EntangledKernelRidge, OperatorValuedKernelRidge

__all__ = ["EntangledKernelRidge", "OperatorValuedKernelRidge", "__version__"]

__version__ = "0.1.0"
