"""``fit``: from a table to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..storage import save_model
from ..tables import TableError
from .columns import read_learning_table
from .errors import CommandError, check_choice, data_errors
from .features import FEATURES
from .files import check_input, check_output
from .learning import describe, search
from .options import Encode, Force, Inputs, Jobs, Json, OneTable, Seed, Targets
from .repeat import command_line
from .screen import Screen, say_note
from .streams import Checkpoint, Dask, MaxMemory, StreamFit, describe_stream, in_batches
from .words import change_in_words, chosen_in_words, counted

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
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="MODEL", help="Model file to write.", show_default=False)
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")]

FEWEST = 3


def fit(
    table: OneTable,
    targets: Targets,
    out: Out,
    inputs: Inputs = None,
    features: Features = "auto",
    encode: Encode = False,
    folds: Folds = 5,
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoint: Checkpoint = None,
    dask: Dask = None,
    max_memory: MaxMemory = 4096,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a model to a table and save it.

    Features, kernel and ridge penalty are chosen by cross-validation, and shown beside kernel ridge. TABLE
    may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    screen = Screen(as_json=json)
    check_choice("--features", features, FEATURES)
    check_output(out, force=force)
    if in_batches(table, max_memory) or checkpoint is not None or dask is not None:
        if encode:
            raise CommandError("--encode needs a table that is read at once, not in batches")
        with data_errors(table):
            stream = StreamFit.of(table, targets, inputs, max_memory)
            for note in stream.notes:
                say_note(note)
            where = {"checkpoint": checkpoint, "dask": dask}
            model = stream.run(screen, features, folds, seed, jobs, **where)
            info = describe_stream(model, stream)
        options = {"--inputs": info["inputs"] if inputs else None, "--features": features, "--folds": folds}
        more = {"--seed": seed, "--out": out, "--checkpoint": checkpoint, "--dask": dask}
        repeat = command_line("fit", table, options={"--targets": info["targets"], **options, **more})
        sizes = f"{len(info['inputs'])} inputs, {len(info['targets'])} targets"
        screen.say(f"{table}: {info['rows']} rows, {sizes}.")
        keep(screen, model, info, out, table=table, features=features, seed=seed, command=repeat)
        return
    check_input(table)
    data = read_learning_table(table, targets, inputs, encode=encode)
    for note in data.notes:
        say_note(note)
    if len(data.Y) < FEWEST:
        raise TableError(table, f"fitting needs at least {FEWEST} rows, got {len(data.Y)}")
    screen.say(
        f"{table}: {len(data.Y)} rows, {counted(len(data.inputs), 'input')}, "
        f"{counted(len(data.targets), 'target')}."
    )
    options = {"--inputs": data.inputs if inputs else None, "--features": features, "--encode": encode}
    more = {"--folds": folds, "--seed": seed, "--out": out}
    repeat = command_line("fit", table, options={"--targets": data.targets, **options, **more})
    with screen.progress() as report, data_errors(table):

        def watch(done: int, total: int) -> None:
            report(done, total, "choosing the settings, splits")

        used = min(folds, len(data.Y))
        model = search(data, features, folds=used, seed=seed, jobs=jobs, progress=watch)
        info = describe(model, data, folds=used, seed=seed)
    keep(screen, model, info, out, table=table, features=features, seed=seed, command=repeat)


def keep(screen: Screen, model: Any, info: dict[str, Any], out: Path, *, table: Path, **facts: Any) -> None:
    """Save the model, and tell people and machines."""
    info |= {"table": table.name, **facts}
    save_model(model, out, info=info)
    show(screen, info, out)
    screen.result({"model": str(out), **{name: info[name] for name in info if name != "relations"}})


def show(screen: Screen, info: dict[str, Any], out: Path) -> None:
    """Tell people what was fitted."""
    screen.say(f"Chosen: {chosen_in_words(info['chosen'])}.")
    screen.say(
        f"Cross-validated error (nMSE, 0 is perfect, 1 is the mean): {info['nmse']:.4g}; kernel ridge "
        f"{info['kernel_ridge_nmse']:.4g} ({change_in_words(info['nmse'], info['kernel_ridge_nmse'])})."
    )
    if info["candidates"] and info["candidates"] >= 1.5:
        screen.say(
            f"Predictions average candidates by how often they are the best, about {info['candidates']:.0f} "
            f"of them; the table is about the first."
        )
    if info["nmse"] >= 1.0:
        screen.say("That is no better than predicting the mean: the inputs tell little about the targets.")
    if info["target_scores"]:
        show_targets(screen, info)
    screen.say(f"Saved to {out}. To predict: entangled-kernels predict {out} TABLE --out PREDICTIONS.csv")


def show_targets(screen: Screen, info: dict[str, Any]) -> None:
    """The error of every target beside kernel ridge's."""
    screen.table(
        ["target", "nMSE", "kernel ridge", "change"],
        [
            [
                row["target"],
                row["nmse"],
                row["kernel_ridge_nmse"],
                change_in_words(row["nmse"], row["kernel_ridge_nmse"]),
            ]
            for row in info["target_scores"]
        ],
        title="Held-out error of each target with the settings chosen",
    )
