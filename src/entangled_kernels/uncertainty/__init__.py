"""From held-out residuals to predictive distributions.

`Residuals` of rows that had no part in a model give a `Calibration`: standard deviations,
correlations between the errors of targets, intervals, and predictions given targets that are
measured already. `estimate_error_size` finds out how errors grow with inputs and predictions.
Nothing here knows models.
"""

from .calibration import Calibration, HeldOut, calibrate
from .correlation import (
    SHRINKAGES,
    Conditional,
    Correlation,
    choose_shares,
    estimate_correlation,
    group_patterns,
    information,
    plan_measurements,
)
from .error_size import ErrorSize, LogSize, estimate_error_size
from .residuals import HeldOutScore, Residuals, without_rounding

__all__ = [
    "SHRINKAGES",
    "Calibration",
    "Conditional",
    "Correlation",
    "ErrorSize",
    "HeldOut",
    "HeldOutScore",
    "LogSize",
    "Residuals",
    "calibrate",
    "choose_shares",
    "estimate_correlation",
    "estimate_error_size",
    "group_patterns",
    "information",
    "plan_measurements",
    "without_rounding",
]
