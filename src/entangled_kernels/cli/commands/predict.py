"""``predict``: from a model file and a table to a table of predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...estimators import NoveltyWarning
from ...tables import TableError, require_numbers, table_kind
from ...tables.phrases import counted, quoted
from ..batches import in_batches
from ..errors import CommandError, data_errors
from ..files import check_output, files_of
from ..new_rows import NewRows, Part, require_calibrated, write_parts
from ..options import (
    Decimal,
    Delimiter,
    Encoding,
    Force,
    Json,
    Keep,
    MaxMemory,
    Missing,
    Model,
    OneTable,
)
from ..saved_models import open_saved_model
from ..screen import Screen, say_note
from ..shell_command import split_names
from ..standard_streams import STREAM, check_streams, local_table, place_of
from ..table_options import read_table_options

__all__ = ["predict"]

# Of a prediction beside a kept column of the same name.
SUFFIX = " predicted"
NOVELTY = "novelty"

Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Table to write; its name tells the kind; - for stdout.",
        show_default=False,
    ),
]
Measured = Annotated[
    bool,
    typer.Option(
        "--measured",
        help="Use the targets that the table has: blank cells of them, and the other targets, are predicted "
        "from the inputs and the measured ones.",
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
Joint = Annotated[
    bool,
    typer.Option("--joint", help="Make the intervals wide enough to hold all targets of a row at once."),
]


Novelty = Annotated[
    bool,
    typer.Option(
        "--novelty",
        help="Also write a column 'novelty': how far a row is from what the model was fitted on; above 1 is "
        "far out.",
    ),
]


def predict(
    model: Model,
    table: OneTable,
    out: Out,
    measured: Measured = False,
    intervals: Intervals = None,
    joint: Joint = False,
    novelty: Novelty = False,
    keep: Keep = None,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    max_memory: MaxMemory = 4096,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict the targets for every row of a table.

    Columns are found by name, whatever their order; columns that the model does not know are ignored. TABLE
    may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    screen = Screen(as_json=json, aside=out == STREAM)
    if intervals is not None and not 0.0 < intervals < 1.0:
        raise typer.BadParameter(f"must be between 0 and 1, got {intervals:g}", param_hint="--intervals")
    if joint and intervals is None:
        raise CommandError("--joint needs --intervals, such as --intervals 0.9")
    check_streams(out, json=json)
    options = read_table_options(delimiter=delimiter, decimal=decimal, encoding=encoding, missing=missing)
    if out != STREAM:
        table_kind(out)
        check_output(out, force=force, inputs=[model, *files_of(table)])
    saved = open_saved_model(model)
    for option in ["--measured"] * measured + ["--intervals"] * (intervals is not None):
        require_calibrated(saved, model, option)
    new = NewRows(saved, model, split_names(keep or []), measured=measured, options=options)
    if novelty and not hasattr(saved.model, "novelty"):
        raise CommandError(f"--novelty needs an entangled kernel model, got {type(saved.model).__name__}")
    predictor = Predictor(new, intervals, joint=joint, novelty=novelty)
    with local_table(table) as source, data_errors(source):
        several = in_batches(source, max_memory)
        parts = predictor.predictions(new.parts(screen, source, max_memory), source, known_too=not several)
        rows, columns = write_parts(parts, out, several=several)
    new.tell_left_out()
    if predictor.n_far:
        say_note(far_in_words(predictor.n_far, rows))
    screen.say(f"Wrote {counted(rows, 'row')} of {counted(len(new.targets), 'target')} to {place_of(out)}.")
    if measured:
        screen.say(f"Measured already, and written as they are: {counted(predictor.n_given, 'cell')}.")
    if predictor.errors:
        title = "The table holds the targets too; error on its rows (too good if they were fitted to)"
        screen.table(["target", "nMSE"], list(predictor.errors.items()), title=title)
    screen.result(
        {
            "out": str(out),
            "rows": rows,
            "columns": columns,
            "nmse": predictor.errors or None,
            "measured_cells": predictor.n_given if measured else None,
            "far_rows": predictor.n_far if predictor.judges else None,
        }
    )


class Predictor:
    """Predictions of a saved model for the rows of tables.

    Parameters
    ----------
    new : NewRows
    intervals : float or None
        Probability with which an observation lies between the ends that are written too.
    joint : bool
        Whether all targets of a row are to lie between them at once.
    novelty : bool
        Whether a column tells how far out rows are.

    Attributes
    ----------
    judges : bool
        Whether the model knows how far out rows are.
    n_far : int
        Rows that are far out.
    n_given : int
        Cells that were measured already.
    errors : dict
        The nMSE of targets that were known, but not given to the model.
    columns : list of str
        Of the predictions.
    """

    def __init__(self, new: NewRows, intervals: float | None, *, joint: bool, novelty: bool = False) -> None:
        self.new, self.intervals, self.joint, self.novelty = new, intervals, joint, novelty
        self.n_given, self.n_far, self.errors = 0, 0, dict[str, float]()
        self.judges = hasattr(new.model, "novelty")
        ends = ("",) if intervals is None else ("", "_lower", "_upper")
        self.columns = [f"{name}{end}" for name in new.targets for end in ends]
        new.names_beside_kept(self.columns + [NOVELTY] * novelty, SUFFIX)

    def predictions(self, parts: Iterator[Part], table: Path, *, known_too: bool) -> Iterator[Any]:
        """Tables to write; with ``known_too`` the errors of targets that the table holds are found."""
        for part in parts:
            if self.new.measured and part.given is None:
                raise TableError(
                    table,
                    f"--measured needs a column that is a target of the model, {quoted(self.new.targets)}; "
                    f"the table has none",
                )
            found = self.predict(part)
            if part.given is not None:
                self.n_given += int(part.given.notna().to_numpy().sum())
            elif known_too:
                self.errors = known_errors(part.frame, found, self.new.targets, table)
            yield self.new.beside_kept(part.frame, found, SUFFIX)

    def predict(self, part: Part) -> Any:
        """Predictions, with lower and upper ends and novelty on request, as a data frame."""
        import pandas as pd

        model, X = self.new.model, part.X
        given = {} if part.given is None else {"given": part.given}
        with warnings.catch_warnings():
            # Rows far out are counted instead.
            warnings.simplefilter("ignore", NoveltyWarning)
            values = np.asarray(model.predict(X, **given)).reshape(len(X), -1)
        if self.intervals is not None:
            ends = model.predict_interval(X, self.intervals, joint=self.joint, **given)
            lower, upper = (np.asarray(end).reshape(len(X), -1) for end in ends)
            values = np.stack([values, lower, upper], axis=2).reshape(len(X), -1)  # (n, 3 p)
        found = pd.DataFrame(values, columns=self.columns, index=X.index)
        if self.judges and len(X):
            novelty = model.novelty(X)
            self.n_far += int(np.count_nonzero(novelty > 1.0))
            if self.novelty:
                found[NOVELTY] = novelty
        return found


def far_in_words(far: int, rows: int) -> str:
    """How many rows are far out.

    Examples
    --------
    >>> far_in_words(1, 40)
    '1 of 40 rows is far from what the model was fitted on (novelty above 1); its prediction rests on little'
    """
    verb, rests = ("is", "its prediction rests") if far == 1 else ("are", "their predictions rest")
    where = "far from what the model was fitted on (novelty above 1)"
    return f"{far} of {rows} rows {verb} {where}; {rests} on little"


def known_errors(frame: Any, predictions: Any, targets: list[str], table: Path) -> dict[str, float]:
    """The nMSE of every target over the cells that are in the table too, where these are not all the same."""
    errors = {}
    for name in targets:
        try:
            true = require_numbers(frame, [name], table, blanks=True)[name].to_numpy()
        except TableError:
            continue
        known = np.isfinite(true)
        variance = true[known].var() if known.any() else 0.0
        if variance > 0.0:
            errors[name] = float(np.mean((true - predictions[name].to_numpy())[known] ** 2) / variance)
    return errors
