"""``demo``: four tasks on small images, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..report import Report
from ..storage import ExperimentResults
from .files import check_folder
from .options import Force, Jobs, Json, Seed
from .repeat import command_line
from .reproduce import add_experiment, run_experiment
from .results_page import add_results, finding, show_results, summaries
from .screen import Screen

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
    settings = {"seed": seed, "n_jobs": jobs}
    learned = run_experiment(screen, "digits", out, settings)
    show_results(screen, compared, ["nmse"])
    show_results(screen, learned, ["accuracy"])
    screen.say(finding(compared))
    screen.say(str(learned.meta["verdict"]))
    path = write_page(compared, learned, command_line("demo", options={"--out": out, "--seed": seed}), out)
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
    from ..datasets import load_digit_tasks
    from ..experiments import compare_methods

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


def write_page(compared: ExperimentResults, learned: ExperimentResults, command: str, out: Path) -> Path:
    """The page of the demonstration."""
    from matplotlib import pyplot as plt

    from ..plotting import ComparisonDisplay

    page = Report(
        "Entangled kernels on digits",
        lead="Four related tasks, is it a 0, a 1, a 2, a 3, learned together from a few small images.",
    )
    page.section("Methods side by side")
    page.text(
        "Each method predicts a number for each task, +1 for yes and -1 for no, from the same images. "
        "The error is nMSE: 0 is perfect, 1 is predicting the mean. Kernel ridge (KRR) is the baseline."
    )
    page.points(f"{name}: {words}" for name, words in compared.meta["methods"].items())
    figure = ComparisonDisplay.from_results(compared).figure_
    add_results(page, compared, {"digits-nmse": figure})
    plt.close(figure)
    page.verdict(finding(compared))
    add_experiment(page, learned.title, "digits", learned, out)
    page.section("How to repeat it")
    page.code(command)
    page.facts(compared.meta["versions"])
    return page.write(out / "index.html")
