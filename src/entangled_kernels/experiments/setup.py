"""What an experiment is, and how one is asked to run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..io import ExperimentResults, software_versions
from ..report.table import PageTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PROTOCOLS", "Experiment", "Figures", "PageTable", "Progress", "Setup", "no_tables"]

Progress = Callable[[int, int, str], None]
# By name; matplotlib is optional.
Figures: TypeAlias = "dict[str, Figure]"

PROTOCOLS = {
    "paper": "raw data, no intercept, one grid of lambdas for kernels of unit-norm Q",
    "fair": "inputs and targets standardised on the training rows, an intercept, kernels of one scale, one "
    "grid of scale-free alphas",
}


@dataclass(frozen=True)
class Setup:
    """How to run an experiment.

    Attributes
    ----------
    protocol : {"fair", "paper"}
        `PROTOCOLS` says what they are. Both select on the same folds for every method.
    quick : bool
        Fewer partitions and steps: to see that it works, not to quote.
    seed : int
        Results other than times depend on nothing else, whatever ``n_jobs``.
    n_jobs : int or None
        Processes; None is one.
    data_home : path or None
        Folder of the tables, as in `entangled_kernels.datasets`.
    progress : callable or None
        Told how many parts are done, of how many, and what is being done.
    """

    protocol: str = "fair"
    quick: bool = False
    seed: int = 0
    n_jobs: int | None = None
    data_home: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be {' or '.join(map(repr, PROTOCOLS))}, got {self.protocol!r}")

    def tell(self, done: int, total: int, what: str) -> None:
        """Tell of progress, where somebody listens."""
        if self.progress is not None:
            self.progress(done, total, what)

    def meta(self, **more: Any) -> dict[str, Any]:
        """What is needed to repeat the run."""
        return {
            "protocol": self.protocol,
            "quick": self.quick,
            "seed": self.seed,
            "versions": software_versions("joblib"),
            **more,
        }


def no_tables(results: ExperimentResults) -> list[PageTable]:
    """None beside those of the records."""
    return []


class Experiment(NamedTuple):
    """One table or figure of the paper.

    Attributes
    ----------
    name, title : str
    about : str
        Two or three sentences on what is done.
    run : callable
        ``run(setup) -> ExperimentResults``.
    figures : callable
        ``figures(results) -> dict`` of matplotlib figures by name, drawn from the results alone.
    tables : callable
        ``tables(results) -> list`` of `PageTable`, made from the results alone.
    one_protocol : bool
        Whether it is the same whatever the protocol.
    """

    name: str
    title: str
    about: str
    run: Callable[[Setup], ExperimentResults]
    figures: Callable[[ExperimentResults], Figures]
    tables: Callable[[ExperimentResults], list[PageTable]] = no_tables
    one_protocol: bool = False
