"""Fitted models as ONNX files, which predict without Python."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..io import atomic_write, software_versions
from ..parameters import check_choice
from . import (
    categories,
    composition,
    expansions,
    library_maps,
    library_models,
    scaling,
    sklearn_regressors,
)
from .columns import ExportError
from .graph import DOUBLE, FLOAT, Graph
from .table import Table
from .writer import Step, Writer

__all__ = ["REGRESSORS", "TRANSFORMERS", "ExportedModel", "export_onnx"]

# Versions of the operations and of the file: those that all runtimes of the last years read.
OPSETS, IR_VERSION = {"": 17, "ai.onnx.ml": 3}, 8
OUTPUT = "prediction"
DTYPES = {"float32": FLOAT, "float64": DOUBLE}

#: Steps that can be exported, by their exact type.
TRANSFORMERS: dict[type, Step] = {
    **scaling.TRANSFORMERS,
    **categories.TRANSFORMERS,
    **expansions.TRANSFORMERS,
    **composition.TRANSFORMERS,
    **library_maps.TRANSFORMERS,
}
REGRESSORS: dict[type, Step] = {
    **sklearn_regressors.REGRESSORS,
    **composition.REGRESSORS,
    **library_models.REGRESSORS,
}


class ExportedModel(NamedTuple):
    """What an ONNX file takes and gives.

    Attributes
    ----------
    inputs : dict of str
        Names of the inputs, with "float32", "float64" or "text".
    columns : list of str
        Names of the columns of the table, in the order in which the inputs hold them.
    output : str
        Name of the output, (rows, targets).
    targets : list of str
    sample : dict of ndarray
        Rows like those of training, as far as the model tells: inputs to try the file with.
    """

    inputs: dict[str, str]
    columns: list[str]
    output: str
    targets: list[str]
    sample: dict[str, Any]


def export_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float32") -> ExportedModel:
    """Write the predictions of a fitted model as an ONNX file.

    Parameters
    ----------
    model : estimator
        A fitted regressor of this package, a fitted regressor of scikit-learn, or a pipeline that ends in
        one. docs/export.md lists the steps that it may have.
    path : path
        Replaced only once the new file is complete and on the disk.
    dtype : {"float32", "float64"}, default="float32"
        Numbers that go in and come out. In between the graph computes with doubles.

    Returns
    -------
    ExportedModel
        Names of inputs and targets.

    Raises
    ------
    ExportError
        Where a step cannot be written; the sentence names it.

    Notes
    -----
    A table of numbers is one input ``X``, (rows, columns). Where the model encodes text, or drops columns,
    every column that it uses is an input of its own, (rows, 1), with the name of the column. The output is
    always (rows, targets).

    Products are taken in advance: of a kernel with m rows that carry the features and p targets, a new row
    costs m kernel values and m p products; of a forest, a walk through every tree to a leaf that holds p
    numbers. The sum over trees is rounded to float32, all else is of doubles.

    What `predict` refuses, such as NaN or a text that the encoder does not take, comes out as NaN. The file
    holds the names of the columns and targets and the version of this package; the same model gives the same
    bytes.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidge, GaussianFeatures
    >>> from entangled_kernels.export import compare_onnx, export_onnx
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidge(GaussianFeatures(random_state=0)).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = export_onnx(model, f"{folder}/exercise.onnx")
    ...     difference = compare_onnx(model, f"{folder}/exercise.onnx", X)
    >>> made.inputs, bool(difference < 1e-5)
    ({'X': 'float32'}, True)
    """
    check_choice("dtype", dtype, DTYPES)
    if not hasattr(model, "predict"):
        raise ExportError(f"model must be a fitted regressor with predict, got {type(model).__name__}")
    check_is_fitted(model)
    graph, table, predictions, width = _write_graph(model)
    targets = _target_names(model, width)
    proto = _to_onnx(graph, table, predictions, targets, type(model).__name__, dtype)
    with atomic_write(path, "wb") as file:
        file.write(proto.SerializeToString(deterministic=True))
    inputs = {name: "text" if is_text else dtype for name, is_text in _input_kinds(table)}
    return ExportedModel(inputs, _columns(table), _output_name(table), targets, _sample(table, dtype))


def _write_graph(model: Any) -> tuple[Graph, Table, str, int]:
    """The graph, its inputs, the tensor of the predictions and the number of targets.

    Only encoders know which columns are text, and only a transformer of columns which of them it drops. So
    the graph is written as if all were numbers, and written again once steps have asked for something else.
    """
    given = getattr(model, "feature_names_in_", None)
    names = [f"x{place}" for place in range(model.n_features_in_)] if given is None else map(str, given)
    names, apart, text = list(names), False, set[int]()
    while True:
        graph = Graph()
        graph.reserve([*names, "X", OUTPUT])
        table = Table(graph, names, apart=apart, text=text)
        predictions = Writer(graph, TRANSFORMERS, REGRESSORS).predictions(model, table.columns())
        tensor = predictions.matrix()
        if table.settled:
            return graph, table, tensor, predictions.width
        apart, text = True, text | table.asked


def _columns(table: Table) -> list[str]:
    """Names of the columns that the inputs hold, in their order."""
    return table.inputs() if table.apart else table.names


def _input_kinds(table: Table) -> list[tuple[str, bool]]:
    """Names of the inputs, and whether they are text."""
    texts = {table.names[place] for place in table.text} if table.apart else set()
    return [(name, name in texts) for name in table.inputs()]


def _target_names(model: Any, width: int) -> list[str]:
    names = getattr(model, "target_names_", None)
    return [f"output{place}" for place in range(width)] if names is None else [str(name) for name in names]


def _output_name(table: Table) -> str:
    name = OUTPUT
    while name in table.inputs():
        name += "_"
    return name


def _to_onnx(
    graph: Graph,
    table: Table,
    predictions: str,
    targets: list[str],
    estimator: str,
    dtype: str,
) -> Any:
    onnx = import_onnx()
    helper, number, text = onnx.helper, DTYPES[dtype], onnx.TensorProto.STRING
    output = _output_name(table)
    nodes = [
        helper.make_node(
            node.operation,
            list(node.inputs),
            [node.output],
            domain=node.domain,
            **{name: _attribute(onnx, name, value) for name, value in node.attributes.items()},
        )
        for node in graph.nodes
    ]
    nodes.append(helper.make_node("Cast", [predictions], [output], to=number))
    width = 1 if table.apart else len(table.names)
    inputs = [
        helper.make_tensor_value_info(name, text if is_text else number, ["rows", width])
        for name, is_text in _input_kinds(table)
    ]
    made = helper.make_graph(
        nodes,
        estimator,
        inputs,
        [helper.make_tensor_value_info(output, number, ["rows", len(targets)])],
        [_tensor(onnx, name, values) for name, values in graph.constants.items()],
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        ir_version=IR_VERSION,
        producer_name="entangled-kernels",
        producer_version=software_versions().get("entangled-kernels", ""),
    )
    facts = {"estimator": estimator, "targets": targets, "columns": _columns(table)}
    helper.set_model_props(model, {name: json.dumps(value) for name, value in facts.items()})
    onnx.checker.check_model(model)
    return model


def _attribute(onnx: Any, name: str, value: Any) -> Any:
    return onnx.numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value


def _tensor(onnx: Any, name: str, values: Any) -> Any:
    if values.dtype.kind in "OU":
        flat = [str(value).encode() for value in values.reshape(-1)]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, values.shape, flat)
    return onnx.numpy_helper.from_array(values, name)


def _sample(table: Table, dtype: str, n: int = 100) -> dict[str, Any]:
    """Rows like those of training: normal numbers of the centre and scale that are known, known texts."""
    rng = np.random.default_rng(0)
    numbers = (table.centre + table.scale * rng.normal(size=(n, len(table.names)))).astype(dtype)
    if not table.apart:
        return {"X": numbers}
    sample: dict[str, Any] = {}
    for place in sorted(table.used):
        known = np.array(sorted(set(table.texts.get(place, []))) or [""], dtype=object)
        texts = known[rng.integers(len(known), size=(n, 1))]
        sample[table.names[place]] = texts if place in table.text else numbers[:, [place]]
    return sample


def import_onnx() -> Any:
    """The package that writes ONNX files."""
    try:
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError('export_onnx writes with onnx: pip install "entangled-kernels[onnx]"') from error
    return onnx
