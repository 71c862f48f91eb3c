"""``forecast``: from a table of time steps to the next steps, and the network of influences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...storage import ModelFileError, save_model
from ...tables import table_kind, write_table
from ...tables.phrases import counted
from ..errors import check_choice, data_errors
from ..files import check_input, check_output
from ..options import Force, Json, OneTable
from ..saved_models import inputs_of, open_saved_model
from ..screen import Screen, say_note
from ..series import network_frame, read_series, show_network
from ..shell_command import command_line
from ..training_table import TrainingTable

__all__ = ["forecast"]

KERNELS = ("hadamard", "additive")

Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Table to write the next steps to.")
]
Steps = Annotated[int, typer.Option("--steps", "-s", min=1, help="Steps to predict.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", "-c", metavar="A,B", help="Columns of the series; all that hold numbers by default."
    ),
]
Lags = Annotated[int, typer.Option("--lags", min=1, help="Steps that the next one depends on.")]
Kernel = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="|".join(KERNELS),
        help="Influences that may interact, or that add up, with a sparse network.",
    ),
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Later parts of the series to choose alpha on.")]
Model = Annotated[
    Path | None,
    typer.Option("--model", metavar="MODEL", help="Go on with a model that was saved, and fit nothing."),
]
Save = Annotated[Path | None, typer.Option("--save", metavar="MODEL", help="Model file to write.")]
Network = Annotated[
    Path | None, typer.Option("--network", metavar="FILE", help="Table to write all influences to.")
]


def forecast(
    table: OneTable,
    out: Out = None,
    steps: Steps = 1,
    columns: Columns = None,
    lags: Lags = 1,
    kernel: Kernel = "hadamard",
    folds: Folds = 4,
    model: Model = None,
    save: Save = None,
    network: Network = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict the next steps of time series, and tell which of them acts on which.

    Every row of TABLE is a step in time, in order and at equal distances, every column a series.
    """
    screen = Screen(as_json=json)
    check_choice("--kernel", kernel, KERNELS)
    for file in (out, network):
        if file is not None:
            table_kind(file)
    for file in (out, network, save):
        if file is not None:
            check_output(file, force=force)
    check_input(table)
    if model is None:
        series = read_series(table, columns, "--columns")
        for note in series.notes:
            say_note(note)
        with data_errors(table), screen.working("fitting"):
            fitted = fit_series(series, kernel, lags, folds)
    else:
        fitted, series = open_series_model(model, table)
    with data_errors(table):
        predicted = fitted.forecast(steps, series.Y)
    options = {
        "--columns": series.targets,
        "--steps": steps,
        "--lags": lags,
        "--kernel": kernel,
        "--folds": folds,
        "--save": save,
    }
    command = command_line("forecast", table, options=options)
    if save is not None:
        info = {"rows": len(series.Y), "table": table.name, "targets": series.targets, "command": command}
        save_model(fitted, save, info=info | {"nmse": held_out_error(fitted)})
    frame = step_frame(predicted, series.targets)
    if out is not None:
        write_table(frame, out)
    if network is not None:
        write_table(network_frame(fitted.granger_, series.targets), network)
    show(screen, fitted, series, frame, table)
    for file in (out, network, save):
        if file is not None:
            screen.say(f"Wrote {file}.")
    screen.result(
        {
            "steps": frame.to_dict("list"),
            "columns": series.targets,
            "influence": fitted.granger_,
            "alpha": getattr(fitted, "alpha_", fitted.get_params().get("alpha")),
            "nmse": held_out_error(fitted),
            "out": out,
            "model": save or model,
        }
    )


def fit_series(series: TrainingTable, kernel: str, lags: int, folds: int) -> Any:
    """The autoregression with alpha chosen on later steps."""
    from ...estimators import OperatorKernelVARCV

    return OperatorKernelVARCV(kernel, lags=lags, cv=folds).fit(series.Y)


def open_series_model(model: Path, table: Path) -> tuple[Any, TrainingTable]:
    """A saved autoregression, and the series of its variables in the table."""
    from ...estimators import OperatorKernelVAR

    saved = open_saved_model(model)
    if not isinstance(saved.model, OperatorKernelVAR):
        raise ModelFileError(
            f"{model} is no model of time series but {type(saved.model).__name__}, which predicts rows; "
            f"use: entangled-kernels predict {model} TABLE, or fit --method var"
        )
    return saved.model, read_series(table, inputs_of(saved, model), None)


def held_out_error(fitted: Any) -> float | None:
    """Squared error of steps that come later, over the variance of the series; None where none were tried."""
    score = getattr(fitted, "best_score_", None)
    return None if score is None else 1.0 - float(score)


def step_frame(predicted: Any, names: list[str]) -> Any:
    """The steps as a table, counted from 1 after the last row."""
    import pandas as pd

    frame = pd.DataFrame(predicted, columns=names)
    frame.insert(0, "step", range(1, len(frame) + 1), allow_duplicates=True)
    return frame


def show(screen: Screen, fitted: Any, series: TrainingTable, frame: Any, table: Path) -> None:
    """Tell people what comes next, how sure that is, and what acts on what."""
    screen.say(f"{table}: {counted(len(series.Y), 'step')} of {counted(len(series.targets), 'variable')}.")
    error = held_out_error(fitted)
    if error is not None:
        screen.say(f"Error of later steps, each from those before (nMSE, 1 is the mean): {error:.4g}.")
    shown = frame.head(10)
    title = "Next steps" + (f", the first {len(shown)} of {len(frame)}" if len(frame) > len(shown) else "")
    screen.table(list(frame.columns), shown.to_numpy(dtype=object).tolist(), title=title)
    show_network(screen, fitted.granger_, series.targets)
