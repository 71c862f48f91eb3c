"""``predict`` and ``plan``: predictions for new rows, and what to measure next in them."""

from __future__ import annotations

import math
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    output_name,
)
from ..options import NewRowsOptions, comma_hint, option, split_names
from ..process import import_learning
from ..screen import Screen, say_note

if TYPE_CHECKING:
    from ...io import SavedModel
    from ..models import NewRows, Part

__all__ = ["PlanOptions", "PredictOptions", "plan", "predict"]

# Added to the name of a prediction if a column that is kept has the same name.
SUFFIX = " predicted"
NOVELTY = "novelty"
# First measurements that are listed.
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PredictOptions(NewRowsOptions):
    """Options of ``predict``."""

    out: Path = option(
        "Table to write, such as p.csv or p.parquet; - for stdout.", "-o", metavar="FILE"
    )
    measured: bool = option(
        "Use the targets in the table as given: their missing values and the other targets are "
        "predicted from the inputs and the given targets.",
        "--given",
        default=False,
    )
    intervals: float | None = option(
        "Also write NAME_lower and NAME_upper, between which a new observation lies with this "
        "probability, such as 0.9.",
        default=None,
        metavar="SHARE",
    )
    joint: bool = option(
        "Make the intervals wide enough to hold all targets of a row at once.", default=False
    )
    novelty: bool = option(
        "Also write a column 'novelty', the distance from the training rows; above 1 is far.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class PlanOptions(NewRowsOptions):
    """Options of ``plan``."""

    cost: list[str] | None = option(
        "Cost of measuring a target; 1 by default.", default=None, metavar="A=5,B=1"
    )
    out: Path | None = option(
        "Table with a plan for every row; - for stdout.", "-o", default=None, metavar="FILE"
    )
    most: int | None = option(
        "Measurements to suggest for a row.", default=None, metavar="K", min=1, show_default="all"
    )


def open_model_and_rows(
    options: PredictOptions | PlanOptions, *, measured: bool, needs: Iterable[str]
) -> tuple[SavedModel, NewRows]:
    """The model and a reader of its new rows.

    Files and options are checked before scikit-learn is imported. ``needs`` are the options that
    need a model with held-out errors.
    """
    out, path = options.out, options.model
    check_streams(out, json=options.json)
    options.check()
    check_input(path)
    check_table(options.table)
    if out is not None and out != STREAM:
        table_kind(out)
        check_output(out, force=options.force, inputs=[path, *files_of(options.table)])
    import_learning()
    from ..models import NewRows, open_saved_model, require_calibrated

    saved = open_saved_model(path)
    for need in needs:
        require_calibrated(saved, path, need)
    kept = split_names(options.keep or [])
    return saved, NewRows(saved, path, kept, measured=measured, options=options)


def predict(options: PredictOptions) -> None:
    """Predict the targets for every row of a table.

    Columns are found by name, in any order; columns that the model does not know are ignored. TABLE
    may also be a folder or a pattern such as 'rows/*.parquet', of any size.
    """
    out, intervals = options.out, options.intervals
    screen = Screen(as_json=options.json, aside=out == STREAM)
    if intervals is not None and not 0.0 < intervals < 1.0:
        raise typer.BadParameter(
            f"must be between 0 and 1, got {intervals:g}", param_hint="--intervals"
        )
    if options.joint and intervals is None:
        raise CommandError("--joint needs --intervals, such as --intervals 0.9")
    needs = ["--measured"] * options.measured + ["--intervals"] * (intervals is not None)
    saved, new = open_model_and_rows(options, measured=options.measured, needs=needs)
    from ..words import far_in_words

    predictor = Predictor(saved, new, options)
    with local_table(options.table) as source, data_errors(source):
        parts = new.parts(screen, source, options.max_memory)
        known_too = not in_batches(source, options.max_memory)
        frames = predictor.predictions(parts, source, known_too=known_too)
        rows, columns = new.write(frames, out, source, options)
    new.note_left_out()
    if predictor.n_far:
        say_note(far_in_words(predictor.n_far, rows))
    positive = saved.info.get("positive_targets", [])
    if below := [name for name in positive if name in predictor.below_zero]:
        say_note(below_zero_in_words(below, new.targets))
    targets = counted(len(new.targets), "target")
    screen.say(f"Wrote {counted(rows, 'row')} of {targets} to {output_name(out)}.")
    if options.measured:
        given = counted(predictor.n_given, "value")
        screen.say(f"Given in the table, and written unchanged: {given}.")
    if predictor.errors:
        title = "The table holds the targets too; error on its rows (too low for training rows)"
        screen.table(["target", "nMSE"], list(predictor.errors.items()), title=title)
    screen.result(
        {
            "out": str(out),
            "rows": rows,
            "columns": columns,
            "nmse": predictor.errors or None,
            "given_values": predictor.n_given if options.measured else None,
            "far_rows": predictor.n_far if predictor.has_novelty else None,
        }
    )


def below_zero_in_words(below: list[str], targets: list[str]) -> str:
    """A note on positive targets with lower limits below zero, with the options that avoid it.

    Examples
    --------
    >>> print(below_zero_in_words(["Zn [mg]"], ["Zn [mg]", "pH"]))
    lower limits of 'Zn [mg]' are below zero, though all training values are above; fit with
    --target-transform 'Zn [mg]=log' to avoid it
    """
    values = ["log"] if below == targets else [f"{name}=log" for name in below]
    options = " ".join(f"--target-transform {shlex.quote(value)}" for value in values)
    return (
        f"lower limits of {quoted(below)} are below zero, though all training values are above; fit "
        f"with {options} to avoid it"
    )


class Predictor:
    """Predictions of a model for the rows of a table, and counts for the messages.

    Attributes
    ----------
    has_novelty : bool
        Whether the model can tell how far rows are from its training rows.
    n_far, n_given : int
        Rows that are far, and given values of targets.
    errors : dict
        The nMSE of targets that are in the table, but were not given to the model.
    below_zero : set of str
        Targets with a lower limit below zero.
    """

    def __init__(self, saved: SavedModel, new: NewRows, options: PredictOptions) -> None:
        self.model, self.new, self.options = saved.model, new, options
        self.n_given, self.n_far, self.errors = 0, 0, dict[str, float]()
        self.below_zero = set[str]()
        self.has_novelty = hasattr(saved.model, "novelty")
        if options.novelty and not self.has_novelty:
            raise CommandError(
                f"--novelty needs an entangled kernel model, got {type(saved.model).__name__}"
            )
        ends = ("",) if options.intervals is None else ("", "_lower", "_upper")
        self.columns = [f"{name}{end}" for name in new.targets for end in ends]
        new.names_beside_kept(self.columns + [NOVELTY] * options.novelty, SUFFIX)

    def predictions(self, parts: Iterator[Part], table: Path, *, known_too: bool) -> Iterator[Any]:
        """Tables to write, part by part; with ``known_too`` errors of targets in the table."""
        for part in parts:
            if self.new.measured and part.given is None:
                raise TableError(
                    table,
                    "--measured needs a column that is a target of the model, "
                    f"{quoted(self.new.targets)}; the table has none",
                )
            predicted = self.predict(part)
            if part.given is not None:
                self.n_given += int(part.given.notna().to_numpy().sum())
            elif known_too:
                self.errors = known_errors(part.frame, predicted, self.new.targets, table)
            yield self.new.beside_kept(part.frame, predicted, SUFFIX)

    def predict(self, part: Part) -> Any:
        """Predictions, with lower and upper ends and novelty on request, as a data frame."""
        import numpy as np
        import pandas as pd

        from ...estimators import NoveltyWarning

        X, level = part.X, self.options.intervals
        given = {} if part.given is None else {"given": part.given}
        with warnings.catch_warnings():
            # Rows that are far are counted below.
            warnings.simplefilter("ignore", NoveltyWarning)
            values = np.asarray(self.model.predict(X, **given)).reshape(len(X), -1)
        if level is not None:
            ends = self.model.predict_interval(X, level, joint=self.options.joint, **given)
            lower, upper = (np.asarray(end).reshape(len(X), -1) for end in ends)
            below = zip(self.new.targets, np.atleast_1d((lower < 0.0).any(axis=0)), strict=True)
            self.below_zero |= {name for name, some in below if some}
            values = np.stack([values, lower, upper], axis=2).reshape(len(X), -1)  # (n, 3 p)
        predicted = pd.DataFrame(values, columns=self.columns, index=X.index)
        if self.has_novelty and len(X):
            novelty = self.model.novelty(X)
            self.n_far += int(np.count_nonzero(novelty > 1.0))
            if self.options.novelty:
                predicted[NOVELTY] = novelty
        return predicted


def known_errors(frame: Any, predictions: Any, targets: list[str], table: Path) -> dict[str, float]:
    """The nMSE of every target over its values in the table, if these differ."""
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
            errors[name] = float(
                np.mean((true - predictions[name].to_numpy())[known] ** 2) / variance
            )
    return errors


def plan(options: PlanOptions) -> None:
    """Suggest what to measure next for every row of a table.

    Targets in the table are measured where they are not missing. The others are ordered by how much
    of the uncertainty of all targets each removes, divided by its cost.
    """
    out = options.out
    screen = Screen(as_json=options.json, aside=out == STREAM)
    saved, new = open_model_and_rows(options, measured=True, needs=["plan"])
    costs = read_costs(options.cost or [], new.targets)
    planner = Planner(saved, new, costs, min(options.most or len(new.targets), len(new.targets)))
    with local_table(options.table) as source, data_errors(source):
        frames = planner.plans(new.parts(screen, source, options.max_memory))
        if out is None:
            for _ in frames:
                pass
        else:
            new.write(frames, out, source, options)
    new.note_left_out()
    screen.say(planner.summary_in_words())
    first = planner.first_steps()
    if len(first) > 1:
        rows = [[step["measure"], step["rows"], f"{step['removes']:.0%}"] for step in first[:SHOWN]]
        screen.table(["measure first", "rows", "removes"], rows)
    if out is not None:
        screen.say(f"Wrote {counted(planner.n_rows, 'row')} to {output_name(out)}.")
    screen.result(
        {
            "out": out,
            "rows": planner.n_rows,
            "complete": planner.n_complete,
            "first": first,
            "columns": planner.columns if out is not None else [],
        }
    )


class Planner:
    """What to measure next in the rows of a table, at most ``most`` targets of a row."""

    def __init__(self, saved: SavedModel, new: NewRows, costs: dict[str, float], most: int) -> None:
        self.model, self.new, self.costs, self.most = saved.model, new, costs, most
        self.n_rows = self.n_complete = 0
        self.columns = list[str]()
        self._count, self._removed = Counter[str](), Counter[str]()

    def plans(self, parts: Iterator[Part]) -> Iterator[Any]:
        """Tables to write, with the columns measure_1, reduction_1, measure_2 and so on."""
        import pandas as pd

        for part in parts:
            order, reduction = self.model.suggest_measurements(part.X, part.given, self.costs)
            for name, share in zip(order[:, 0], reduction[:, 0], strict=True):
                if name is not None:
                    self._count[name] += 1
                    self._removed[name] += share
            self.n_rows += len(order)
            self.n_complete = self.n_rows - self._count.total()
            columns: dict[str, Any] = {}
            for step in range(self.most):
                # Text in every cell, so that a column has one type in all parts of a file.
                columns[f"measure_{step + 1}"] = [
                    "" if name is None else name for name in order[:, step]
                ]
                columns[f"reduction_{step + 1}"] = reduction[:, step]
            frame = self.new.beside_kept(
                part.frame, pd.DataFrame(columns, index=part.X.index), " planned"
            )
            self.columns = list(frame.columns)
            yield frame

    def first_steps(self) -> list[dict[str, Any]]:
        """Targets to measure first, with their number of rows and the mean share removed."""
        return [
            {"measure": name, "rows": rows, "removes": self._removed[name] / rows}
            for name, rows in self._count.most_common()
        ]

    def summary_in_words(self) -> str:
        """A sentence on what to measure first in most rows."""
        first, rows = self.first_steps(), counted(self.n_rows, "row")
        if not first:
            return f"All targets are measured in all {rows}; nothing is left to measure."
        best, who = first[0], f"{first[0]['rows']:,} of {rows}"
        if best["rows"] == self.n_rows:
            who = "The row" if self.n_rows == 1 else f"All {rows}"
        sentence = (
            f"{who}: measure '{best['measure']}' first, which removes {best['removes']:.0%} of the "
            "uncertainty that is left in all targets, including its own."
        )
        if self.n_complete:
            verb = "has" if self.n_complete == 1 else "have"
            sentence += f" {counted(self.n_complete, 'row')} {verb} all targets measured."
        return sentence


def read_costs(values: list[str], targets: list[str]) -> dict[str, float]:
    """Costs of targets from options such as 'zinc=5,lead=1'."""
    costs: dict[str, float] = {}
    parts = split_names(values)
    names = [part.rpartition("=")[0].strip() or part for part in parts]
    hint = comma_hint([name for name in names if name not in targets], targets, "=NUMBER")
    for value in parts:
        name, sign, number = (part.strip() for part in value.rpartition("="))
        try:
            cost = float(number)
        except ValueError:
            cost = math.nan
        if not sign or not 0.0 < cost < math.inf:
            raise CommandError(
                f"--cost must be NAME=NUMBER with a positive number, such as zinc=5, got {value!r}{hint}"
            )
        if name not in targets:
            near = get_close_matches(name, targets, n=1)
            instead = f"is it '{near[0]}'?" if near else f"the model has {quoted(targets)}"
            raise CommandError(f"--cost: '{name}' is no target of the model; {instead}{hint}")
        if name in costs:
            raise CommandError(f"--cost names '{name}' twice")
        costs[name] = cost
    return costs
