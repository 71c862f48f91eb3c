"""``fit``: from a table to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...storage import save_model
from ...tables.phrases import counted
from ..batches import in_batches
from ..blanks import Blanks
from ..errors import CommandError, check_choice, data_errors
from ..features import FEATURES
from ..files import check_apart, check_input, check_link, check_output, files_of
from ..fitting import fit_table
from ..held_out import error_in_words
from ..model_facts import describe
from ..model_words import change_in_words, settings_in_words, show_target_errors
from ..options import (
    Dask,
    Decimal,
    Delimiter,
    Encode,
    Encoding,
    Exclude,
    Force,
    Groups,
    Inputs,
    Jobs,
    Json,
    MaxMemory,
    Missing,
    OneTable,
    Seed,
    Targets,
    TimeColumn,
    TimeOrdered,
)
from ..screen import Screen, say_note
from ..shell_command import command_line
from ..standard_streams import STREAM, local_table
from ..table_options import read_table_options
from ..target_scales import SCALES, check_scales, read_scales, scales_in_words
from ..training_table import open_batches, read_rows

__all__ = ["fit"]

Features = Annotated[
    str,
    typer.Option(
        "--features",
        "-f",
        metavar="|".join(FEATURES),
        help="Features of the inputs that the kernel works on.",
    ),
]
TargetTransform = Annotated[
    list[str] | None,
    typer.Option(
        "--target-transform",
        metavar="|".join([*SCALES, "TARGET=log"]),
        help="Learn positive targets as logarithms; predictions and intervals are in their own units, and "
        "never negative.",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="MODEL", help="Model file to write.", show_default=False)
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Read in batches and save the state there now and then; the same command goes on from it.",
    ),
]

FEWEST, MAX_MEMORY = 3, 4096


def fit(
    table: OneTable,
    targets: Targets,
    out: Out,
    inputs: Inputs = None,
    exclude: Exclude = None,
    features: Features = "auto",
    groups: Groups = None,
    time_ordered: TimeOrdered = False,
    time_column: TimeColumn = None,
    target_transform: TargetTransform = None,
    encode: Encode = False,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    folds: Folds = 5,
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoint: Checkpoint = None,
    dask: Dask = None,
    max_memory: MaxMemory = MAX_MEMORY,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a model to a table and save it.

    Features, kernel and ridge penalty are chosen by cross-validation, and shown beside kernel ridge. Cells
    of targets may be blank. TABLE may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    screen = Screen(as_json=json)
    check_choice("--features", features, FEATURES)
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
    check_output(out, force=force, inputs=files_of(table))
    if checkpoint is not None:
        check_link(checkpoint)
        check_apart(checkpoint, [out, *files_of(table)])
    if table == STREAM and (checkpoint is not None or dask is not None):
        raise CommandError("--checkpoint and --dask need a table that can be read again; name a file")
    with local_table(table) as source, data_errors(source):
        if in_batches(source, max_memory) or checkpoint is not None or dask is not None:
            rows = open_batches(
                source, targets, inputs, encode=encode, max_memory=max_memory, options=reading
            )
        else:
            check_input(source)
            rows = read_rows(
                source,
                targets,
                inputs,
                encode=encode,
                fewest=FEWEST,
                work="fitting",
                blanks=True,
                options=reading,
            )
        for note in rows.notes:
            say_note(note)
        scales = read_scales(target_transform, rows.targets)
        if rows.Y is not None:
            check_scales(rows.Y, scales, source)
        model = fit_table(
            screen,
            rows,
            features,
            folds=folds,
            seed=seed,
            jobs=jobs,
            checkpoint=checkpoint,
            dask=dask,
            target_transform=scales or None,
        )
        info = describe(model, rows)
    options = {
        "--targets": rows.targets,
        "--inputs": rows.inputs if inputs or exclude else None,
        **reading.held_out.options(),
        "--features": features,
        "--encode": encode,
        "--missing": missing,
        "--delimiter": delimiter,
        "--decimal": decimal,
        "--encoding": encoding,
        "--folds": folds,
        "--seed": seed,
        "--out": out,
        "--checkpoint": checkpoint,
        "--dask": dask,
        "--max-memory": None if max_memory == MAX_MEMORY else f"{max_memory:g}",
    }
    command = command_line(
        "fit",
        table,
        options=options,
        repeated={
            "--target-transform": target_transform or [],
        },
    )
    info |= {
        "held_out": rows.held_out.facts(),
        "table": source.name,
        "features": features,
        "seed": seed,
        "command": command,
        "target_transform": scales,
    }
    save_model(model, out, info=info)
    show(screen, info, Path(source.name) if table == STREAM else table, out, rows.blanks)
    matrices = ("relations", "target_correlations", "explanation")
    screen.result({"model": str(out), **{name: info[name] for name in info if name not in matrices}})


def show(screen: Screen, info: dict[str, Any], table: Path, out: Path, blanks: Blanks) -> None:
    """Tell people what was fitted."""
    sizes = {"row": info["rows"], "input": len(info["inputs"]), "target": len(info["targets"])}
    screen.say(f"{table}: {', '.join(counted(size, thing) for thing, size in sizes.items())}.")
    for sentence in blanks.in_words(info["rows"] + blanks.empty_rows):
        screen.say(sentence)
    if info["target_transform"]:
        scales = scales_in_words(info["target_transform"], info["targets"])
        screen.say(f"Learned as logarithms: {scales}; predictions are medians, errors in units of the table.")
    screen.say(f"Chosen: {settings_in_words(info['chosen'])}.")
    error, plain = info["nmse"], info["kernel_ridge_nmse"]
    beside = "" if plain is None else f"; kernel ridge {plain:.4g} ({change_in_words(error, plain)})"
    about = error_in_words(info["held_out"])
    screen.say(f"{about} (nMSE, 0 is perfect, 1 is the mean): {error:.4g}{beside}.")
    if info["candidates"] >= 1.5:
        screen.say(
            f"Predictions average about {info['candidates']:.0f} candidates, weighed by their held-out "
            f"errors; the settings shown are those of the best, the errors those of the average."
        )
    if info["nmse"] >= 1.0:
        screen.say("That is no better than predicting the mean: the inputs tell little about the targets.")
    show_target_errors(screen, info["target_scores"])
    following = command_line("predict", out, "TABLE", options={"--out": "PREDICTIONS.csv"})
    screen.say(f"Saved to {out}. To predict: {following}")
