"""The experiments of the paper, and comparison of methods on any table."""

from typing import Final

from .compare import compare_methods
from .digits import DIGITS
from .illustrations import KERNELS
from .methods import METHODS
from .protocol import PROTOCOLS, Experiment, Setup
from .running_times import RUNNING_TIMES
from .tables import REAL_TABLES, SIMULATED

__all__ = ["EXPERIMENTS", "METHODS", "PROTOCOLS", "Experiment", "Setup", "compare_methods"]

EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for experiment in (
        *REAL_TABLES,
        SIMULATED,
        DIGITS,
        RUNNING_TIMES,
        KERNELS,
    )
}
