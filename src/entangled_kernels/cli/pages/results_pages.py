"""Pages of results: a comparison, experiments of the paper, and the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...report import Report
from ...storage import ExperimentResults, atomic_write
from ...tables.phrases import counted
from ..model_words import verdict_kind
from ..results import DIGITS, METRICS, PAPER_DIGITS, SETTINGS, finding, metrics_of, pivot
from ..training_table import TrainingTable

__all__ = [
    "add_experiment",
    "add_results",
    "add_run",
    "write_comparison_page",
    "write_experiment_page",
    "write_with_command",
]

# By the last word of a figure's name.
CAPTIONS = {
    "kernel": "Block Gram matrix of the learned kernel, rows in order of class, three blocks enlarged",
    "projections": "Rows in the plane of each task: circles training, triangles test",
    "entanglement": "Eigenvalues of the partial transpose, of which a negative one proves entanglement, and "
    "operator-Schmidt values, of which a separable kernel has one",
    "nmse": "Error over training rows, means with intervals",
    "ni": "Normalised improvement over kernel ridge; above zero is better than kernel ridge",
    "times": "Seconds to choose the settings and fit, both axes logarithmic",
    "p": "Over the number of outputs",
    "n": "Over the number of training rows",
    "rank": "Over the Kraus rank",
}


def add_run(page: Report, results: ExperimentResults, **more: Any) -> None:
    """Add how the results were made, and what the methods are."""
    hidden = ("methods", "versions", "verdict")
    page.facts({name: value for name, value in results.meta.items() if name not in hidden} | more)
    page.points(f"{name}: {words}" for name, words in results.meta.get("methods", {}).items())


def write_with_command(page: Report, command: str, results: ExperimentResults, path: Path) -> Path:
    """End a page with the command that makes it again, and write it; its path."""
    page.section("How to repeat it")
    page.code(command)
    page.facts(results.meta.get("versions", {}))
    return page.write(path)


def add_results(page: Report, results: ExperimentResults, figures: dict[str, Any]) -> None:
    """Add the tables, with the paper's or the baseline's figures, and the figures."""
    for metric in metrics_of(results):
        columns, rows, paper = pivot(results, metric)
        settings = sum(column in SETTINGS.values() for column in columns)
        own = [column for column in columns[settings:] if not column.endswith("(paper)")]
        note = "Mean ± standard deviation over partitions."
        note += " Columns marked (paper) quote the published figures." if paper else ""
        page.table(
            columns,
            rows,
            caption=f"{results.title}: {METRICS[metric]}",
            digits=PAPER_DIGITS if paper else DIGITS,
            best={"nmse": "min", "fit_seconds": None}.get(metric, "max"),
            best_among=own,
            row_headers=max(1, settings),
            note=note,
        )
    for name, figure in figures.items():
        kind = name.rpartition("-")[2]
        words = CAPTIONS.get(kind, name)
        if kind == "nmse" and results.paper:
            words += "; open marks are the paper's"
        page.figure(figure, caption=f"{words}.", alt=f"{results.title}: {words}")


def write_comparison_page(
    found: ExperimentResults,
    table: Path,
    data: TrainingTable,
    whole: dict[str, Any],
    command: str,
    path: Path,
) -> None:
    """Write the page.

    Parameters
    ----------
    found : ExperimentResults
    table : path
    data : TrainingTable
    whole : dict
        Settings, sharing and verdict of the model of all rows.
    command : str
        What to type to get the same again.
    path : path
        Of the page.
    """
    from ...experiments.compare import time_figures

    lead = f"{counted(len(data.targets), 'target')} from {counted(len(data.inputs), 'input')}"
    page = Report(found.title, lead=f"{lead}, {counted(len(data.Y), 'row')}.")
    page.section("What was run")
    page.text(
        "Every method chose its settings by cross-validation on the same training rows of each partition."
    )
    add_run(page, found, table=table, targets=data.targets, inputs=data.inputs)
    page.section("Results")
    add_results(page, found, time_figures(found))
    if finding(found):
        page.verdict(finding(found))
    page.section("The kernel on all rows")
    page.text(f"EntangledKernelRidgeCV on all rows of the table chose: {whole['settings']}.")
    page.points(whole["sharing"])
    page.verdict(whole["verdict"], verdict_kind(whole["entangled"]))
    write_with_command(page, command, found, path)


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
    if "verdict" in results.meta:
        page.verdict(str(results.meta["verdict"]), verdict_kind(results.meta.get("entangled")))
    elif finding(results):
        page.verdict(finding(results))
