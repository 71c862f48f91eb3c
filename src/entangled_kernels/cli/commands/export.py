"""``export``: from a model file to a file that other software predicts with."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CommandError, check_choice, data_errors
from ..files import check_input, check_output, check_table
from ..options import ReadingOptions, argument, option
from ..process import import_learning
from ..screen import Screen, say_note

if TYPE_CHECKING:
    from ...io import ExportedModel, SavedModel

__all__ = ["ExportOptions", "export"]

# Largest difference from the model, in deviations of a target, without a note.
LARGEST = 1e-5
SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class ExportOptions(ReadingOptions):
    """Options of ``export``."""

    model: Path = argument("MODEL", "Model file that fit wrote.")
    out: Path = option("ONNX file to write.", "-o", "--onnx", metavar="FILE")
    dtype: str = option(
        "Type of the inputs and outputs.", default="float32", metavar="float32|float64"
    )
    check: Path | None = option(
        "Compare with the model on the rows of this table, not on simulated rows.",
        default=None,
        metavar="TABLE",
    )


def export(options: ExportOptions) -> None:
    """Write a model as an ONNX file, which predicts without Python.

    If onnxruntime is installed, its predictions are compared with those of the model.
    """
    screen, model, out = Screen(as_json=options.json), options.model, options.out
    check_choice("--dtype", options.dtype, ("float32", "float64"))
    options.text_format()
    check_input(model)
    read = [model]
    if options.check is not None:
        check_input(options.check)
        check_table(options.check)
        read.append(options.check)
    check_output(out, force=options.force, inputs=read)
    import_learning()
    from ...io import ExportError, export_onnx
    from ..models import inputs_of, open_saved_model

    saved = open_saved_model(model)
    inputs_of(saved, model)
    rows = rows_of(saved, options)
    with screen.working("writing the graph"):
        try:
            made = export_onnx(saved.model, out, dtype=options.dtype)
        except ExportError as error:
            raise CommandError(f"{model}: {error}", "model") from error
        difference = difference_of(saved, out, made, rows)
    show(screen, out, made, difference, options.check)
    keys = ("inputs", "columns", "output", "targets")
    values = {key: getattr(made, key) for key in keys}
    screen.result({"out": str(out), **values, "difference": difference})


def rows_of(saved: SavedModel, options: ExportOptions) -> Any:
    """Inputs of the rows of the table to check on; None without one."""
    from ...io import read_table
    from ..models import NewRows

    if options.check is None:
        return None
    new = NewRows(saved, options.model, [], measured=False, options=options)
    return new.check(read_table(options.check, new.text_format), options.check).X


def difference_of(saved: SavedModel, path: Path, made: ExportedModel, rows: Any) -> float | None:
    """Largest difference from the model, in deviations of a target; None without onnxruntime."""
    from ...io import compare_onnx

    if find_spec("onnxruntime") is None:
        return None
    with data_errors(path):
        return compare_onnx(saved.model, path, made.sample if rows is None else rows)


def show(
    screen: Screen, path: Path, made: ExportedModel, difference: float | None, check: Path | None
) -> None:
    """Print what was written."""
    screen.say(f"Wrote {path}.")
    names, columns = list(made.inputs.items()), made.columns
    if list(made.inputs) == ["X"] and len(columns) > 1:
        some = ", ".join(columns[:SHOWN]) + (", ..." if len(columns) > SHOWN else "")
        screen.say(f"Input: X, {names[0][1]} (rows, {len(columns)}): {some}")
    else:
        screen.table(["input", "kind"], names, title="Inputs, each (rows, 1)")
    targets = ", ".join(made.targets[:SHOWN])
    screen.say(f"Output: {made.output}, (rows, {len(made.targets)}): {targets}")
    if difference is None:
        say_note(
            "the file was not compared with the model, since that needs onnxruntime: "
            'pip install "entangled-kernels[onnx]"'
        )
        return
    where = "100 simulated rows" if check is None else f"the rows of {check}"
    screen.say(
        f"Largest difference from the model on {where}: {difference:.2g} of a target's deviation."
    )
    if difference > LARGEST and "float64" not in made.inputs.values():
        say_note(
            "float32 loses digits of numbers that differ little from each other: use --dtype float64"
        )
