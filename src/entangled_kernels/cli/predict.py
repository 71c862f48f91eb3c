"""``predict``: from a model file and a table to a table of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.stats import norm

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ..storage import SavedModel
from ..tables import (
    TableError,
    categories_of,
    encode_categories,
    read_table,
    require_columns,
    require_numbers,
    unseen_categories,
    write_table,
)
from .columns import split_names
from .errors import CommandError, data_errors
from .files import check_input, check_table_output
from .models import inputs_of, open_named_model, targets_of
from .options import Force, Json, OneTable
from .screen import Screen, say_note
from .streams import MaxMemory, in_batches, predict_stream
from .words import counted

__all__ = ["predict"]

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file that fit wrote.", show_default=False)
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Table to write; its name tells the kind.", show_default=False
    ),
]
Intervals = Annotated[
    float | None,
    typer.Option(
        "--intervals",
        metavar="SHARE",
        help="Also write NAME_lower and NAME_upper, between which a new observation lies with this "
        "probability, such as 0.9.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="A,B", help="Columns of the table to copy before the predictions, such as an id."
    ),
]


def predict(
    model: Model,
    table: OneTable,
    out: Out,
    intervals: Intervals = None,
    keep: Keep = None,
    max_memory: MaxMemory = 4096,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict the targets for every row of a table.

    Columns are found by name, whatever their order; columns that the model does not know are ignored. TABLE
    may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    screen = Screen(as_json=json)
    if intervals is not None and not 0.0 < intervals < 1.0:
        raise typer.BadParameter(f"must be between 0 and 1, got {intervals:g}", param_hint="--intervals")
    check_table_output(out, force=force)
    saved = open_named_model(model)
    kept = split_names(keep or [])
    if in_batches(table, max_memory):

        def predict_rows(frame: Any, source: Path) -> Any:
            return predict_frame(saved, inputs_from(frame, saved, model, source), intervals)

        with data_errors(table):
            rows = predict_stream(screen, saved, table, out, kept, max_memory, predict_rows, model)
        screen.say(f"Wrote {rows} rows of {len(targets_of(saved))} targets to {out}.")
        screen.result({"out": str(out), "rows": rows})
        return
    check_input(table)
    frame = read_table(table)
    require_columns(frame, kept, table)
    X = inputs_from(frame, saved, model, table)
    with screen.working("predicting"), data_errors(table):
        predictions = predict_frame(saved, X, intervals)
    result = frame[kept].join(predictions, rsuffix=" predicted")
    write_table(result, out)
    screen.say(f"Wrote {len(result)} rows of {counted(len(targets_of(saved)), 'target')} to {out}.")
    errors = known_errors(frame, saved, predictions, table)
    if errors:
        screen.table(
            ["target", "nMSE"],
            list(errors.items()),
            title="The table holds the targets too; error on its rows (too good if they were fitted to)",
        )
    screen.result(
        {"out": str(out), "rows": len(result), "columns": list(result.columns), "nmse": errors or None}
    )


def inputs_from(frame: Any, saved: SavedModel, model: Path, table: Path) -> Any:
    """Columns that the model needs, checked, in its order, with text encoded as when it was fitted."""
    names = inputs_of(saved, model)
    require_columns(frame, names, table)
    categories = saved.info.get("categories", {})
    categories_of(frame, list(categories), table)
    numbers = [name for name in names if name not in categories]
    frame = frame.assign(**require_numbers(frame, numbers, table))
    for name, values in unseen_categories(frame, categories).items():
        shown = ", ".join(repr(value) for value in values[:5]) + (" and others" if len(values) > 5 else "")
        say_note(f"column '{name}' holds {shown}, unknown to the model; all its 0/1 columns are 0 there")
    return encode_categories(frame[names], categories)


def predict_frame(saved: SavedModel, X: Any, intervals: float | None) -> Any:
    """Predictions, with lower and upper ends on request, as a data frame."""
    import pandas as pd

    names = targets_of(saved)
    if intervals is None:
        mean = np.asarray(saved.model.predict(X)).reshape(len(X), -1)
        return pd.DataFrame(mean, columns=names, index=X.index)
    if not isinstance(saved.model, EntangledKernelRidge | EntangledKernelRidgeCV):
        raise CommandError(f"--intervals needs an entangled kernel model, got {type(saved.model).__name__}")
    mean, std = (np.asarray(part).reshape(len(X), -1) for part in saved.model.predict(X, return_std=True))
    width = float(norm.ppf(0.5 + intervals / 2.0)) * std
    columns = {}
    for place, name in enumerate(names):
        columns[name] = mean[:, place]
        columns[f"{name}_lower"] = mean[:, place] - width[:, place]
        columns[f"{name}_upper"] = mean[:, place] + width[:, place]
    return pd.DataFrame(columns, index=X.index)


def known_errors(frame: Any, saved: SavedModel, predictions: Any, table: Path) -> dict[str, float]:
    """The nMSE of every target whose true values are in the table too, complete and not all the same."""
    errors = {}
    for name in targets_of(saved):
        try:
            true = require_numbers(frame, [name], table)[name].to_numpy()
        except TableError:
            continue
        if true.var() > 0.0:
            errors[name] = float(np.mean((true - predictions[name].to_numpy()) ** 2) / true.var())
    return errors
