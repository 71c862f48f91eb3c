"""``reproduce``: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..report import Report
from ..storage import ExperimentResults
from .errors import CODES, CommandError, check_choice
from .files import check_folder
from .model_page import verdict_kind
from .options import Force, Jobs, Json, Seed
from .repeat import command_line
from .results_page import add_results, finding, show_results, summaries
from .screen import Screen, say_note

__all__ = ["add_experiment", "reproduce", "run_experiment"]

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|all",
        help="digits, simulated, sarcos, weather, concrete, uwave, running-times, or all.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Folder for results, figures and index.html.", show_default=False
    ),
]
Protocol = Annotated[
    str,
    typer.Option("--protocol", metavar="fair|paper", help="Standardised and scale-free, or as in the paper."),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Fewer partitions and steps: to see that it works, not to quote.")
]
DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data-home", metavar="DIR", help="Folder of the tables; else ENTANGLED_KERNELS_DATA, else a cache."
    ),
]


def reproduce(
    name: Name,
    out: Out,
    protocol: Protocol = "fair",
    quick: Quick = False,
    data_home: DataHome = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Run an experiment of the paper again.

    Writes the results as JSON and CSV, the figures, and a page with the paper's figures beside ours.
    """
    from ..experiments import EXPERIMENTS, PROTOCOLS

    screen = Screen(as_json=json)
    check_choice("NAME", name, [*EXPERIMENTS, "all"])
    check_choice("--protocol", protocol, PROTOCOLS)
    check_folder(out, force=force)
    names = list(EXPERIMENTS) if name == "all" else [name]
    options = {
        "--protocol": protocol,
        "--quick": quick,
        "--data-home": data_home,
        "--seed": seed,
        "--out": out,
    }
    command = command_line("reproduce", name, options=options)
    done: dict[str, ExperimentResults] = {}
    missing: dict[str, str] = {}
    for each in names:
        try:
            settings = {
                "protocol": protocol,
                "quick": quick,
                "seed": seed,
                "n_jobs": jobs,
                "data_home": data_home,
            }
            done[each] = run_experiment(screen, each, out, settings)
        except FileNotFoundError as error:
            if name != "all":
                raise CommandError(f"the data of {each} are missing: {error}", "missing") from error
            missing[each] = str(error)
            say_note(f"{each} is left out, its data are missing: {error}")
        else:
            show_results(screen, done[each])
        if done:
            # After each, so that what is done can be looked at while the rest runs.
            write_page(done, missing, protocol, command, out)
    if done:
        screen.say(f"Wrote {out / 'index.html'}.")
    screen.result(
        {
            "out": str(out),
            "page": str(out / "index.html") if done else None,
            "missing": missing,
            "experiments": {each: summaries(results) for each, results in done.items()},
        }
    )
    if missing:
        raise typer.Exit(CODES["missing"])


def run_experiment(screen: Screen, name: str, out: Path, settings: dict[str, Any]) -> ExperimentResults:
    """Run, save, and read again what was saved, from which tables and figures are made."""
    from ..experiments import EXPERIMENTS, Setup

    with screen.progress() as progress:

        def report(done: int, total: int, what: str) -> None:
            progress(done, total, f"{name} {what}")

        results = EXPERIMENTS[name].run(Setup(**settings, progress=report))
    paths = results.save(out)
    return ExperimentResults.load(paths[0])


def write_page(
    done: dict[str, ExperimentResults], missing: dict[str, str], protocol: str, command: str, out: Path
) -> None:
    """The page of all experiments that were run, with their figures in files of their own too."""
    from ..experiments import EXPERIMENTS, PROTOCOLS

    single = EXPERIMENTS[next(iter(done))].title if len(done) == 1 else "The paper's experiments, run again"
    page = Report(single, lead=f"Protocol {protocol}: {PROTOCOLS[protocol]}.")
    for name, results in done.items():
        add_experiment(page, "ExperimentResults" if len(done) == 1 else results.title, name, results, out)
    if missing:
        page.section("Left out")
        page.points(f"{name}: {reason}" for name, reason in missing.items())
    page.section("How to repeat it")
    page.code(command)
    page.facts(next(iter(done.values())).meta.get("versions", {}))
    page.write(out / "index.html")


def add_experiment(page: Report, heading: str, name: str, results: ExperimentResults, out: Path) -> None:
    """A section on one experiment; its figures are written into the folder as well."""
    from matplotlib import pyplot as plt

    from ..experiments import EXPERIMENTS
    from ..storage import atomic_write

    experiment = EXPERIMENTS[name]
    page.section(heading)
    page.text(experiment.about)
    page.facts(
        {key: value for key, value in results.meta.items() if key not in ("methods", "versions", "verdict")}
    )
    page.points(f"{label}: {words}" for label, words in results.meta.get("methods", {}).items())
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
