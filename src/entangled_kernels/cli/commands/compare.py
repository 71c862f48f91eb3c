"""``compare``: methods against each other on a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...io import TableError
from ..errors import check_choice, data_errors
from ..files import check_apart, check_folder, check_output, check_table, files_of, local_table
from ..options import Force, Json, TrainingOptions, split_names
from ..process import import_learning
from ..screen import Screen, say_note

if TYPE_CHECKING:
    from ..tables import TrainingTable

__all__ = ["CompareOptions", "compare"]

# Names that users know, and those of the paper, whose kernels are linear in --features.
COMMON = ("mean", "ridge", "kernel-ridge", "PLS", "gaussian-process", "extra-trees", "entangled")
PAPER = ("KRR", "OKL", "EKL", "ptrEKL")
FEATURES = ("linear", "rbf", "fourier")
FEWEST = 8


@dataclass(frozen=True, kw_only=True)
class CompareOptions(TrainingOptions):
    """Options of ``compare``."""

    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="A,B",
            help=f"Methods to compare. By default {', '.join(COMMON)}; those of the paper are "
            f"{', '.join(PAPER)}.",
        ),
    ] = None
    train_sizes: Annotated[
        str | None,
        typer.Option(
            "--train-sizes",
            "-n",
            metavar="N,M",
            help="Numbers of training rows; a quarter and half of all by default.",
        ),
    ] = None
    repeats: Annotated[
        int, typer.Option("--repeats", "-r", min=1, help="Random partitions for each size.")
    ] = 10
    features: Annotated[
        str,
        typer.Option(
            "--features",
            "-f",
            metavar="|".join(FEATURES),
            help="Features for the methods of the paper.",
        ),
    ] = "linear"
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="PAGE.html", help="Page to write, with tables and figures."
        ),
    ] = None
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="Folder for the results as JSON and CSV."),
    ] = None
    force: Force = False
    json: Json = False


def compare(options: CompareOptions) -> None:
    """Compare methods on a table.

    For every size the rows are split at random, again and again, into training and test rows; with
    --groups into whole groups, with --time-ordered into earlier and later rows. Targets may be
    missing in some rows.
    """
    screen, table = Screen(as_json=options.json), options.table
    check_choice("--features", options.features, FEATURES)
    names, sizes = chosen_methods(options.methods), chosen_sizes(options.train_sizes)
    options.check()
    check_table(table)
    if options.report is not None:
        check_output(options.report, force=options.force, inputs=files_of(table))
    if options.results is not None:
        check_folder(options.results, force=options.force)
        for kind in ("csv", "json", "npz"):
            check_apart(options.results / f"comparison.{kind}", files_of(table))
    from ..tables import read_rows

    with local_table(table) as source:
        data = read_rows(source, options, fewest=FEWEST, work="comparing")
    for note in data.notes:
        say_note(note)
    most = len(data.Y) - 2
    sizes = sizes or default_sizes(len(data.Y))
    if not all(3 <= size <= most for size in sizes):
        raise TableError(
            table,
            f"--train-sizes must be from 3 to {most}, two less than the rows, got {options.train_sizes}",
        )
    found = run(screen, data, names, sizes, options)
    from ..results import show_results, summaries, winner_in_words

    show_results(screen, found)
    screen.say(winner_in_words(found))
    if options.results is not None:
        for path in found.save(options.results):
            screen.say(f"Wrote {path}.")
    if options.report is not None:
        from ..pages import write_comparison_page

        write_comparison_page(found, table, data, options.command(), options.report)
        screen.say(f"Wrote {options.report}.")
    screen.result(
        {
            "summary": summaries(found),
            "records": found.records,
            "meta": found.meta,
            "report": options.report,
        }
    )


def run(
    screen: Screen, data: TrainingTable, names: list[str], sizes: list[int], options: CompareOptions
) -> Any:
    """Results of all methods."""
    import numpy as np

    import_learning()
    from ...experiments import compare_methods
    from ..models import cluster, text_encoder

    held_out = data.held_out
    if held_out.by == "time" and held_out.values is None:
        held_out = replace(held_out, values=np.arange(len(data.Y)))
    with cluster(options.dask), screen.progress() as progress, data_errors(options.table):
        return compare_methods(
            text_encoder(data.text, fill=data.fill).fit_transform(data.X),
            data.Y,
            methods=names,
            train_sizes=sizes,
            repeats=options.repeats,
            features=options.features,
            seed=options.seed,
            n_jobs=-1 if options.dask is not None and options.jobs is None else options.jobs,
            progress=progress,
            groups=held_out.values if held_out.by == "groups" else None,
            times=held_out.values if held_out.by == "time" else None,
            title=f"Methods on {'stdin' if str(options.table) == '-' else options.table.name}",
        )


def chosen_methods(methods: str | None) -> list[str]:
    """Methods by name."""
    names = list(COMMON) if methods is None else split_names([methods])
    by_lower = {name.lower(): name for name in (*COMMON, *PAPER)}
    for name in names:
        check_choice("--methods", name.lower(), by_lower)
    return list(dict.fromkeys(by_lower[name.lower()] for name in names))


def chosen_sizes(train_sizes: str | None) -> list[int]:
    """Numbers of training rows; none when there is nothing said."""
    try:
        return [int(size) for size in split_names([train_sizes] if train_sizes else [])]
    except ValueError:
        raise typer.BadParameter(
            f"must be whole numbers separated by commas, got {train_sizes!r}",
            param_hint="--train-sizes",
        ) from None


def default_sizes(rows: int) -> list[int]:
    """A quarter and half of the rows, but no more than a few hundred."""
    return sorted({max(4, min(rows // 4, 250)), max(4, min(rows // 2, 500))})
