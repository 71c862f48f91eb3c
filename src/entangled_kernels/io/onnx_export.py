"""Fitted models as ONNX files, which predict without Python, written by skl2onnx."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators import NoveltyWarning
from ..files import atomic_write
from ..linalg import Array
from ..parameters import check_choice
from .models import software_versions

__all__ = [
    "ExportError",
    "ExportedModel",
    "compare_onnx",
    "export_onnx",
    "register_converters",
    "run_onnx",
]

# Predictions with a smaller ratio of deviation to size are constant except for rounding.
SAME = 1e-12


class ExportError(ValueError):
    """A model, or a step of one, that cannot be written as a graph.

    Attributes
    ----------
    names_step : bool
        Whether the message names the step.
    """

    names_step = False


class ExportedModel(NamedTuple):
    """Inputs and outputs of an ONNX file.

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
        Simulated inputs, with the mean and deviation of training columns that the model knows.
    """

    inputs: dict[str, str]
    columns: list[str]
    output: str
    targets: list[str]
    sample: dict[str, Any]


def export_onnx(
    model: Any, path: str | os.PathLike[str], *, dtype: str = "float32"
) -> ExportedModel:
    """Write the predictions of a fitted model as an ONNX file.

    Parameters
    ----------
    model : estimator
        A fitted regressor of this package, a fitted regressor of scikit-learn, or a pipeline that
        ends in one. docs/export.md lists the steps that it may have.
    path : path
        An old file is replaced once the new one is complete and on the disk.
    dtype : {"float32", "float64"}, default="float32"
        Type of inputs and outputs. In between, the graph computes in double precision.

    Returns
    -------
    ExportedModel
        Names of inputs and targets.

    Raises
    ------
    ExportError
        If a step cannot be written; the message names the step.

    Notes
    -----
    A table of numbers is one input ``X``, (rows, columns). If the model encodes text, or drops
    columns, each column that it uses is one input, (rows, 1), with the name of the column. The
    output is always (rows, targets).

    For rows that `predict` refuses, with NaN or a text unknown to the encoder, the output is NaN.
    The metadata of the file hold the names of columns and targets and the version of this package.
    The same model gives the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidge, EvidenceFeatures
    >>> from entangled_kernels.io import compare_onnx, export_onnx
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidge(EvidenceFeatures(random_state=0)).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = export_onnx(model, f"{folder}/exercise.onnx")
    ...     difference = compare_onnx(model, f"{folder}/exercise.onnx", X)
    >>> made.inputs, bool(difference < 1e-5)
    ({'X': 'float32'}, True)
    """
    check_choice("dtype", dtype, ("float32", "float64"))
    if not hasattr(model, "predict"):
        raise ExportError(
            f"model must be a fitted regressor with predict, got {type(model).__name__}"
        )
    check_is_fitted(model)
    onnx_converters = _converters()
    graph, output, proto = onnx_converters.write_model(model, column_names(model), dtype)
    targets = getattr(model, "target_names_", None)
    if targets is None:
        targets = [f"output{i}" for i in range(_n_targets(proto))]
    columns = [graph.columns[index] for index in graph.used] if graph.is_split else graph.columns
    made = ExportedModel(
        graph.inputs(dtype), columns, output, [str(name) for name in targets], _sample(graph, dtype)
    )
    _describe(proto, type(model).__name__, made)
    with atomic_write(path, "wb") as file:
        file.write(proto.SerializeToString(deterministic=True))
    return made


def register_converters() -> None:
    """Register the maps and models of this package with skl2onnx, for its own ``to_onnx``.

    `export_onnx` needs no such call. Steps that skl2onnx converts by itself keep its converters;
    steps that it lacks are added, such as `Nystroem`.
    """
    _converters().register_converters()


def column_names(model: Any) -> list[str]:
    """Names of the columns of a model; x0, x1, ... if it was fitted without names."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(int(model.n_features_in_))] if given is None else [*given]


def _converters() -> Any:
    """The module that writes graphs."""
    try:
        import onnx  # noqa: F401
        import skl2onnx  # noqa: F401

        from . import onnx_converters
    except ImportError as error:
        raise ImportError(
            'models are exported with skl2onnx: pip install "entangled-kernels[onnx]"'
        ) from error
    return onnx_converters


def _n_targets(proto: Any) -> int:
    """Number of columns of the predictions."""
    from onnx.shape_inference import infer_shapes

    shape = infer_shapes(proto).graph.output[0].type.tensor_type.shape.dim
    return int((shape[1].dim_value if len(shape) == 2 else 0) or 1)


def _describe(proto: Any, estimator: str, made: ExportedModel) -> None:
    """Add names of columns and targets to the metadata, and check the model."""
    from onnx.checker import check_model
    from onnx.helper import set_model_props

    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = len(made.targets)
    proto.producer_name = "entangled-kernels"
    proto.producer_version = software_versions().get("entangled-kernels", "")
    facts = {"estimator": estimator, "targets": made.targets, "columns": made.columns}
    set_model_props(proto, {name: json.dumps(value) for name, value in facts.items()})
    check_model(proto)


