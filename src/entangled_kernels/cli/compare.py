"""``compare``: methods against each other on a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..storage import ExperimentResults
from ..tables import TableError
from .columns import LearningTable, read_learning_table, split_names
from .errors import check_choice, data_errors
from .files import check_folder, check_input, check_output
from .inspect import entanglement_of
from .learning import search
from .options import Encode, Force, Inputs, Jobs, Json, OneTable, Seed, Targets
from .relations import output_relations, sharing_in_words
from .repeat import command_line
from .results_page import add_results, finding, show_results, summaries
from .screen import Screen, say_note
from .streams import Dask, cluster
from .words import chosen_in_words, counted, settings_of

__all__ = ["compare"]

FEATURES = ("linear", "rbf", "fourier")
PROTOCOLS = ("fair", "paper")
FEWEST = 8

Methods = Annotated[
    str | None,
    typer.Option(
        "--methods", "-m", metavar="A,B", help="Methods to compare; all by default: KRR, OKL, EKL, ..."
    ),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        "--train-sizes",
        "-n",
        metavar="N,M",
        help="Numbers of training rows; a quarter and half of all by default.",
    ),
]
Repeats = Annotated[int, typer.Option("--repeats", "-r", min=1, help="Random partitions for each size.")]
Features = Annotated[
    str, typer.Option("--features", "-f", metavar="|".join(FEATURES), help="Features of the inputs.")
]
Protocol = Annotated[
    str,
    typer.Option(
        "--protocol", metavar="|".join(PROTOCOLS), help="Standardised and scale-free, or as in the paper."
    ),
]
ReportOut = Annotated[
    Path | None, typer.Option("--report", metavar="PAGE.html", help="Page to write, with tables and figures.")
]
ResultsOut = Annotated[
    Path | None, typer.Option("--results", metavar="DIR", help="Folder for the results as JSON and CSV.")
]


def compare(
    table: OneTable,
    targets: Targets,
    report: ReportOut = None,
    inputs: Inputs = None,
    methods: Methods = None,
    train_sizes: Sizes = None,
    repeats: Repeats = 10,
    features: Features = "linear",
    protocol: Protocol = "fair",
    encode: Encode = False,
    results: ResultsOut = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compare methods on a table.

    For every size the rows are split at random, again and again, into training and test rows.
    """
    screen = Screen(as_json=json)
    check_choice("--features", features, FEATURES)
    check_choice("--protocol", protocol, PROTOCOLS)
    names = chosen_methods(methods)
    sizes = chosen_sizes(train_sizes)
    check_input(table)
    if report is not None:
        check_output(report, force=force)
    if results is not None:
        check_folder(results, force=force)
    data = read_learning_table(table, targets, inputs, encode=encode)
    for note in data.notes:
        say_note(note)
    if len(data.Y) < FEWEST:
        raise TableError(table, f"comparing needs at least {FEWEST} rows, got {len(data.Y)}")
    sizes = sizes or default_sizes(len(data.Y))
    with cluster(dask):
        jobs = -1 if dask is not None and jobs is None else jobs
        found = run(screen, table, data, names, sizes, repeats, features, protocol, seed, jobs)
    show_results(screen, found)
    screen.say(finding(found))
    if results is not None:
        for path in found.save(results):
            screen.say(f"Wrote {path}.")
    options: dict[str, Any] = {"--targets": data.targets, "--inputs": data.inputs if inputs else None}
    options |= {"--methods": names, "--train-sizes": sizes, "--repeats": repeats, "--features": features}
    options |= {"--protocol": protocol, "--encode": encode, "--seed": seed, "--report": report}
    if report is not None:
        with screen.working("fitting to all rows"), data_errors(table):
            whole = look_at_all_rows(data, features, seed, jobs)
        write_page(found, table, data, whole, command_line("compare", table, options=options), report)
        screen.say(f"Wrote {report}.")
    summary = {"summary": summaries(found), "records": found.records, "meta": found.meta}
    screen.result({**summary, "report": report})


