"""``fit``: from a table to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...io.tables import counted
from ..errors import CommandError, check_choice, data_errors
from ..files import (
    STREAM,
    check_apart,
    check_link,
    check_output,
    check_table,
    decimal_sign,
    files_of,
    in_batches,
    local_table,
)
from ..options import FEATURES, FitOptions, command_line
from ..process import import_learning
from ..screen import Screen, say_note
from ..tables import TrainingTable, check_scales, open_batches, read_rows, read_scales

__all__ = ["FitOptions", "fit"]

FEWEST = 3


def fit(options: FitOptions) -> None:
    """Fit a model to a table and save it.

    Features, kernel and ridge penalty are chosen by cross-validation. The error is shown beside
    those of ridge, PLS, extra trees, and kernel ridge on the same features. Targets may be missing
    in some rows. TABLE may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    screen, table, out = Screen(as_json=options.json), options.table, options.out
    check_choice("--features", options.features, FEATURES)
    options.check()
    check_table(table)
    check_output(out, force=options.force, inputs=files_of(table))
    if options.checkpoint is not None:
        check_link(options.checkpoint)
        check_apart(options.checkpoint, [out, *files_of(table)])
    whole = options.checkpoint is None and options.dask is None
    if table == STREAM and not whole:
        raise CommandError(
            "--checkpoint and --dask need a table that can be read again; name a file"
        )
    with local_table(table) as source, data_errors(source):
        if in_batches(source, options.max_memory) or not whole:
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
        from ..models import baseline_errors, describe, fit_table

        model, baselines = fit_table(screen, rows, options, scales), dict[str, float]()
        if not options.no_baselines:
            with screen.working("comparing with ridge, PLS and extra trees"):
                baselines = baseline_errors(rows, options)
        info = describe(model, rows) | {
            "baselines": baselines,
            "held_out": rows.held_out.facts(),
            "table": source.name,
            "features": options.features,
            "seed": options.seed,
            "command": options.command(),
            "target_transform": scales,
            "decimal": decimal_sign(source, options.text_format()),
        }
    save_model(model, out, info=info)
    show(screen, info, rows, source.name if table == STREAM else str(table), out)
    info.pop("explanation")
    screen.result({"model": str(out), **info})


def show(screen: Screen, info: dict[str, Any], rows: TrainingTable, table: str, out: Path) -> None:
    """Print what was fitted."""
    from .. import words

    sizes = {"row": info["rows"], "input": len(info["inputs"]), "target": len(info["targets"])}
    screen.say(f"{table}: {', '.join(counted(size, thing) for thing, size in sizes.items())}.")
    screen.say(f"Inputs: {words.listed(info['inputs'])}.")
    for sentence in words.missing_in_words(rows.missing, info["rows"] + rows.missing.empty_rows):
        screen.say(sentence)
    if info["target_transform"]:
        scales = words.scales_in_words(info["target_transform"], info["targets"])
        about = "predictions are medians, errors are in the units of the table"
        screen.say(f"Learned as logarithms: {scales}; {about}.")
    screen.say(f"Chosen: {words.settings_in_words(info['chosen'])}.")
    error, plain = info["nmse"], info["kernel_ridge_nmse"]
    about = words.error_in_words(info["held_out"])
    screen.say(f"{about} (nMSE, 0 is perfect, 1 is the mean): {error:.4g}.")
    screen.say(words.baselines_in_words(error, plain, info["baselines"]))
    if info["candidates"] >= 1.5:
        screen.say(
            f"Predictions average about {info['candidates']:.0f} candidates, weighted by their "
            "held-out errors. The settings above are those of the best candidate, the errors those "
            "of the average."
        )
    if error >= 1.0:
        screen.say(
            "That is no better than predicting the mean: the inputs tell little about the targets."
        )
    columns, errors, title, *_ = words.error_table(info["target_scores"])
    screen.table(columns, errors, title=title)
    following = command_line("predict", out, "TABLE", options=[("--out", "PREDICTIONS.csv")])
    screen.say(f"Saved to {out}. To predict: {following}")
