"""``demo``: some targets measured, the others predicted, on two tables that come with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files import check_folder
from ..options import Force, Jobs, Json, Options, Seed
from ..process import import_learning
from ..screen import Screen

if TYPE_CHECKING:
    from ...io import ExperimentResults

__all__ = ["DemoOptions", "demo"]

TRAIN_ROWS, REPEATS = 40, 4
# The other columns are the inputs.
WINE = [
    "total_phenols",
    "flavanoids",
    "nonflavanoid_phenols",
    "proanthocyanins",
    "od280/od315_of_diluted_wines",
    "proline",
]


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """Options of ``demo``."""

    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the page and the results.")
    ] = Path("demo-report")
    seed: Seed = 0
    jobs: Jobs = None
    force: Force = False
    json: Json = False


def demo(options: DemoOptions) -> None:
    """Measure some targets and predict the others, with a page.

    Two tables that come with scikit-learn, 40 training rows each: predictions with intervals, then with one,
    two and three of the targets measured, beside ridge, PLS and extra trees; and which target tells what.
    """
    screen, out = Screen(as_json=options.json), options.out
    check_folder(out, force=options.force)
    import_learning()
    from ..pages import measured_in_words, write_demo_page
    from ..results import show_results

    found = {name: run(screen, name, *table, options.seed, options.jobs) for name, table in tables().items()}
    for results in found.values():
        results.save(out)
        show_results(screen, results, ["nmse"])
        for sentence in measured_in_words(results):
            screen.say(sentence)
    path = write_demo_page(list(found.values()), options.command(), out)
    screen.say()
    screen.say(f"Wrote {path}: open it in a browser.")
    metrics = ("nmse", "coverage", "joint_coverage", "width", "left", "left_suggested")
    summary = {
        name: {metric: results.summary(metric, ("known", "method")) for metric in metrics}
        for name, results in found.items()
    }
    screen.result({"page": str(path), "summary": summary})


def tables() -> dict[str, tuple[str, Any, Any]]:
    """Title, inputs and targets of every table."""
    from sklearn.datasets import load_breast_cancer, load_wine

    cells, wine = (load(as_frame=True).data for load in (load_breast_cancer, load_wine))
    worst = [name for name in cells if name.startswith("worst")]
    return {
        "breast-cancer": ("Breast cancer: ten worst values", cells.drop(columns=worst), cells[worst]),
        "wine": ("Wine: six constituents", wine.drop(columns=WINE), wine[WINE]),
    }


def run(
    screen: Screen, name: str, title: str, X: Any, Y: Any, seed: int, jobs: int | None
) -> ExperimentResults:
    """All methods on a table."""
    from ...experiments.partly_measured import compare_partly_measured

    with screen.progress() as progress:
        return compare_partly_measured(
            X,
            Y,
            n_train=TRAIN_ROWS,
            repeats=REPEATS,
            seed=seed,
            n_jobs=jobs,
            progress=progress,
            name=name,
            title=title,
        )
