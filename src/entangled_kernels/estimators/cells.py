"""Cells of a table of targets: which were measured, what each weighs, and how well they are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.utils import check_array

from ..linalg import Array, Index
from ..parameters import check_finite_total
from .frames import target_names

__all__ = [
    "check_cells",
    "check_every_target_measured",
    "check_targets",
    "measured_rows",
    "score_cells",
    "simplest_weights",
]

Names = Sequence[str] | NDArray[np.object_] | None


def check_cells(y: Any, sample_weight: Any = None, names: Names = None) -> tuple[Array, Array | None]:
    """Targets with blanks, and what each cell weighs, in the simplest form that says it.

    Parameters
    ----------
    y : array-like or frame of shape (n,) or (n, p)
        NaN, or a null of a frame, is a blank: a cell that was not measured.
    sample_weight : number, array-like or frame of shape (n,) or (n, p), optional
        Not negative. Zero makes a blank.
    names : sequence of str, optional
        Names of the targets, for errors; those of the frame y unless given.

    Returns
    -------
    Y : ndarray of shape (n, p)
        As given, with NaN in blanks. A cell of weight zero may hold any number.
    weights : None or ndarray of shape (n,) or (n, p)
        None where every cell weighs one; (n,) where the cells of each row weigh the same; else (n, p). Zero
        in every blank, so that a cell was measured where its weight is positive.

    Notes
    -----
    A row of blanks has weight zero, so that weights stay (n,) where it is whole rows that are blank.

    Examples
    --------
    >>> import numpy as np
    >>> Y, weights = check_cells([[1.0, np.nan], [2.0, 3.0]])
    >>> weights
    array([[1., 0.],
           [1., 1.]])
    >>> check_cells([1.0, np.nan, 2.0], 3.0)[1]
    array([3., 0., 3.])
    """
    if y is None:
        raise ValueError("The estimator requires y to be passed, but the target y is None")
    names = target_names(y) if names is None else names
    Y = check_targets(y, names)
    Y = Y.reshape(len(Y), -1)
    weights = _weights(sample_weight, Y.shape, names)
    blank = np.isnan(Y)
    if blank.any():
        weights = np.ones(Y.shape) if weights is None else weights
        weights = np.where(blank, 0.0, weights if weights.ndim == 2 else weights[:, None])
    return Y, simplest_weights(weights)


def simplest_weights(weights: Array | None) -> Array | None:
    """Weights of rows where all cells of a row weigh the same, None where all rows do with weight one."""
    if weights is not None and weights.ndim == 2 and (weights == weights[:, :1]).all():
        weights = weights[:, 0].copy()
    return None if weights is None or (weights == 1.0).all() else weights


def check_every_target_measured(Y: Array, weights: Array | None, names: Names = None) -> None:
    """Raise unless every target has a cell of positive weight; the error names those that have none.

    Parameters
    ----------
    Y, weights
        As `check_cells` returns them.
    names : sequence of str, optional
        Names of the targets; their numbers are named without.
    """
    if weights is None:
        return
    measured = (weights > 0.0).any(axis=0)
    if not measured.any():
        if np.isnan(Y).all():
            raise ValueError("y must have a measured cell in every column, got blanks (NaN) only")
        raise ValueError(
            "sample_weight must be positive for at least one measured cell, got zero weights only"
        )
    if not measured.all():
        never = np.flatnonzero(~measured)
        raise ValueError(
            f"y must have a measured cell in every column, got only blanks (NaN or weight zero) in "
            f"{_columns(never, names)}; leave it out, or measure it at least once"
        )


def measured_rows(
    Y: Array, weights: Array | None, names: Names = None
) -> tuple[NDArray[np.bool_], Array, Array | None]:
    """Which rows have a measured target, and their targets and weights; every target must be in one.

    Parameters
    ----------
    Y, weights
        As `check_cells` returns them.
    names : sequence of str, optional
        Names of the targets, for errors.

    Returns
    -------
    measured : ndarray of bool of shape (n,)
    Y, weights
        Of these rows, in the simplest form: what is left may be complete.

    Examples
    --------
    >>> import numpy as np
    >>> Y, weights = check_cells([[1.0, 2.0], [np.nan, np.nan]])
    >>> measured_rows(Y, weights)
    (array([ True, False]), array([[1., 2.]]), None)
    """
    check_every_target_measured(Y, weights, names)
    if weights is None:
        return np.ones(len(Y), dtype=bool), Y, None
    measured = np.asarray(weights.reshape(len(Y), -1).any(axis=1))
    return measured, *check_cells(Y[measured], weights[measured])


def score_cells(y: Any, prediction: Any, sample_weight: Any = None) -> float:
    """R^2 of each target over its measured cells, averaged over targets.

    Parameters
    ----------
    y : array-like or frame of shape (n,) or (n, p)
        With NaN in blanks.
    prediction : array-like or frame of the same shape
    sample_weight : number or array-like of shape (n,) or (n, p), optional

    Returns
    -------
    float
        `sklearn.metrics.r2_score` where nothing is blank. Targets with fewer than two measured cells have no
        R^2, and are left out.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, np.nan]])
    >>> score_cells(y, np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]))
    1.0
    """
    Y, weights = check_cells(y, sample_weight)
    values = np.asarray(prediction, dtype=np.float64).reshape(Y.shape)
    if weights is None or (weights.ndim == 1 and not np.isnan(Y).any()):
        return float(r2_score(Y, values, sample_weight=weights))
    cells = np.broadcast_to(weights.reshape(len(Y), -1), Y.shape)
    scores = []
    for target, predicted, weight in zip(Y.T, values.T, cells.T, strict=True):
        rows = weight > 0.0
        if rows.sum() >= 2:
            scores.append(r2_score(target[rows], predicted[rows], sample_weight=weight[rows]))
    if not scores:
        raise ValueError("y must have at least two measured cells in some column to be scored")
    return float(np.mean(scores))


def check_targets(y: Any, names: Names = None, *, blanks: bool = True) -> Array:
    """Targets (n,) or (n, p) as numbers, with NaN in blanks where these will do.

    An error names the column that is to blame.
    """
    try:
        Y = check_array(
            y,
            ensure_2d=False,
            dtype=np.float64,
            ensure_min_features=0,
            ensure_all_finite=False,
            input_name="y",
        )
    except (TypeError, ValueError) as error:
        text = _text_columns(y)
        if len(text) == 0:
            raise
        raise ValueError(
            f"y must hold numbers, or NaN where nothing was measured, got text in {_columns(text, names)}"
        ) from error
    if Y.ndim == 2 and Y.shape[1] == 0:
        raise ValueError(f"y must have at least one column, got shape {Y.shape}")
    # The first words are scikit-learn's, which its checks look for.
    need = "y must hold finite numbers" + (", or NaN where nothing was measured" if blanks else "")
    infinite = np.flatnonzero(np.isinf(Y.reshape(len(Y), -1)).any(axis=0))
    if len(infinite):
        raise ValueError(
            f"Input y contains infinity or a value too large for dtype('float64') in "
            f"{_columns(infinite, names)}; {need}"
        )
    missing = np.flatnonzero(np.isnan(Y.reshape(len(Y), -1)).any(axis=0))
    if len(missing) and not blanks:
        raise ValueError(f"Input y contains NaN in {_columns(missing, names)}; {need}")
    return np.asarray(Y)


def _text_columns(y: Any) -> Index:
    """Numbers of the columns that hold text."""
    cells = np.asarray(y, dtype=object)
    if cells.ndim not in (1, 2) or not cells.size:
        return np.array([], dtype=np.intp)
    cells = cells.reshape(len(cells), -1)
    return np.flatnonzero([any(isinstance(cell, str) for cell in column) for column in cells.T])


def _weights(sample_weight: Any, shape: tuple[int, ...], names: Names) -> Array | None:
    """Weights (n,) or (n, p) as they were given, checked."""
    if sample_weight is None:
        return None
    n, p = shape
    need = f"a number, or of shape ({n},) or ({n}, {p})"
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be {need}, got {sample_weight!r:.80}") from None
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape not in ((n,), (n, p)):
        raise ValueError(f"sample_weight must be {need}, got shape {weights.shape}")
    columns = target_names(sample_weight)
    if weights.ndim == 2 and columns is not None and names is not None and list(columns) != list(names):
        raise ValueError(f"sample_weight must have the columns of y, {list(names)}, got {list(columns)}")
    if not np.isfinite(weights).all() or weights.min(initial=0.0) < 0.0:
        raise ValueError("sample_weight must be finite and not negative; zero makes a blank")
    check_finite_total("sample_weight", weights)
    return weights


def _columns(numbers: Index, names: Names) -> str:
    """Columns in words, by name where there are names."""
    found = [repr(str(names[i])) if names is not None else str(i) for i in numbers]
    return f"column{'s' if len(found) > 1 else ''} {', '.join(found)}"
