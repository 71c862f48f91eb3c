"""``compare``: methods against each other on a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...tables import TableError
from ..comparisons import winner_in_words
from ..errors import CommandError, check_choice, data_errors
from ..features import text_encoder
from ..files import check_apart, check_folder, check_input, check_output, files_of
from ..fitting import cluster, fit_table
from ..input_groups import OPTION, place_groups, read_groups
from ..model_facts import entanglement_of, output_relations, settings_of
from ..model_words import settings_in_words, sharing_in_words
from ..options import (
    Dask,
    Decimal,
    Delimiter,
    Encode,
    Encoding,
    Exclude,
    Force,
    Groups,
    InputGroups,
    Inputs,
    Jobs,
    Json,
    Missing,
    OneTable,
    Protocol,
    Seed,
    Targets,
    TimeColumn,
    TimeOrdered,
)
from ..results import finding, show_results, summaries
from ..screen import Screen, say_note
from ..shell_command import command_line, split_names
from ..standard_streams import local_table
from ..table_options import read_table_options
from ..training_table import TrainingTable, read_rows

__all__ = ["compare"]

FEATURES = ("linear", "rbf", "fourier")
PROTOCOLS = ("fair", "paper")
FEWEST = 8
SEVERAL_KERNELS = ("MKL", "MVML")

Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        "-m",
        metavar="A,B",
        help="Methods to compare. By default KRR, OKL, EKL, ptrEKL, selected, KRR-selected, PLS, "
        "extra-trees; 'all' adds OKL-schatten, OKL-trace, OKL-elastic, OKL-cluster, OKL-entrywise, MKL, "
        "MKL-diagonal, MKL-shared, MKL-own, MVML, MVML-sparse and ORFF.",
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
    exclude: Exclude = None,
    methods: Methods = None,
    input_group: InputGroups = None,
    groups: Groups = None,
    time_ordered: TimeOrdered = False,
    time_column: TimeColumn = None,
    train_sizes: Sizes = None,
    repeats: Repeats = 10,
    features: Features = "linear",
    protocol: Protocol = "fair",
    encode: Encode = False,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    results: ResultsOut = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compare methods on a table.

    For every size the rows are split at random, again and again, into training and test rows; with --groups
    into whole groups, with --time-ordered into earlier and later rows.
    """
    from ...experiments import compare_methods

    screen = Screen(as_json=json)
    check_choice("--features", features, FEATURES)
    check_choice("--protocol", protocol, PROTOCOLS)
    names = chosen_methods(methods)
    named = read_groups(input_group)
    if named and not any(name.startswith(SEVERAL_KERNELS) for name in names):
        raise CommandError(
            f"{OPTION} needs a method with several kernels, such as --methods KRR,MKL-diagonal"
        )
    sizes = chosen_sizes(train_sizes)
    reading = read_table_options(
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        missing=missing,
        exclude=exclude,
        groups=groups,
        time_ordered=time_ordered,
        time_column=time_column,
    )
    if report is not None:
        check_output(report, force=force, inputs=files_of(table))
    if results is not None:
        check_folder(results, force=force)
        for kind in ("csv", "json", "npz"):
            check_apart(results / f"comparison.{kind}", files_of(table))
    with local_table(table) as source:
        check_input(source)
        data = read_rows(
            source, targets, inputs, encode=encode, fewest=FEWEST, work="comparing", options=reading
        )
    for note in data.notes:
        say_note(note)
    sizes = sizes or default_sizes(len(data.Y))
    most = len(data.Y) - 2
    if not all(3 <= size <= most for size in sizes):
        raise TableError(
            table, f"--train-sizes must be from 3 to {most}, two less than the rows, got {train_sizes}"
        )
    held_out = data.held_out
    if held_out.by == "time" and held_out.values is None:
        held_out = held_out.with_values(np.arange(len(data.Y)))
    with cluster(dask), screen.progress() as progress, data_errors(table):
        found = compare_methods(
            text_encoder(data.text, fill=data.fill).fit_transform(data.X),
            data.Y,
            methods=names,
            train_sizes=sizes,
            repeats=repeats,
            features=features,
            protocol=protocol,
            seed=seed,
            n_jobs=-1 if dask is not None and jobs is None else jobs,
            progress=progress,
            input_groups=place_groups(named, data) or None,
            groups=held_out.values if held_out.by == "groups" else None,
            times=held_out.values if held_out.by == "time" else None,
            title=f"Methods on {source.name}",
        )
    show_results(screen, found)
    screen.say(winner_in_words(found))
    screen.say(finding(found))
    if results is not None:
        for path in found.save(results):
            screen.say(f"Wrote {path}.")
    options = {
        "--targets": data.targets,
        "--inputs": data.inputs if inputs or exclude else None,
        "--methods": names,
        **held_out.options(),
        "--train-sizes": sizes,
        "--repeats": repeats,
        "--features": features,
        "--protocol": protocol,
        "--encode": encode,
        "--missing": missing,
        "--delimiter": delimiter,
        "--decimal": decimal,
        "--encoding": encoding,
        "--seed": seed,
        "--report": report,
    }
    if report is not None:
        from ..pages.results_pages import write_comparison_page

        with data_errors(table):
            whole = look_at_all_rows(screen, data, features, seed, jobs)
        command = command_line("compare", table, options=options, repeated={OPTION: input_group or []})
        write_comparison_page(found, table, data, whole, command, report)
        screen.say(f"Wrote {report}.")
    screen.result(
        {"summary": summaries(found), "records": found.records, "meta": found.meta, "report": report}
    )


def chosen_methods(methods: str | None) -> list[str]:
    """Methods by name."""
    from ...experiments import LEARNERS, METHODS

    every = [*METHODS, *LEARNERS]
    names = list(METHODS) if methods is None else split_names([methods])
    names = every if [name.lower() for name in names] == ["all"] else names
    by_lower = {name.lower(): name for name in every}
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


def look_at_all_rows(
    screen: Screen, data: TrainingTable, features: str, seed: int, jobs: int | None
) -> dict[str, Any]:
    """What the model selected on all rows is: settings, who shares what, entanglement."""
    n_groups = data.held_out.facts()["groups"] or 5
    model = fit_table(screen, data, features, folds=min(5, n_groups), seed=seed, jobs=jobs).best_estimator_
    sharing = sharing_in_words(model.get_params(deep=False), output_relations(model, data.X), data.targets)
    return {"settings": settings_in_words(settings_of(model)), "sharing": sharing, **entanglement_of(model)}
