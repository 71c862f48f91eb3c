"""The page of experiments of the paper that were run again."""

from __future__ import annotations

from pathlib import Path

from ...report import Report
from ...storage import ExperimentResults, atomic_write
from ..entanglement import verdict_kind
from ..result_tables import finding
from .results_section import add_results, add_run, write_with_command

__all__ = ["add_experiment", "write_experiment_page"]


def write_experiment_page(
    done: dict[str, ExperimentResults], missing: dict[str, str], protocol: str, command: str, out: Path
) -> None:
    """The page of all experiments that were run, with their figures in files of their own too."""
    from ...experiments import EXPERIMENTS, PROTOCOLS

    single = EXPERIMENTS[next(iter(done))].title if len(done) == 1 else "The paper's experiments, run again"
    page = Report(single, lead=f"Protocol {protocol}: {PROTOCOLS[protocol]}.")
    for name, results in done.items():
        add_experiment(page, "Results" if len(done) == 1 else results.title, name, results, out)
    if missing:
        page.section("Left out")
        page.points(f"{name}: {reason}" for name, reason in missing.items())
    write_with_command(page, command, next(iter(done.values())), out / "index.html")


def add_experiment(page: Report, heading: str, name: str, results: ExperimentResults, out: Path) -> None:
    """A section on one experiment; its figures are written into the folder as well."""
    from matplotlib import pyplot as plt

    from ...experiments import EXPERIMENTS

    experiment = EXPERIMENTS[name]
    page.section(heading)
    page.text(experiment.about)
    add_run(page, results)
    figures = experiment.figures(results)
    add_results(page, results, figures)
    for stem, figure in figures.items():
        with atomic_write(out / f"{stem}.svg", "wb") as file:
            figure.savefig(file, format="svg", bbox_inches="tight")
        plt.close(figure)
    if "verdict" in results.meta:
        page.verdict(str(results.meta["verdict"]), verdict_kind(results.meta.get("entangled")))
    elif finding(results):
        page.verdict(finding(results))
