"""The tables of the paper, and simulated ones; none of the real tables is part of the package."""

from .digits import load_digit_tasks
from .published import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
)
from .simulated import make_bilinear, make_entangled

__all__ = [
    "fetch_canadian_weather",
    "fetch_concrete_slump",
    "fetch_sarcos",
    "fetch_uwave",
    "load_digit_tasks",
    "make_bilinear",
    "make_entangled",
]
