"""``predict``: from a model file and a table to a table of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.stats import norm

from ...estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ...storage import SavedModel
from ...streams import read_batches
from ...tables import (
    TableError,
    append_table,
    read_table,
    require_columns,
    require_numbers,
    require_text,
    table_kind,
    write_table,
)
from ...tables.phrases import counted
from ..batches import batch_bytes, in_batches, watch_batches
from ..errors import CommandError, data_errors
from ..features import known_texts, unknown_texts
from ..files import check_input, check_output
from ..options import Force, Json, MaxMemory, Model, OneTable
from ..saved_models import inputs_of, open_saved_model, targets_of
from ..screen import Screen, say_note
from ..shell_command import split_names

__all__ = ["predict"]

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
    table_kind(out)
    check_output(out, force=force)
    predictor = Predictor(open_saved_model(model), model, split_names(keep or []), intervals)
    with data_errors(table):
        if in_batches(table, max_memory):
            written = predict_batches(screen, predictor, table, out, max_memory)
        else:
            check_input(table)
            written = predict_rows(screen, predictor, table, out)
    targets = counted(len(predictor.targets), "target")
    screen.say(f"Wrote {counted(written['rows'], 'row')} of {targets} to {out}.")
    if written["nmse"]:
        title = "The table holds the targets too; error on its rows (too good if they were fitted to)"
        screen.table(["target", "nMSE"], list(written["nmse"].items()), title=title)
    screen.result({"out": str(out), **written})


class Predictor:
    """Predictions of a saved model for the rows of tables.

    Parameters
    ----------
    saved : SavedModel
    path : path
        Of the model, for errors.
    kept : list of str
        Columns to copy before the predictions.
    intervals : float or None
        Probability with which an observation lies between the ends that are written too.
    """

    def __init__(self, saved: SavedModel, path: Path, kept: list[str], intervals: float | None) -> None:
        self.model, self.kept, self.intervals = saved.model, kept, intervals
        self.inputs, self.targets = inputs_of(saved, path), targets_of(saved)
        self.texts = known_texts(getattr(self.model, "feature_map_", None))
        self.told: set[str] = set()
        if intervals is not None and not isinstance(
            self.model, EntangledKernelRidge | EntangledKernelRidgeCV
        ):
            raise CommandError(
                f"--intervals needs an entangled kernel model, got {type(self.model).__name__}"
            )

    def predict(self, frame: Any, path: Path, rows_before: int = 0) -> Any:
        """Predictions, with lower and upper ends on request, as a data frame."""
        import pandas as pd

        X = self._checked_inputs(frame, path, rows_before)
        if self.intervals is None:
            values = {"": self.model.predict(X)}
        else:
            mean, std = self.model.predict(X, return_std=True)
            width = float(norm.ppf(0.5 + self.intervals / 2.0)) * std
            values = {"": mean, "_lower": mean - width, "_upper": mean + width}
        columns = {
            f"{name}{ending}": np.asarray(part).reshape(len(X), -1)[:, place]
            for place, name in enumerate(self.targets)
            for ending, part in values.items()
        }
        return pd.DataFrame(columns, index=X.index)

    def beside_kept(self, frame: Any, predictions: Any) -> Any:
        """The table to write: the columns that are kept, and the predictions."""
        return frame[self.kept].join(predictions, rsuffix=" predicted")

    def _checked_inputs(self, frame: Any, path: Path, rows_before: int) -> Any:
        """Columns that the model needs, in its order; every text that it does not know is told once."""
        require_columns(frame, [*self.inputs, *self.kept], path)
        numbers = [name for name in self.inputs if name not in self.texts]
        X = frame[self.inputs].copy()
        X[numbers] = require_numbers(frame, numbers, path, rows_before=rows_before)
        X[list(self.texts)] = require_text(frame, list(self.texts), path, rows_before=rows_before)
        for sentence in unknown_texts(X, self.texts):
            if sentence not in self.told:
                say_note(sentence)
            self.told.add(sentence)
        return X


def predict_rows(screen: Screen, predictor: Predictor, table: Path, out: Path) -> dict[str, Any]:
    """Read a table, predict, and write; what was written, and the errors where the targets are known."""
    frame = read_table(table)
    with screen.working("predicting"):
        predictions = predictor.predict(frame, table)
    result = predictor.beside_kept(frame, predictions)
    write_table(result, out)
    errors = known_errors(frame, predictions, predictor.targets, table)
    return {"rows": len(result), "columns": list(result.columns), "nmse": errors or None}


def predict_batches(
    screen: Screen, predictor: Predictor, table: Path, out: Path, max_memory: float
) -> dict[str, Any]:
    """Write predictions batch by batch; what was written."""
    wanted = list(dict.fromkeys([*predictor.inputs, *predictor.kept]))
    reader = read_batches(table, inputs=wanted, max_memory=batch_bytes(max_memory))
    rows, columns = 0, list[str]()
    with append_table(out) as append, screen.progress() as report:
        watch = watch_batches(reader, report)
        for batch in reader:
            source = batch.source
            place = (table, 0) if source is None else (Path(source.file), source.start)
            result = predictor.beside_kept(batch.X, predictor.predict(batch.X, *place))
            append(result)
            rows, columns = rows + len(result), list(result.columns)
            watch(batch)
    return {"rows": rows, "columns": columns, "nmse": None}


def known_errors(frame: Any, predictions: Any, targets: list[str], table: Path) -> dict[str, float]:
    """The nMSE of every target whose true values are in the table too, complete and not all the same."""
    errors = {}
    for name in targets:
        try:
            true = require_numbers(frame, [name], table)[name].to_numpy()
        except TableError:
            continue
        if true.var() > 0.0:
            errors[name] = float(np.mean((true - predictions[name].to_numpy()) ** 2) / true.var())
    return errors
