"""``demo``, ``reproduce`` and ``datasets``: experiments of the paper, and their tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...io import table_kind, write_table
from ...io.tables import counted, quoted
from ..errors import CODES, CommandError, check_choice
from ..files import check_folder, check_output
from ..options import (
    Options,
    argument,
    command_line,
    data_home_option,
    jobs_option,
    option,
    seed_option,
)
from ..process import import_learning
from ..screen import Screen, say_note

if TYPE_CHECKING:
    from ...io import ExperimentResults

__all__ = ["DatasetsOptions", "DemoOptions", "ReproduceOptions", "datasets", "demo", "reproduce"]

TRAIN_ROWS, REPEATS = 40, 4
# Columns of scikit-learn's wine table that take a laboratory; the other columns are the inputs.
WINE_TARGETS = [
    "total_phenols",
    "flavanoids",
    "nonflavanoid_phenols",
    "proanthocyanins",
    "od280/od315_of_diluted_wines",
    "proline",
]


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """Arguments and options of ``demo``, which writes a page on a sample table."""

    out: Path = option(
        "Folder for the page and the results.", "-o", default=Path("demo-report"), metavar="DIR"
    )
    seed: int = seed_option()
    jobs: int | None = jobs_option(2)


def demo(options: DemoOptions) -> None:
    """Measure some targets and predict the others, with a page.

    Two tables that come with scikit-learn, 40 training rows each: predictions with intervals, then
    with one, two and three of the targets measured, beside ridge, PLS and extra trees; and what
    targets tell about each other.
    """
    screen, out = Screen(as_json=options.json), options.out
    check_folder(out, force=options.force)
    import_learning()
    from ..pages import write_demo_page
    from ..results import measured_in_words, metric_table, show_tables

    runs = {name: run_demo(screen, name, *table, options) for name, table in demo_tables().items()}
    for results in runs.values():
        results.save(out)
        show_tables(screen, [metric_table(results, "nmse")])
        for sentence in measured_in_words(results):
            screen.say(sentence)
    path = write_demo_page(list(runs.values()), options.command(), out)
    screen.say()
    screen.say(f"Wrote {path}: open it in a browser.")
    metrics = ("nmse", "coverage", "joint_coverage", "width", "left", "left_suggested")
    summary = {
        name: {metric: results.summary(metric, ("known", "method")) for metric in metrics}
        for name, results in runs.items()
    }
    screen.result({"page": str(path), "summary": summary})


def demo_tables() -> dict[str, tuple[str, Any, Any]]:
    """Title, inputs and targets of every table."""
    from sklearn.datasets import load_breast_cancer, load_wine

    cells, wine = (load(as_frame=True).data for load in (load_breast_cancer, load_wine))
    worst = [name for name in cells if name.startswith("worst")]
    title = "Breast cancer: ten worst values"
    return {
        "breast-cancer": (title, cells.drop(columns=worst), cells[worst]),
        "wine": ("Wine: six constituents", wine.drop(columns=WINE_TARGETS), wine[WINE_TARGETS]),
    }


def run_demo(
    screen: Screen, name: str, title: str, X: Any, Y: Any, options: DemoOptions
) -> ExperimentResults:
    """All methods on a table."""
    from ...experiments.partly_measured import compare_partly_measured

    with screen.progress() as progress:
        return compare_partly_measured(
            X,
            Y,
            n_train=TRAIN_ROWS,
            repeats=REPEATS,
            seed=options.seed,
            n_jobs=options.jobs,
            progress=progress,
            name=name,
            title=title,
        )


PAPER = ("sarcos", "weather", "concrete", "uwave", "simulated", "digits", "running-times")
NAMES = (*PAPER, "kernels", "all")
PROTOCOLS = ("fair", "paper", "both")


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Arguments and options of ``reproduce``, which runs experiments of the paper again."""

    name: str = argument("NAME|all", f"{', '.join(NAMES[:-1])}, or all.")
    out: Path = option("Folder for results, figures and index.html.", "-o", metavar="DIR")
    protocol: str = option(
        "Standardised data and tuned lambda (fair), as in the paper (paper), or both in turn.",
        default="fair",
        metavar="|".join(PROTOCOLS),
    )
    quick: bool = option(
        "Fewer partitions and steps: shows that it works, with rough numbers.", default=False
    )
    data_home: Path | None = data_home_option()
    seed: int = seed_option()
    jobs: int | None = jobs_option()
    resume: bool = option(
        "Keep results with the same settings that are in the folder already.", default=False
    )


