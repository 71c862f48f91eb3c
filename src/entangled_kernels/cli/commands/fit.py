"""``fit``: from a table to a model file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...io.tables import counted
from ..errors import CommandError, check_choice, data_errors
from ..files import (
    STREAM,
    check_apart,
    check_link,
    check_output,
    check_table,
    files_of,
    in_batches,
    local_table,
)
from ..options import FEATURES, Force, Json, MaxMemory, TrainingOptions, command_line
from ..process import import_learning
from ..screen import Screen, say_note

__all__ = ["FitOptions", "fit"]

FEWEST = 3


@dataclass(frozen=True, kw_only=True)
class FitOptions(TrainingOptions):
    """Options of ``fit``."""

    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="MODEL", help="Model file to write.", show_default=False
        ),
    ]
    features: Annotated[
        str,
        typer.Option(
            "--features",
            "-f",
            metavar="|".join(FEATURES),
            help="Features of the inputs that the kernel works on.",
        ),
    ] = "auto"
    target_transform: Annotated[
        list[str] | None,
        typer.Option(
            "--target-transform",
            metavar="log|log1p|TARGET=log",
            help="Learn positive targets as logarithms; predictions and intervals are in their own units, "
            "and never negative.",
        ),
    ] = None
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")] = 5
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Read in batches and save the state there now and then; the same command goes on from it.",
        ),
    ] = None
    max_memory: MaxMemory = 4096
    force: Force = False
    json: Json = False


def fit(options: FitOptions) -> None:
    """Fit a model to a table and save it.

    Features, kernel and ridge penalty are chosen by cross-validation, and shown beside kernel
    ridge. Targets may be missing in some rows. TABLE may also be a folder or a pattern such as
    'rows/*.parquet', of any size.
    """
    screen, table, out, checkpoint = (
        Screen(as_json=options.json),
        options.table,
        options.out,
        options.checkpoint,
    )
    check_choice("--features", options.features, FEATURES)
    options.check()
    check_table(table)
    check_output(out, force=options.force, inputs=files_of(table))
    if checkpoint is not None:
        check_link(checkpoint)
        check_apart(checkpoint, [out, *files_of(table)])
    if table == STREAM and (checkpoint is not None or options.dask is not None):
        raise CommandError(
            "--checkpoint and --dask need a table that can be read again; name a file"
        )
    from ..tables import check_scales, open_batches, read_rows, read_scales

    with local_table(table) as source, data_errors(source):
        if (
            in_batches(source, options.max_memory)
            or checkpoint is not None
            or options.dask is not None
        ):
            rows = open_batches(source, options, max_memory=options.max_memory)
        else:
            rows = read_rows(source, options, fewest=FEWEST, work="fitting")
        for note in rows.notes:
            say_note(note)
        scales = read_scales(options.target_transform, rows.targets)
        if rows.Y is not None:
            check_scales(rows.Y, scales, source)
        import_learning()
        from ...io import save_model
        from ..models import describe, fit_table

        model = fit_table(
            screen,
            rows,
            options.features,
            folds=options.folds,
            seed=options.seed,
            jobs=options.jobs,
            checkpoint=checkpoint,
            dask=options.dask,
            target_transform=scales or None,
        )
        info = describe(model, rows) | {
            "held_out": rows.held_out.facts(),
            "table": source.name,
            "features": options.features,
            "seed": options.seed,
            "command": options.command(),
            "target_transform": scales,
        }
    save_model(model, out, info=info)
    show(screen, info, Path(source.name) if table == STREAM else table, out, rows.missing)
    matrices = ("relations", "target_correlations", "explanation")
    screen.result(
        {"model": str(out), **{name: info[name] for name in info if name not in matrices}}
    )


def show(screen: Screen, info: dict[str, Any], table: Path, out: Path, missing: Any) -> None:
    """Tell people what was fitted."""
    from ..words import (
        change_in_words,
        error_in_words,
        missing_in_words,
        scales_in_words,
        settings_in_words,
        show_target_errors,
    )

    sizes = {"row": info["rows"], "input": len(info["inputs"]), "target": len(info["targets"])}
    screen.say(f"{table}: {', '.join(counted(size, thing) for thing, size in sizes.items())}.")
    for sentence in missing_in_words(missing, info["rows"] + missing.empty_rows):
        screen.say(sentence)
    if info["target_transform"]:
        scales = scales_in_words(info["target_transform"], info["targets"])
        screen.say(
            f"Learned as logarithms: {scales}; predictions are medians, errors in units of the table."
        )
    screen.say(f"Chosen: {settings_in_words(info['chosen'])}.")
    error, plain = info["nmse"], info["kernel_ridge_nmse"]
    beside = f"; kernel ridge {plain:.4g} ({change_in_words(error, plain)})"
    about = error_in_words(info["held_out"])
    screen.say(f"{about} (nMSE, 0 is perfect, 1 is the mean): {error:.4g}{beside}.")
    if info["candidates"] >= 1.5:
        screen.say(
            f"Predictions average about {info['candidates']:.0f} candidates, weighed by their held-out "
            f"errors; the settings shown are those of the best, the errors those of the average."
        )
    if info["nmse"] >= 1.0:
        screen.say(
            "That is no better than predicting the mean: the inputs tell little about the targets."
        )
    show_target_errors(screen, info["target_scores"])
    following = command_line("predict", out, "TABLE", options=[("--out", "PREDICTIONS.csv")])
    screen.say(f"Saved to {out}. To predict: {following}")
