"""``reproduce``: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...storage import ExperimentResults
from ..errors import CODES, CommandError, check_choice
from ..files import check_folder
from ..options import DataHome, Force, Jobs, Json, Protocol, Seed
from ..pages.results_pages import write_experiment_page
from ..results import run_experiment, show_results, summaries
from ..screen import Screen, say_note
from ..shell_command import command_line

__all__ = ["reproduce"]

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
Quick = Annotated[
    bool, typer.Option("--quick", help="Fewer partitions and steps: to see that it works, not to quote.")
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
    from ...experiments import EXPERIMENTS, PROTOCOLS

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
    settings = {"protocol": protocol, "quick": quick, "seed": seed, "n_jobs": jobs, "data_home": data_home}
    command = command_line("reproduce", name, options=options)
    done: dict[str, ExperimentResults] = {}
    missing: dict[str, str] = {}
    for each in names:
        try:
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
            write_experiment_page(done, missing, protocol, command, out)
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
