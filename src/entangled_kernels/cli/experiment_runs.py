"""Experiments of the paper, run and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..storage import ExperimentResults
from .screen import Screen

__all__ = ["run_experiment"]


def run_experiment(screen: Screen, name: str, out: Path, settings: dict[str, Any]) -> ExperimentResults:
    """Run, save, and read again what was saved, from which tables and figures are made.

    Parameters
    ----------
    screen : Screen
    name : str
        A key of `entangled_kernels.experiments.EXPERIMENTS`.
    out : path
        Folder for the results.
    settings : dict
        Attributes of `entangled_kernels.experiments.Setup`.
    """
    from ..experiments import EXPERIMENTS, Setup

    with screen.progress() as progress:

        def report(done: int, total: int, what: str) -> None:
            progress(done, total, f"{name} {what}")

        results = EXPERIMENTS[name].run(Setup(**settings, progress=report))
    return ExperimentResults.load(results.save(out)[0])
