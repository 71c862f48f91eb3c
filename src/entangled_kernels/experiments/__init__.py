"""The paper's tables and figures, each an experiment that can be run again, and comparison on any table."""

from typing import Final

from .compare import compare_methods
from .concrete import CONCRETE
from .digits import DIGITS
from .methods import METHODS
from .running_times import RUNNING_TIMES
from .sarcos import SARCOS
from .setup import PROTOCOLS, Experiment, Setup
from .simulated import SIMULATED
from .uwave import UWAVE
from .weather import WEATHER

__all__ = ["EXPERIMENTS", "METHODS", "PROTOCOLS", "Experiment", "Setup", "compare_methods"]

EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for experiment in (DIGITS, SIMULATED, SARCOS, WEATHER, CONCRETE, UWAVE, RUNNING_TIMES)
}
