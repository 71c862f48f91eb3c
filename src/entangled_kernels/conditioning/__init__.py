"""Several targets of one row: how their errors go together, what measured ones say of others, intervals."""

from .calibration import Calibration, calibrate
from .correlation import Conditional, Correlation
from .held_out import HeldOut, held_out_intervals
from .information import Plan, information, plan_measurements
from .patterns import group_patterns
from .residuals import HeldOutScore, Residuals, without_rounding

__all__ = [
    "Calibration",
    "Conditional",
    "Correlation",
    "HeldOut",
    "HeldOutScore",
    "Plan",
    "Residuals",
    "calibrate",
    "group_patterns",
    "held_out_intervals",
    "information",
    "plan_measurements",
    "without_rounding",
]
