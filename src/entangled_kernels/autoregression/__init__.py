"""Nonlinear vector autoregression with operator-valued kernels."""

from .additive import AdditiveModel, learn_additive
from .hadamard import HadamardModel, learn_hadamard
from .windows import lag_windows

__all__ = ["AdditiveModel", "HadamardModel", "lag_windows", "learn_additive", "learn_hadamard"]
