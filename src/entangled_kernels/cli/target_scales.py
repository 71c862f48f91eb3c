"""Scales that targets are learned on, as they are typed, and whether the table has numbers for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..tables import TableError
from .errors import CommandError
from .training_table import expand_names

__all__ = ["SCALES", "check_scales", "read_scales", "scales_in_words"]

# Scales, and which numbers have a place on them.
SCALES = {"log": "above zero", "log1p": "zero or above"}


def read_scales(values: Sequence[str] | None, targets: Sequence[str]) -> dict[str, str]:
    """Scale of every target that is learned on one, by name.

    Parameters
    ----------
    values : sequence of str, optional
        ``log`` for all targets, or ``NAME=log`` for those of this name or pattern.
    targets : sequence of str

    Examples
    --------
    >>> read_scales(["log"], ["zinc", "lead"])
    {'zinc': 'log', 'lead': 'log'}
    >>> read_scales(["z*=log1p"], ["zinc", "lead"])
    {'zinc': 'log1p'}
    """
    found = dict[str, str]()
    for value in values or []:
        names, sign, scale = value.rpartition("=")
        if scale.strip() not in SCALES:
            need = " or ".join(SCALES)
            raise CommandError(f"--target-transform must be {need}, or TARGET={need}, got {value!r}")
        chosen = expand_names([names], targets, "--target-transform") if sign else list(targets)
        unknown = [name for name in chosen if name not in targets]
        if unknown:
            raise CommandError(f"--target-transform: '{unknown[0]}' is not among the targets")
        found |= dict.fromkeys(chosen, scale.strip())
    return found


def check_scales(Y: Any, scales: dict[str, str], path: Path) -> None:
    """Raise, with row and column of the file, where a target in memory has no logarithm."""
    for name, scale in scales.items():
        wrong = Y[name] <= 0.0 if scale == "log" else Y[name] < 0.0
        if wrong.any():
            row = wrong.idxmax()
            zero = "log1p takes zeros; " if scale == "log" and Y[name][row] == 0.0 else ""
            raise TableError(
                path,
                f"row {row + 1}, column '{name}': {Y[name][row]:g} has no logarithm, --target-transform "
                f"{scale} needs numbers {SCALES[scale]}; {zero}leave the cell blank if it was not measured, "
                f"or name only the targets that are positive, as in --target-transform NAME={scale}",
            )


def scales_in_words(scales: dict[str, str], targets: Sequence[str]) -> str:
    """Which targets are learned on which scale.

    Examples
    --------
    >>> scales_in_words({"zinc": "log"}, ["zinc", "lead"])
    'zinc (log)'
    >>> scales_in_words({"zinc": "log", "lead": "log"}, ["zinc", "lead"])
    'all targets (log)'
    """
    if len(scales) == len(targets) and len(set(scales.values())) == 1:
        return f"all targets ({next(iter(scales.values()))})"
    return ", ".join(f"{name} ({scale})" for name, scale in scales.items())
