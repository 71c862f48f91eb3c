"""``demo``: four tasks on small images, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...storage import ExperimentResults
from ..files import check_folder
from ..options import Force, Jobs, Json, Seed
from ..pages.results_pages import write_demo_page
from ..results import finding, run_experiment, show_results, summaries
from ..screen import Screen
from ..shell_command import command_line

__all__ = ["demo"]

METHODS = ("KRR", "OKL", "EKL", "ptrEKL")
TRAIN_SIZES, REPEATS = (20, 40), 5

Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the page and the results.")]


def demo(
    out: Out = Path("demo-report"),
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Learn digits from few images, with a page.

    Four tasks, is it a 0, a 1, a 2, a 3, are learned together; the page shows the methods side by side and
    the learned kernel.
    """
    screen = Screen(as_json=json)
    check_folder(out, force=force)
    compared = compare_on_digits(screen, seed, jobs)
    compared.save(out)
    learned = run_experiment(screen, "digits", out, {"seed": seed, "n_jobs": jobs})
    show_results(screen, compared, ["nmse"])
    show_results(screen, learned, ["accuracy"])
    screen.say(finding(compared))
    screen.say(str(learned.meta["verdict"]))
    command = command_line("demo", options={"--out": out, "--seed": seed})
    path = write_demo_page(compared, learned, command, out)
    screen.say(f"Wrote {path}: open it in a browser.")
    screen.result(
        {
            "page": str(path),
            "summary": summaries(compared),
            "entangled": learned.meta["entangled"],
            "verdict": learned.meta["verdict"],
        }
    )


def compare_on_digits(screen: Screen, seed: int, jobs: int | None) -> ExperimentResults:
    """The paper's four methods on the four tasks."""
    from ...datasets import load_digit_tasks
    from ...experiments import compare_methods

    X, Y = load_digit_tasks(return_X_y=True)
    with screen.progress() as progress:
        return compare_methods(
            X,
            Y,
            methods=METHODS,
            train_sizes=TRAIN_SIZES,
            repeats=REPEATS,
            features="rbf",
            seed=seed,
            n_jobs=jobs,
            progress=progress,
            name="digits-methods",
            title="Digits 0 to 3: four tasks, few images",
        )