def reproduce(options: ReproduceOptions) -> None:
    """Run an experiment of the paper again.

    Writes the results as JSON and CSV, the figures, and a page that compares the paper's numbers
    with ours: claims first, then every table.
    """
    screen, name, out = Screen(as_json=options.json), options.name, options.out
    check_choice("NAME", name, NAMES)
    check_choice("--protocol", options.protocol, PROTOCOLS)
    check_folder(out, force=options.force or options.resume)
    import_learning()
    from ..pages import write_experiment_page
    from ..results import claims_of, claims_table, show_tables, summaries

    both = options.protocol == "both"
    runs: dict[str, dict[str, ExperimentResults]] = {}
    missing: dict[str, str] = {}
    try:
        for each, protocol in _parts(name, options.protocol):
            try:
                results = _run(screen, each, protocol, out / protocol if both else out, options)
            except FileNotFoundError as error:
                if name != "all":
                    problem = f"the data of {each} are missing: {error}"
                    raise CommandError(problem, "missing") from error
                if each not in missing:
                    say_note(f"{each} is left out, its data are missing: {error}")
                missing[each] = str(error)
                continue
            runs.setdefault(protocol, {})[each] = results
            _show(screen, results)
    finally:
        # Also after an interrupt, with the experiments that are done.
        if runs:
            write_experiment_page(runs, missing, options.command(resume=False), out)
    if (claims := claims_table(runs)) is not None:
        show_tables(screen, [claims])
    page = str(out / "index.html") if runs else None
    if page is not None:
        screen.say(f"Wrote {page}.")
    done = {
        protocol: {each: summaries(results) for each, results in experiments.items()}
        for protocol, experiments in runs.items()
    }
    screen.result(
        {
            "out": str(out),
            "page": page,
            "missing": missing,
            "claims": claims_of(runs),
            "experiments": done if both else done.get(options.protocol, {}),
        }
    )
    if missing:
        raise typer.Exit(CODES["missing"])


def _run(
    screen: Screen, name: str, protocol: str, out: Path, options: ReproduceOptions
) -> ExperimentResults:
    """Results of an experiment, run and saved, or with ``--resume`` those of the same settings."""
    from ...experiments import EXPERIMENTS, Setup
    from ...io import ExperimentResults

    path = out / f"{name}.json"
    same: dict[str, Any] = {"protocol": protocol, "quick": options.quick, "seed": options.seed}
    if options.resume and path.exists():
        kept = ExperimentResults.load(path)
        if all(kept.meta.get(key) == value for key, value in same.items()):
            return kept
    with screen.progress() as report:
        setup = Setup(
            **same,
            n_jobs=options.jobs,
            data_home=options.data_home,
            progress=lambda done, total, what: report(done, total, f"{name} {what}"),
        )
        results = EXPERIMENTS[name].run(setup)
    # Tables and figures are made from what was saved.
    return ExperimentResults.load(results.save(out)[0])


def _show(screen: Screen, results: ExperimentResults) -> None:
    """Print the tables that compare with the paper's numbers, and those of all other metrics."""
    from ..results import cell_tables, metric_table, metrics_of, show_tables

    cells = list(cell_tables(results))
    rest = [name for name in metrics_of(results) if not cells or name not in ("nmse", "ni")]
    show_tables(screen, [*cells, *(metric_table(results, metric) for metric in rest)])


def _parts(name: str, wanted: str) -> list[tuple[str, str]]:
    """Experiments with their protocols; an experiment without protocols is run once."""
    from ...experiments import EXPERIMENTS

    protocols = ["paper", "fair"] if wanted == "both" else [wanted]
    names = list(EXPERIMENTS) if name == "all" else [name]
    return [
        (each, protocol)
        for each in names
        for protocol in (protocols[:1] if EXPERIMENTS[each].one_protocol else protocols)
    ]


