"""Multi-output kernel regression with entangled operator-valued kernels."""

__version__ = "0.1.0"
