"""``export``: from a model file to a file that other software predicts with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from ...export import ExportedModel, ExportError, compare_onnx, export_onnx
from ...storage import SavedModel
from ...tables import read_table
from ..errors import CommandError, check_choice, data_errors
from ..files import check_input, check_output
from ..new_rows import NewRows
from ..options import Force, Json, Model
from ..saved_models import open_saved_model, require_rows
from ..screen import Screen, say_note

__all__ = ["export"]

# Of a target's deviation: what a file in float32 is held to.
LARGEST = 1e-5
SHOWN = 12

Onnx = Annotated[Path, typer.Option("--onnx", metavar="FILE", help="ONNX file to write.", show_default=False)]
Dtype = Annotated[
    str, typer.Option("--dtype", metavar="float32|float64", help="Numbers that go in and come out.")
]
Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        metavar="TABLE",
        help="Compare with the model on the rows of a table, not on rows drawn like those of training.",
    ),
]


def export(
    model: Model,
    onnx: Onnx,
    dtype: Dtype = "float32",
    check: Check = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a model as an ONNX file, which predicts without Python.

    Where onnxruntime is installed its predictions are compared with those of the model.
    """
    screen = Screen(as_json=json)
    check_choice("--dtype", dtype, ("float32", "float64"))
    if check is not None:
        check_input(check)
    check_output(onnx, force=force, inputs=[model, *([] if check is None else [check])])
    saved = open_saved_model(model)
    require_rows(saved, model)
    rows = None if check is None else rows_of(saved, model, check)
    with screen.working("writing the graph"):
        try:
            made = export_onnx(saved.model, onnx, dtype=dtype)
        except ExportError as error:
            raise CommandError(f"{model}: {error}", "model") from error
        difference = difference_of(saved, onnx, made, rows)
    show(screen, onnx, made, difference, check)
    screen.result(
        {
            "out": str(onnx),
            "inputs": made.inputs,
            "columns": made.columns,
            "output": made.output,
            "targets": made.targets,
            "difference": difference,
        }
    )


def rows_of(saved: SavedModel, path: Path, table: Path) -> Any:
    """Inputs of the rows of a table, as `predict` would read them."""
    return NewRows(saved, path, [], measured=False).check(read_table(table), table).X


def difference_of(saved: SavedModel, path: Path, made: ExportedModel, rows: Any) -> float | None:
    """Largest difference of the file from the model, in deviations of a target; None without onnxruntime."""
    if find_spec("onnxruntime") is None:
        return None
    if rows is None:
        return compare_onnx(saved.model, path, made.sample)
    with data_errors(path):
        return compare_onnx(saved.model, path, rows)


def show(
    screen: Screen, path: Path, made: ExportedModel, difference: float | None, check: Path | None
) -> None:
    """Tell people."""
    screen.say(f"Wrote {path}.")
    names = list(made.inputs.items())
    if list(made.inputs) == ["X"] and len(made.columns) > 1:
        kind, shape = names[0][1], f"(rows, {len(made.columns)})"
        columns = ", ".join(made.columns[:SHOWN]) + (", ..." if len(made.columns) > SHOWN else "")
        screen.say(f"Input: X, {kind} {shape}: {columns}")
    else:
        screen.table(["input", "kind"], names, title="Inputs, each (rows, 1)")
    screen.say(f"Output: {made.output}, (rows, {len(made.targets)}): {', '.join(made.targets[:SHOWN])}")
    if difference is None:
        say_note(
            "the file was not compared with the model: that needs onnxruntime, of entangled-kernels[onnx]"
        )
        return
    where = f"on the rows of {check}" if check is not None else "on 100 rows drawn like those of training"
    screen.say(f"Largest difference from the model {where}: {difference:.2g} of a target's deviation.")
    if difference > LARGEST and "float64" not in made.inputs.values():
        say_note("float32 loses digits of numbers that differ little from each other; use --dtype float64")
