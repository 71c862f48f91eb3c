"""Several targets of one row: how their errors go together, what measured ones say of others, intervals."""

from .calibration import Calibration, calibrate
from .correlation import Conditional, Correlation
from .residuals import Deviation, Residuals

__all__ = ["Calibration", "Conditional", "Correlation", "Deviation", "Residuals", "calibrate"]
