"""Predictions of an ONNX file beside those of the model that it was made from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..linalg import Array

__all__ = ["compare_onnx", "run_onnx"]

# Predictions whose deviation is a smaller share of their size are all the same but for rounding.
SAME = 1e-12


def run_onnx(path: str | os.PathLike[str], X: Any) -> Array:
    """Predictions of an ONNX file for the rows of a table, (n, p), by onnxruntime.

    Parameters
    ----------
    path : path
        File of `export_onnx`.
    X : array-like or data frame of shape (n, d), or mapping from names of inputs to arrays
    """
    session = open_session(path)
    feed = X if isinstance(X, Mapping) else _feed(session, X)
    return np.asarray(session.run(None, dict(feed))[0])


def compare_onnx(model: Any, path: str | os.PathLike[str], X: Any) -> float:
    """Largest difference between an ONNX file and `predict`, in units of the deviation of each target.

    Parameters
    ----------
    model : fitted regressor
    path : path
        File that `export_onnx` wrote of it.
    X : array-like or data frame of shape (n, d), or mapping from names of inputs to arrays
        Rows to compare on. Both get the numbers as the file takes them, rounded to float32 where it does.

    Notes
    -----
    The deviation is that of the predictions over the rows; where these are all the same, the difference is
    relative to their size.
    """
    session = open_session(path)
    feed = dict(X) if isinstance(X, Mapping) else _feed(session, X)
    found = np.asarray(session.run(None, feed)[0], dtype=np.float64)
    wanted = np.asarray(model.predict(_table(model, feed)), dtype=np.float64).reshape(found.shape)
    deviation, size = wanted.std(axis=0), np.abs(wanted).max(axis=0)
    unit = np.where(deviation > SAME * size, deviation, np.where(size > 0.0, size, 1.0))
    return float(np.max(np.abs(found - wanted) / unit))


def _feed(session: Any, X: Any) -> dict[str, Any]:
    """The columns of a table as inputs of a session."""
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    inputs = session.get_inputs()
    if [own.name for own in inputs] == ["X"] and inputs[0].type != "tensor(string)":
        return {"X": np.asarray(X, dtype=types[inputs[0].type])}
    feed = {}
    for own in inputs:
        # Columns without names are x0, x1, ...
        named = hasattr(X, "columns")
        column = X[own.name] if named else np.asarray(X, dtype=object)[:, int(own.name[1:])]
        values = np.array(column, dtype=object).reshape(-1, 1)  # (n, 1)
        if own.type == "tensor(string)":
            # Tensors of text have no blanks but the empty text.
            values[[value is None or value != value for value in values[:, 0]]] = ""
        feed[own.name] = values.astype(types[own.type])
    return feed


def _table(model: Any, feed: Mapping[str, Any]) -> Any:
    """The inputs of a session as the table that the model takes, numbers as doubles."""
    given = getattr(model, "feature_names_in_", None)
    if list(feed) == ["X"] and feed["X"].dtype != object:
        X = feed["X"].astype(np.float64)
    else:
        names = [f"x{place}" for place in range(model.n_features_in_)] if given is None else list(given)
        X = np.full((len(next(iter(feed.values()))), len(names)), np.nan, dtype=object)
        for name, values in feed.items():
            own = values if values.dtype == object else values.astype(np.float64)
            X[:, names.index(name)] = np.where(own == "", np.nan, own)[:, 0]
    if given is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(given)).infer_objects()


def open_session(path: str | os.PathLike[str]) -> Any:
    """A session of onnxruntime on the processor."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            'ONNX files are run with onnxruntime: pip install "entangled-kernels[onnx]"'
        ) from error
    return onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
