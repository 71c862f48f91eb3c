"""Pages of results: a comparison, experiments of the paper, and the demonstration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...report import Report
from ...report.table import PageTable
from ...storage import ExperimentResults, atomic_write
from ...tables.phrases import counted
from ..comparisons import far_off_splits, method_table, winner_in_words
from ..model_words import listed, verdict_kind
from ..paper_tables import agreement_in_words, cell_tables, claims_table
from ..results import DIGITS, METRICS, PAPER_DIGITS, SETTINGS, finding, metrics_of, pivot, sure_leads
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
    "zooms": "Three samples of every class: blocks within classes and between each two",
    "separable": "The matrix of inputs, the matrix of outputs, and their block Gram matrix",
    "blocks": "Block Gram matrices of a separable kernel and of one that is not",
    "classes": "Classes of kernels with one kernel in each, and what its tests find",
    "lambda": "Error over training rows with lambda 1",
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
    """End a page with its words and the command that makes it again, and write it; its path."""
    page.glossary()
    page.section("How to repeat it")
    page.code(command)
    page.facts(results.meta.get("versions", {}))
    return page.write(path)


def add_results(
    page: Report, results: ExperimentResults, figures: dict[str, Any], *, without: Iterable[str] = ()
) -> None:
    """Add tables of all metrics but some, with the paper's or the baseline's figures, and the figures."""
    for metric in metrics_of(results):
        if metric in without:
            continue
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
            best={"nmse": "min"}.get(metric, None if metric.endswith("seconds") else "max"),
            best_among=own,
            sure=sure_leads(results, metric),
            row_headers=max(1, settings),
            note=note,
        )
    _add_figures(page, results, figures)


def _add_figures(page: Report, results: ExperimentResults, figures: dict[str, Any]) -> None:
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
    page.section("Results")
    if winner_in_words(found):
        page.verdict(winner_in_words(found))
    columns, rows, sure, digits = method_table(found)
    note = "Mean ± standard deviation over partitions; the method with the least error first."
    star = " ★ least error of its column, by more than chance would give." if sure else ""
    page.table(columns, rows, caption="Methods", digits=digits, note=f"{note}{star}", marked=sure)
    if finding(found):
        page.text(finding(found))
    if far := far_off_splits(found):
        page.text("Partitions that are far off, and that may decide the means above:")
        page.points(far)
    _add_figures(page, found, time_figures(found))
    page.section("The kernel on all rows")
    page.text(f"EntangledKernelRidgeCV on all rows of the table chose: {whole['settings']}.")
    page.points(whole["sharing"])
    with page.folded("For theorists"):
        page.verdict(whole["verdict"], verdict_kind(whole["entangled"]))
    page.section("What was run")
    page.text(
        "Every method chose its settings by cross-validation on the same training rows of each partition."
    )
    add_run(page, found, table=table, targets=listed(data.targets), inputs=listed(data.inputs))
    write_with_command(page, command, found, path)


def write_experiment_page(
    runs: dict[str, dict[str, ExperimentResults]], missing: dict[str, str], command: str, out: Path
) -> None:
    """The page of all experiments that were run: claims first, then one experiment after the other.

    Parameters
    ----------
    runs : dict
        Results by protocol and experiment.
    missing : dict of str
        Why experiments were left out.
    command : str
    out : path
        Folder of the page; figures are written into it too, by protocol where there are several.
    """
    from ...experiments import EXPERIMENTS, PROTOCOLS

    names = [name for name in EXPERIMENTS if any(name in done for done in runs.values())]
    single = EXPERIMENTS[names[0]].title if len(names) == 1 else "The paper's experiments, run again"
    lead = " ".join(f"Protocol {protocol}: {PROTOCOLS[protocol]}." for protocol in runs)
    page = Report(single, lead=lead)
    claims = claims_table(runs)
    if claims is not None:
        page.section("Claims")
        _add_table(page, claims)
    for name in names:
        for protocol, done in runs.items():
            if name not in done:
                continue
            heading = "Results" if len(names) == 1 else done[name].title
            folder = out if len(runs) == 1 else out / protocol
            add_experiment(
                page,
                heading if len(runs) == 1 else f"{heading}, protocol {protocol}",
                name,
                done[name],
                folder,
            )
    if missing:
        page.section("Left out")
        page.points(f"{name}: {reason}" for name, reason in missing.items())
    last = next(results for done in runs.values() for results in done.values())
    write_with_command(page, command, last, out / "index.html")


def add_experiment(page: Report, heading: str, name: str, results: ExperimentResults, out: Path) -> None:
    """A section on one experiment; its figures are written into the folder as well."""
    from ...experiments import EXPERIMENTS

    experiment = EXPERIMENTS[name]
    page.section(heading)
    page.text(experiment.about)
    add_run(page, results)
    claims = claims_table({str(results.meta.get("protocol", "")): {name: results}}, experiment=name)
    if claims is not None:
        _add_table(page, claims._replace(caption=f"{results.title}: claims"))
    cells = list(cell_tables(results))
    for table in cells:
        _add_table(page, table)
    agreement = agreement_in_words(results)
    if agreement:
        page.verdict(agreement)
    tables = experiment.tables(results)
    for made in tables:
        _add_table(page, made)
    figures = experiment.figures(results)
    # Errors of the paper's tables are in the tables of cells already.
    without = {metric for made in tables for metric in made.replaces} | ({"nmse", "ni"} if cells else set())
    add_results(page, results, figures, without=without)
    for stem, figure in figures.items():
        with atomic_write(out / f"{stem}.svg", "wb") as file:
            figure.savefig(file, format="svg", bbox_inches="tight")
    if "verdict" in results.meta:
        page.verdict(str(results.meta["verdict"]), verdict_kind(results.meta.get("entangled")))
    elif finding(results):
        page.verdict(finding(results))


def _add_table(page: Report, table: PageTable) -> None:
    page.table(
        table.columns,
        table.rows,
        caption=table.caption,
        digits=table.digits,
        row_headers=table.row_headers,
        note=table.note,
    )
