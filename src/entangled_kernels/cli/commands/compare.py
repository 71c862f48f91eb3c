"""``compare``: methods against each other on a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from ...io import ExperimentResults, TableError
from ..errors import check_choice, data_errors
from ..files import STREAM, check_output, check_table, files_of, local_table
from ..options import TrainingOptions, option, split_names
from ..process import import_learning
from ..screen import Screen, say_note
from ..tables import TrainingTable, read_rows

__all__ = ["CompareOptions", "compare"]

# Names that users know, and those of the paper, whose kernels are linear in the inputs.
COMMON = ("mean", "ridge", "kernel-ridge", "PLS", "gaussian-process", "extra-trees", "entangled")
PAPER = ("KRR", "OKL", "EKL", "ptrEKL")
FEWEST = 8


@dataclass(frozen=True, kw_only=True)
class CompareOptions(TrainingOptions):
    """Options of ``compare``."""

    methods: str | None = option(
        f"Methods to compare. By default {', '.join(COMMON)}; those of the paper are "
        f"{', '.join(PAPER)}.",
        "-m",
        default=None,
        metavar="A,B",
    )
    train_sizes: str | None = option(
        "Numbers of training rows; a quarter and half of all by default.",
        "-n",
        default=None,
        metavar="N,M",
    )
    repeats: int = option("Random partitions for each size.", "-r", default=10, min=1)
    report: Path | None = option(
        "Page to write, with tables and figures.", default=None, metavar="PAGE.html"
    )


def compare(options: CompareOptions) -> None:
    """Compare methods on a table.

    For every size the rows are split at random, again and again, into training and test rows; with
    --groups into whole groups, with --time-ordered into earlier and later rows. Targets may be
    missing in some rows.
    """
    screen, table = Screen(as_json=options.json), options.table
    names, sizes = chosen_methods(options.methods), chosen_sizes(options.train_sizes)
    options.check()
    check_table(table)
    if options.report is not None:
        check_output(options.report, force=options.force, inputs=files_of(table))
    with local_table(table) as source:
        data = read_rows(source, options, fewest=FEWEST, work="comparing")
    for note in data.notes:
        say_note(note)
    n = len(data.Y)
    # A quarter and half of the rows, but no more than a few hundred.
    sizes = sizes or sorted({max(4, min(n // 4, 250)), max(4, min(n // 2, 500))})
    if not all(3 <= size <= n - 2 for size in sizes):
        raise TableError(
            table,
            f"--train-sizes must be from 3 to {n - 2}, two less than the rows, got "
            f"{options.train_sizes}",
        )
    results = run(screen, data, names, sizes, options)
    from ..results import metric_table, metrics_of, show_tables, summaries, winner_in_words

    show_tables(screen, [metric_table(results, metric) for metric in metrics_of(results)])
    screen.say(winner_in_words(results))
    if options.report is not None:
        from ..pages import write_comparison_page

        write_comparison_page(results, table, data, options.command(), options.report)
        screen.say(f"Wrote {options.report}.")
    values = {"records": results.records, "meta": results.meta, "report": options.report}
    screen.result({"summary": summaries(results), **values})


def run(
    screen: Screen, data: TrainingTable, names: list[str], sizes: list[int], options: CompareOptions
) -> ExperimentResults:
    """Results of all methods."""
    import_learning()
    from ...experiments import compare_methods
    from ..models import cluster, text_encoder

    held_out = data.held_out
    with cluster(options.dask), screen.progress() as progress, data_errors(options.table):
        return compare_methods(
            text_encoder(data.text, fill=data.fill).fit_transform(data.X),
            data.Y,
            methods=names,
            train_sizes=sizes,
            repeats=options.repeats,
            seed=options.seed,
            n_jobs=-1 if options.dask is not None and options.jobs is None else options.jobs,
            progress=progress,
            groups=held_out.values if held_out.by == "groups" else None,
            times=held_out.values if held_out.by == "time" else None,
            title=f"Methods on {'stdin' if options.table == STREAM else options.table.name}",
        )


def chosen_methods(methods: str | None) -> list[str]:
    """Methods by name."""
    names = list(COMMON) if methods is None else split_names([methods])
    by_lower = {name.lower(): name for name in (*COMMON, *PAPER)}
    for name in names:
        check_choice("--methods", name.lower(), by_lower)
    return list(dict.fromkeys(by_lower[name.lower()] for name in names))


def chosen_sizes(train_sizes: str | None) -> list[int]:
    """Numbers of training rows; none where the option is not given."""
    try:
        return [int(size) for size in split_names([train_sizes] if train_sizes else [])]
    except ValueError:
        raise typer.BadParameter(
            f"must be whole numbers separated by commas, got {train_sizes!r}",
            param_hint="--train-sizes",
        ) from None
