"""Fitted models: one frozen value that predicts, conditions on given targets, and estimates its errors."""

from .explanation import METHODS, Explanation, NoisePart, explain_model
from .fitted import FIRST_BLOCK, FittedModel, block_height
from .input_range import InputRange
from .target_scale import TargetScale, check_target_transform, fit_target_scale, needs_rows

__all__ = [
    "FIRST_BLOCK",
    "METHODS",
    "Explanation",
    "FittedModel",
    "InputRange",
    "NoisePart",
    "TargetScale",
    "block_height",
    "check_target_transform",
    "explain_model",
    "fit_target_scale",
    "needs_rows",
]
