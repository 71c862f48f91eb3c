"""``predict``: from a model file and a table to a table of predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...io import TableError, require_numbers, table_kind
from ...io.tables import counted, quoted
from ..errors import CommandError, data_errors
from ..files import (
    STREAM,
    check_input,
    check_output,
    check_streams,
    check_table,
    files_of,
    in_batches,
    local_table,
    place_of,
)
from ..options import (
    Force,
    Json,
    Keep,
    MaxMemory,
    Model,
    OneTable,
    OutputFormat,
    ReadingOptions,
    check_output_format,
    output_format,
    split_names,
)
from ..process import import_learning
from ..screen import Screen, say_note

if TYPE_CHECKING:
    from ..models import NewRows, Part

__all__ = ["PredictOptions", "predict"]

# Of a prediction beside a kept column of the same name.
SUFFIX = " predicted"
NOVELTY = "novelty"


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ReadingOptions):
    """Options of ``predict``."""

    model: Model
    table: OneTable
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Table to write; its name tells the kind; - for stdout.",
            show_default=False,
        ),
    ]
    measured: Annotated[
        bool,
        typer.Option(
            "--measured",
            help="Use the targets that the table has: missing cells of them, and the other targets, are "
            "predicted from the inputs and the measured ones.",
        ),
    ] = False
    intervals: Annotated[
        float | None,
        typer.Option(
            "--intervals",
            metavar="SHARE",
            help="Also write NAME_lower and NAME_upper, between which a new observation lies with this "
            "probability, such as 0.9.",
        ),
    ] = None
    joint: Annotated[
        bool,
        typer.Option("--joint", help="Make the intervals wide enough to hold all targets of a row at once."),
    ] = False
    novelty: Annotated[
        bool,
        typer.Option(
            "--novelty",
            help="Also write a column 'novelty': how far a row is from what the model was fitted on; above "
            "1 is far out.",
        ),
    ] = False
    keep: Keep = None
    output_format: OutputFormat = None
    max_memory: MaxMemory = 4096
    force: Force = False
    json: Json = False


def predict(options: PredictOptions) -> None:
    """Predict the targets for every row of a table.

    Columns are found by name, whatever their order; columns that the model does not know are ignored. TABLE
    may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    model, table, out, intervals = options.model, options.table, options.out, options.intervals
    screen = Screen(as_json=options.json, aside=out == STREAM)
    if intervals is not None and not 0.0 < intervals < 1.0:
        raise typer.BadParameter(f"must be between 0 and 1, got {intervals:g}", param_hint="--intervals")
    if options.joint and intervals is None:
        raise CommandError("--joint needs --intervals, such as --intervals 0.9")
    check_streams(out, json=options.json)
    check_output_format(options.output_format)
    text_format = options.text_format()
    check_input(model)
    check_table(table)
    if out != STREAM:
        table_kind(out)
        check_output(out, force=options.force, inputs=[model, *files_of(table)])
    import_learning()
    from ..models import NewRows, open_saved_model, require_calibrated, write_parts
    from ..words import far_in_words

    saved = open_saved_model(model)
    for option in ["--measured"] * options.measured + ["--intervals"] * (intervals is not None):
        require_calibrated(saved, model, option)
    new = NewRows(saved, model, split_names(options.keep or []), measured=options.measured, options=options)
    if options.novelty and not hasattr(saved.model, "novelty"):
        raise CommandError(f"--novelty needs an entangled kernel model, got {type(saved.model).__name__}")
    predictor = Predictor(new, intervals, joint=options.joint, novelty=options.novelty)
    with local_table(table) as source, data_errors(source):
        several = in_batches(source, options.max_memory)
        parts = predictor.predictions(
            new.parts(screen, source, options.max_memory), source, known_too=not several
        )
        written = output_format(options.output_format, source, text_format)
        rows, columns = write_parts(parts, out, written, several=several)
    new.tell_left_out()
    if predictor.n_far:
        say_note(far_in_words(predictor.n_far, rows))
    below = [name for name in saved.info.get("positive_targets", []) if name in predictor.below_zero]
    if below:
        say_note(
            f"lower limits of {quoted(below)} are below zero, though all training rows are above; fit with "
            f"--target-transform {'log' if below == new.targets else f'{below[0]}=log'} to avoid it"
        )
    screen.say(f"Wrote {counted(rows, 'row')} of {counted(len(new.targets), 'target')} to {place_of(out)}.")
    if options.measured:
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
            "measured_cells": predictor.n_given if options.measured else None,
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
    below_zero : set of str
        Targets with a lower limit below zero.
    """

    def __init__(self, new: NewRows, intervals: float | None, *, joint: bool, novelty: bool = False) -> None:
        self.new, self.intervals, self.joint, self.novelty = new, intervals, joint, novelty
        self.n_given, self.n_far, self.errors = 0, 0, dict[str, float]()
        self.below_zero = set[str]()
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
        import numpy as np
        import pandas as pd

        from ...estimators import NoveltyWarning

        model, X = self.new.model, part.X
        given = {} if part.given is None else {"given": part.given}
        with warnings.catch_warnings():
            # Rows far out are counted instead.
            warnings.simplefilter("ignore", NoveltyWarning)
            values = np.asarray(model.predict(X, **given)).reshape(len(X), -1)
        if self.intervals is not None:
            ends = model.predict_interval(X, self.intervals, joint=self.joint, **given)
            lower, upper = (np.asarray(end).reshape(len(X), -1) for end in ends)
            below = zip(self.new.targets, np.atleast_1d((lower < 0.0).any(axis=0)), strict=True)
            self.below_zero |= {name for name, some in below if some}
            values = np.stack([values, lower, upper], axis=2).reshape(len(X), -1)  # (n, 3 p)
        found = pd.DataFrame(values, columns=self.columns, index=X.index)
        if self.judges and len(X):
            novelty = model.novelty(X)
            self.n_far += int(np.count_nonzero(novelty > 1.0))
            if self.novelty:
                found[NOVELTY] = novelty
        return found


def known_errors(frame: Any, predictions: Any, targets: list[str], table: Path) -> dict[str, float]:
    """The nMSE of every target over the cells that are in the table too, where these are not all the same."""
    import numpy as np

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