def _sample(graph: Any, dtype: str, n: int = 100) -> dict[str, Any]:
    """Simulated rows: normal numbers with the known centre and scale, and known texts."""
    rng = np.random.default_rng(0)
    numbers = graph.centre + graph.scale * rng.normal(size=(n, len(graph.columns)))
    if not graph.is_split:
        return {"X": numbers.astype(dtype)}
    sample: dict[str, Any] = {}
    for index in graph.used:
        if index in graph.texts:
            # An empty text may also stand for a missing value.
            known = np.array(sorted({*graph.texts[index]} - {""}) or [""], dtype=object)
            sample[graph.columns[index]] = known[rng.integers(len(known), size=(n, 1))]
        else:
            sample[graph.columns[index]] = numbers[:, [index]].astype(dtype)
    return sample


# Files that are run.


def run_onnx(path: str | os.PathLike[str], X: Any) -> Array:
    """Predictions of an ONNX file for the rows of a table, (n, p), by onnxruntime.

    Parameters
    ----------
    path : path
        File of `export_onnx`.
    X : array-like or data frame of shape (n, d), or mapping from names of inputs to arrays
    """
    session = _session(path)
    feed = X if isinstance(X, Mapping) else _feed(session, X)
    return np.asarray(session.run(None, dict(feed))[0])


def compare_onnx(model: Any, path: str | os.PathLike[str], X: Any) -> float:
    """Largest difference between an ONNX file and `predict`, in deviations of each target.

    Parameters
    ----------
    model : fitted regressor
    path : path
        File that `export_onnx` wrote of it.
    X : array-like or data frame of shape (n, d), or mapping from names of inputs to arrays
        Rows to compare on. Both get the same numbers, rounded to float32 if the file takes float32.

    Notes
    -----
    The unit is the deviation of the predictions over the rows, or the size of constant predictions.
    """
    session = _session(path)
    feed = dict(X) if isinstance(X, Mapping) else _feed(session, X)
    computed = np.asarray(session.run(None, feed)[0], dtype=np.float64)
    with warnings.catch_warnings():
        # Simulated rows may be outside of the training range.
        warnings.simplefilter("ignore", NoveltyWarning)
        expected = np.asarray(model.predict(_rows(model, feed, X)), dtype=np.float64).reshape(
            computed.shape
        )
    deviation, size = expected.std(axis=0), np.abs(expected).max(axis=0)
    unit = np.where(deviation > SAME * size, deviation, np.where(size > 0.0, size, 1.0))
    return float(np.max(np.abs(computed - expected) / unit))


def _feed(session: Any, X: Any) -> dict[str, Any]:
    """The columns of a table as inputs of a session."""
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    inputs = session.get_inputs()
    if [entry.name for entry in inputs] == ["X"] and inputs[0].shape[1] != 1:
        return {"X": np.asarray(X, dtype=types[inputs[0].type])}
    feed = {}
    for entry in inputs:
        # Columns without names are called x0, x1 and so on.
        named = hasattr(X, "columns") and entry.name in X.columns
        index = 0 if entry.name == "X" else int(entry.name[1:]) if not named else None
        column = X[entry.name] if named else np.asarray(X, dtype=object)[:, index]
        values = np.array(column, dtype=object).reshape(-1, 1)  # (n, 1)
        if entry.type == "tensor(string)":
            # In tensors of text the empty text is the missing value.
            values[[value is None or value != value for value in values[:, 0]]] = ""
        feed[entry.name] = values.astype(types[entry.type])
    return feed


def _rows(model: Any, feed: Mapping[str, Any], table: Any = None) -> Any:
    """The inputs of a session as a table for the model, with numbers as doubles.

    Text is read from ``table`` if that is a data frame: in a session an empty text may also be a
    missing value.
    """
    given = getattr(model, "feature_names_in_", None)
    if list(feed) == ["X"] and feed["X"].dtype != object:
        X = feed["X"].astype(np.float64)
    else:
        names = column_names(model)
        X = np.full((len(next(iter(feed.values()))), len(names)), np.nan, dtype=object)
        for name, values in feed.items():
            column = values if values.dtype == object else values.astype(np.float64)
            if column.dtype == object and hasattr(table, "columns") and name in table.columns:
                X[:, names.index(name)] = np.asarray(table[name], dtype=object)
            else:
                X[:, names.index(name)] = np.where(column == "", np.nan, column)[:, 0]
    if given is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(given)).infer_objects()


def _session(path: str | os.PathLike[str]) -> Any:
    """A session of onnxruntime on the processor."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            'ONNX files are run with onnxruntime: pip install "entangled-kernels[onnx]"'
        ) from error
    return onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