def chosen_methods(methods: str | None) -> list[str]:
    """Methods by name."""
    from ..experiments import METHODS

    names = list(METHODS) if methods is None else split_names([methods])
    by_lower = {name.lower(): name for name in METHODS}
    for name in names:
        check_choice("--methods", name.lower(), by_lower)
    return list(dict.fromkeys(by_lower[name.lower()] for name in names))


def chosen_sizes(train_sizes: str | None) -> list[int]:
    """Numbers of training rows; none when there is nothing said."""
    try:
        return [int(size) for size in split_names([train_sizes] if train_sizes else [])]
    except ValueError:
        raise typer.BadParameter(
            f"must be whole numbers separated by commas, got {train_sizes!r}", param_hint="--train-sizes"
        ) from None


def default_sizes(rows: int) -> list[int]:
    """A quarter and half of the rows, but no more than a few hundred."""
    return sorted({max(4, min(rows // 4, 250)), max(4, min(rows // 2, 500))})


def run(
    screen: Screen,
    table: Path,
    data: LearningTable,
    methods: list[str],
    sizes: list[int],
    repeats: int,
    features: str,
    protocol: str,
    seed: int,
    jobs: int | None,
) -> ExperimentResults:
    """Compare, with a bar that shows how far it is."""
    from ..experiments import compare_methods

    with screen.progress() as progress, data_errors(table):
        return compare_methods(
            data.X,
            data.Y,
            methods=methods,
            train_sizes=sizes,
            repeats=repeats,
            features=features,
            protocol=protocol,
            seed=seed,
            n_jobs=jobs,
            progress=progress,
            title=f"Methods on {table.name}",
        )


def look_at_all_rows(data: LearningTable, features: str, seed: int, jobs: int | None) -> dict[str, Any]:
    """What the model selected on all rows is: settings, who shares what, entanglement."""
    inner = search(data, features, folds=5, seed=seed, jobs=jobs).best_estimator_
    sharing = sharing_in_words(inner.get_params(deep=False), output_relations(inner, data.X), data.targets)
    return {"settings": chosen_in_words(settings_of(inner)), "sharing": sharing, **entanglement_of(inner)}


def write_page(
    found: ExperimentResults,
    table: Path,
    data: LearningTable,
    whole: dict[str, Any],
    command: str,
    path: Path,
) -> None:
    """The page of a comparison."""
    from matplotlib import pyplot as plt

    from ..plotting import ComparisonDisplay, RunningTimeDisplay
    from ..report import Report
    from .model_page import verdict_kind

    lead = f"{counted(len(data.targets), 'target')} from {counted(len(data.inputs), 'input')}"
    page = Report(found.title, lead=f"{lead}, {len(data.Y)} rows.")
    page.section("What was run")
    page.text(
        "Every method chose its settings by cross-validation on the same training rows of each partition."
    )
    meta = {name: value for name, value in found.meta.items() if name not in ("methods", "versions")}
    page.facts({"table": table, "targets": data.targets, "inputs": data.inputs, **meta})
    page.points(f"{name}: {words}" for name, words in found.meta.get("methods", {}).items())
    page.section("ExperimentResults")
    figures = {
        "comparison-nmse": ComparisonDisplay.from_results(found).figure_,
        "comparison-times": RunningTimeDisplay.from_results(found).figure_,
    }
    add_results(page, found, figures)
    for figure in figures.values():
        plt.close(figure)
    if finding(found):
        page.verdict(finding(found))
    page.section("The kernel on all rows")
    page.text(f"EntangledKernelRidgeCV on all rows of the table chose: {whole['settings']}.")
    page.points(whole["sharing"])
    page.verdict(whole["verdict"], verdict_kind(whole["entangled"]))
    page.section("How to repeat it")
    page.code(command)
    page.facts(found.meta.get("versions", {}))
    page.write(path)
