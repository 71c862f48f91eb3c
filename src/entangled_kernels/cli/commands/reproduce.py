"""``reproduce``: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CODES, CommandError, check_choice
from ..files import check_folder
from ..options import DataHome, Force, Jobs, Json, Options, Seed
from ..process import import_learning
from ..screen import Screen, say_note

if TYPE_CHECKING:
    from ...io import ExperimentResults

__all__ = ["ReproduceOptions", "reproduce"]

NAMES = (
    "sarcos",
    "weather",
    "concrete",
    "uwave",
    "simulated",
    "digits",
    "running-times",
    "kernels",
    "all",
)
PROTOCOLS = ("fair", "paper", "both")


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Options of ``reproduce``."""

    name: Annotated[
        str,
        typer.Argument(metavar="NAME|all", help=f"{', '.join(NAMES[:-1])}, or all.", show_default=False),
    ]
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder for results, figures and index.html.",
            show_default=False,
        ),
    ]
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="|".join(PROTOCOLS),
            help="Standardised and scale-free, as in the paper, or one after the other.",
        ),
    ] = "fair"
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer partitions and steps: to see that it works, not to quote.")
    ] = False
    data_home: DataHome = None
    seed: Seed = 0
    jobs: Jobs = None
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Keep results of the same settings that are in the folder already."),
    ] = False
    force: Force = False
    json: Json = False


def reproduce(options: ReproduceOptions) -> None:
    """Run an experiment of the paper again.

    Writes the results as JSON and CSV, the figures, and a page with the paper's figures beside ours: claims
    first, then every cell with a verdict.
    """
    screen, name, out, protocol = Screen(as_json=options.json), options.name, options.out, options.protocol
    check_choice("NAME", name, NAMES)
    check_choice("--protocol", protocol, PROTOCOLS)
    check_folder(out, force=options.force or options.resume)
    import_learning()
    from ..pages import write_experiment_page
    from ..results import claims_of, claims_table, run_experiment, show_cells, summaries

    settings = {
        "quick": options.quick,
        "seed": options.seed,
        "n_jobs": options.jobs,
        "data_home": options.data_home,
    }
    runs: dict[str, dict[str, ExperimentResults]] = {}
    missing: dict[str, str] = {}
    try:
        for each, own in _parts(name, protocol):
            folder = out / own if protocol == "both" else out
            try:
                results = run_experiment(
                    screen, each, folder, settings | {"protocol": own}, resume=options.resume
                )
            except FileNotFoundError as error:
                if name != "all":
                    raise CommandError(f"the data of {each} are missing: {error}", "missing") from error
                if each not in missing:
                    say_note(f"{each} is left out, its data are missing: {error}")
                missing[each] = str(error)
                continue
            runs.setdefault(own, {})[each] = results
            _show(screen, results)
    finally:
        # Also of what is done when somebody interrupts.
        if runs:
            write_experiment_page(runs, missing, options.command(resume=False), out)
    claims = claims_table(runs)
    if claims is not None:
        show_cells(screen, [claims])
    if runs:
        screen.say(f"Wrote {out / 'index.html'}.")
    done = {own: {each: summaries(one) for each, one in made.items()} for own, made in runs.items()}
    screen.result(
        {
            "out": str(out),
            "page": str(out / "index.html") if runs else None,
            "missing": missing,
            "claims": claims_of(runs),
            "experiments": done if protocol == "both" else done.get(protocol, {}),
        }
    )
    if missing:
        raise typer.Exit(CODES["missing"])


def _show(screen: Screen, results: ExperimentResults) -> None:
    """Cells beside the paper's where there are any, and tables of what these do not hold."""
    from ..results import cell_tables, metrics_of, show_cells, show_results

    tables = list(cell_tables(results))
    show_cells(screen, tables)
    rest = [metric for metric in metrics_of(results) if not tables or metric not in ("nmse", "ni")]
    show_results(screen, results, rest)


def _parts(name: str, protocol: str) -> list[tuple[str, str]]:
    """Experiments with the protocols to run them with; what has no protocol is run once."""
    from ...experiments import EXPERIMENTS

    wanted = ["paper", "fair"] if protocol == "both" else [protocol]
    names = list(EXPERIMENTS) if name == "all" else [name]
    return [
        (each, own) for each in names for own in (wanted[:1] if EXPERIMENTS[each].one_protocol else wanted)
    ]