FETCHERS = {
    "concrete": "fetch_concrete_slump",
    "sarcos": "fetch_sarcos",
    "weather": "fetch_canadian_weather",
    "uwave": "fetch_uwave",
}

# Targets that the new rows of the sample have, and the number of these rows.
MEASURED = ["total_phenols", "flavanoids"]
NEW_ROWS = 40


@dataclass(frozen=True, kw_only=True)
class DatasetsOptions(Options):
    """Arguments and options of ``datasets``, which lists tables or writes one."""

    data_home: Path | None = data_home_option()
    download: bool = option("Download those that are not there.", default=False)
    export: Path | None = option(
        "Write a sample table such as wine.csv to try the commands on, and new rows beside it.",
        default=None,
        metavar="FILE",
    )


def datasets(options: DatasetsOptions) -> None:
    """List the tables of the paper, or write a sample table.

    Shows whether each table is there, and its file.
    """
    screen = Screen(as_json=options.json)
    if options.export is not None:
        export_sample(screen, options.export, force=options.force)
        return
    where = {"data_home": options.data_home, "download_if_missing": options.download}
    entries = [look_for("digits", "load_digit_tasks", {})]
    for name, fetcher in FETCHERS.items():
        with screen.working(f"looking for {name}"):
            entries.append(look_for(name, fetcher, where))
    keys = ("name", "function", "rows", "inputs", "outputs", "state", "file")
    columns = ["there" if key == "state" else key for key in keys]
    screen.table(columns, [[entry[key] for key in keys] for entry in entries])
    for entry in entries:
        if entry["problem"]:
            screen.say(f"{entry['name']}: {entry['problem']}")
    screen.result({"datasets": entries})


def export_sample(screen: Screen, path: Path, *, force: bool) -> None:
    """Write rows of scikit-learn's wine table: complete ones, and new ones without some targets."""
    table_kind(path)
    suffixes = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    beside = path.with_name(f"{path.name.removesuffix(suffixes)}-new{suffixes}")
    for file in (path, beside):
        check_output(file, force=force)
    import numpy as np
    from sklearn.datasets import load_wine

    rows = load_wine(as_frame=True).data
    rows = rows.iloc[np.random.default_rng(0).permutation(len(rows))].reset_index(drop=True)
    known, new = rows[NEW_ROWS:], rows[:NEW_ROWS].copy()
    new[[name for name in WINE_TARGETS if name not in MEASURED]] = np.nan
    write_table(known, path)
    write_table(new, beside)
    wines, some = counted(len(new), "wine"), quoted(MEASURED)
    screen.say(f"Wrote {counted(len(known), 'wine')} to {path}.")
    screen.say(f"Wrote {wines} to {beside}, with only {some} of the targets.")
    to_fit = [("--targets", ",".join(WINE_TARGETS)), ("--out", "wine.model")]
    screen.say(f"To fit: {command_line('fit', path, options=to_fit)}")
    tables = [str(path), str(beside)]
    screen.result({"tables": tables, "targets": WINE_TARGETS, "measured": MEASURED})


def look_for(name: str, function: str, options: dict[str, Any]) -> dict[str, Any]:
    """Shape and file of a table, or why it cannot be loaded."""
    from ... import datasets

    keys = ("rows", "inputs", "outputs", "state", "file", "problem")
    entry = {"name": name, "function": function, **dict.fromkeys(keys)}
    try:
        table = getattr(datasets, function)(**options)
    except (FileNotFoundError, ValueError) as error:
        state = "no" if isinstance(error, FileNotFoundError) else "damaged"
        return entry | {"state": state, "problem": str(error)}
    files = table.get("filenames") or [table.get("filename") or "comes with scikit-learn"]
    (rows, inputs), outputs = table.data.shape, table.target.shape[1]
    shape = {"rows": rows, "inputs": inputs, "outputs": outputs}
    return entry | shape | {"state": "yes", "file": str(files[0])}
