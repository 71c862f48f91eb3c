"""``plan``: which target of every row to measure next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...io import table_kind
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
from ..screen import Screen

if TYPE_CHECKING:
    from ..models import NewRows, Part

__all__ = ["PlanOptions", "plan"]

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PlanOptions(ReadingOptions):
    """Options of ``plan``."""

    model: Model
    table: OneTable
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost", metavar="A=5,B=1", help="What measuring a target costs; 1 where nothing is said."
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Table with a plan for every row; - for stdout."),
    ] = None
    most: Annotated[
        int | None,
        typer.Option(
            "--most", metavar="K", min=1, help="Measurements to plan for a row.", show_default="all"
        ),
    ] = None
    keep: Keep = None
    output_format: OutputFormat = None
    max_memory: MaxMemory = 4096
    force: Force = False
    json: Json = False


def plan(options: PlanOptions) -> None:
    """Tell what to measure next for every row of a table.

    Targets that the table has count as measured where their cells are not blank. The others come in the
    order of how much of the uncertainty of all targets each removes for its cost.
    """
    model, table, out = options.model, options.table, options.out
    screen = Screen(as_json=options.json, aside=out == STREAM)
    check_streams(out, json=options.json)
    check_output_format(options.output_format)
    text_format = options.text_format()
    check_input(model)
    check_table(table)
    if out is not None and out != STREAM:
        table_kind(out)
        check_output(out, force=options.force, inputs=[model, *files_of(table)])
    import_learning()
    from ..models import NewRows, open_saved_model, require_calibrated, write_parts

    saved = open_saved_model(model)
    require_calibrated(saved, model, "plan")
    new = NewRows(saved, model, split_names(options.keep or []), measured=True, options=options)
    costs = read_costs(options.cost or [], new.targets)
    planner = Planner(new, costs, min(options.most or len(new.targets), len(new.targets)))
    with local_table(table) as source, data_errors(source):
        parts = planner.plans(new.parts(screen, source, options.max_memory))
        if out is None:
            for _ in parts:
                pass
        else:
            written = output_format(options.output_format, source, text_format)
            write_parts(parts, out, written, several=in_batches(source, options.max_memory))
    new.tell_left_out()
    screen.say(summary_in_words(planner))
    first = planner.first_steps()
    if len(first) > 1:
        rows = [[step["measure"], step["rows"], f"{step['removes']:.0%}"] for step in first[:SHOWN]]
        screen.table(["measure first", "rows", "removes"], rows)
    if out is not None:
        screen.say(f"Wrote {counted(planner.n_rows, 'row')} to {place_of(out)}.")
    found = {"rows": planner.n_rows, "complete": planner.n_complete, "first": first}
    screen.result({"out": out, **found, "columns": planner.columns if out is not None else []})


class Planner:
    """Plans for the rows of tables, and what they have in common.

    Parameters
    ----------
    new : NewRows
    costs : dict
        By target.
    most : int
        Measurements to plan for a row.

    Attributes
    ----------
    n_rows, n_complete : int
        All rows, and those of which every target is measured.
    columns : list of str
        Of the tables.
    """

    def __init__(self, new: NewRows, costs: dict[str, float], most: int) -> None:
        self.new, self.costs, self.most = new, costs, most
        self.n_rows = self.n_complete = 0
        self.columns = list[str]()
        self._count, self._removed = Counter[str](), Counter[str]()

    def plans(self, parts: Iterator[Part]) -> Iterator[Any]:
        """Tables with the columns measure_1, reduction_1, measure_2 and so on."""
        import pandas as pd

        for part in parts:
            order, reduction = self.new.model.suggest_measurements(part.X, part.given, self.costs)
            self._note(order[:, 0], reduction[:, 0])
            columns: dict[str, Any] = {}
            for step in range(self.most):
                # Text in every cell, so that all parts of a file have columns of one kind.
                columns[f"measure_{step + 1}"] = ["" if name is None else name for name in order[:, step]]
                columns[f"reduction_{step + 1}"] = reduction[:, step]
            frame = self.new.beside_kept(part.frame, pd.DataFrame(columns, index=part.X.index), " planned")
            self.columns = list(frame.columns)
            yield frame

    def first_steps(self) -> list[dict[str, Any]]:
        """Targets that come first, with the number of rows and the mean share removed; most rows first."""
        return [
            {"measure": name, "rows": rows, "removes": self._removed[name] / rows}
            for name, rows in self._count.most_common()
        ]

    def _note(self, first: Any, reduction: Any) -> None:
        self.n_rows += len(first)
        for name, share in zip(first, reduction, strict=True):
            if name is None:
                self.n_complete += 1
            else:
                self._count[name] += 1
                self._removed[name] += share


def summary_in_words(planner: Planner) -> str:
    """What most rows are to have measured first."""
    first, rows = planner.first_steps(), planner.n_rows
    if not first:
        return f"All targets are measured in all {counted(rows, 'row')}; there is nothing to plan."
    best = first[0]
    who = f"All {rows:,} rows" if best["rows"] == rows else f"{best['rows']:,} of {counted(rows, 'row')}"
    who = "The row" if rows == 1 else who
    sentence = (
        f"{who}: measure '{best['measure']}' first, which removes {best['removes']:.0%} of the uncertainty "
        f"that is left in all targets, its own included."
    )
    if planner.n_complete:
        verb = "has" if planner.n_complete == 1 else "have"
        sentence += f" {counted(planner.n_complete, 'row')} {verb} every target measured already."
    return sentence


def read_costs(values: list[str], targets: list[str]) -> dict[str, float]:
    """Costs from an option such as 'zinc=5,lead=1'."""
    costs: dict[str, float] = {}
    for value in split_names(values):
        name, sign, number = (part.strip() for part in value.rpartition("="))
        try:
            cost = float(number)
        except ValueError:
            cost = math.nan
        if not sign or not 0.0 < cost < math.inf:
            raise CommandError(
                f"--cost must be NAME=NUMBER with a positive number, such as zinc=5, got {value!r}"
            )
        if name not in targets:
            near = get_close_matches(name, targets, n=1)
            hint = f"is it '{near[0]}'?" if near else f"the model has {quoted(targets)}"
            raise CommandError(f"--cost: '{name}' is no target of the model; {hint}")
        if name in costs:
            raise CommandError(f"--cost names '{name}' twice")
        costs[name] = cost
    return costs
