"""Multi-output kernel regression with entangled operator-valued kernels."""

from .estimators import EntangledKernelRidge

__all__ = ["EntangledKernelRidge", "__version__"]

__version__ = "0.1.0"
