"""The tables of the paper, and simulated ones; none of the real tables is part of the package."""

from .concrete import fetch_concrete_slump
from .digits import load_digit_tasks
from .sarcos import fetch_sarcos
from .simulated import make_bilinear, make_entangled
from .uwave import fetch_uwave
from .weather import fetch_canadian_weather

__all__ = [
    "fetch_canadian_weather",
    "fetch_concrete_slump",
    "fetch_sarcos",
    "fetch_uwave",
    "load_digit_tasks",
    "make_bilinear",
    "make_entangled",
]
