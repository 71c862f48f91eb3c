"""Effects of inputs on functions that are linear in features: by their gradients, or by permuting inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ..features.gradients import pull_back
from ..learning.input_range import as_numbers
from ..linalg import Array, Index
from .measured import Mixture

__all__ = ["gradient_effects", "permutation_effects"]

# Gradients of rows are taken in chunks of this many numbers.
_CHUNK_NUMBERS = 2**22


def gradient_effects(
    feature_map: Any, X: Any, coefs: Array, found: list[Mixture], unit: Array
) -> tuple[Array, Array]:
    """Effects and sizes, both (c, d, p), from gradients at every row.

    Parameters
    ----------
    feature_map : fitted transformer or None
        One that `has_gradient`.
    X : array or data frame of shape (n, d)
    coefs : ndarray of shape (c, p, m)
        Of c models with the same features.
    found : list of Mixture
        How predictions follow where targets are measured.
    unit : ndarray of shape (d,)
        What an input is moved by: its standard deviation.

    Notes
    -----
    With g the gradient of a prediction by an input, effects are unit times the mean of g over the rows, sizes
    unit times its root mean square. A target counts over the rows where it is not measured. Where features
    are linear in the inputs, effects are exact, and sizes their absolute values.

    Time that of `pull_back` for c p functions, and n c p^2 d with measured targets.
    """
    c, p, m = coefs.shape
    sums, squares, counts = np.zeros((c, p, len(unit))), np.zeros((c, p, len(unit))), np.zeros(p)
    # Kernels weigh all rows that carry them.
    step = max(1, _CHUNK_NUMBERS // max(1, c * p * max(m, len(unit))))
    for rows, follow, _ in found:
        mixed = not np.array_equal(follow, np.eye(p))
        for start in range(0, len(rows), step):
            chunk = _safe_indexing(X, rows[start : start + step])
            G = pull_back(feature_map, chunk, coefs.reshape(c * p, m)).reshape(-1, c, p, len(unit))
            if mixed:
                G = np.einsum("op,tcpd->tcod", follow, G, optimize=True)  # (t, c, p, d)
            sums += G.sum(axis=0)
            squares += np.einsum("tcpd,tcpd->cpd", G, G)
        counts += len(rows) * follow.any(axis=1)
    return _means(sums, squares, counts, unit)


def permutation_effects(
    features: Callable[[Any], Array],
    X: Any,
    coefs: Array,
    found: list[Mixture],
    unit: Array,
    n_repeats: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Effects and sizes, both (c, d, p), from the change of predictions as an input is permuted.

    Parameters
    ----------
    features : callable
        From rows to features (n, m).
    X, coefs, found, unit : as in `gradient_effects`
    n_repeats : int
        Permutations of every input.
    rng : numpy.random.Generator

    Notes
    -----
    A permutation moves x to x' in one column, and predictions by D. The effect is unit times the slope of D
    over x - x' through zero, sum D (x - x') / sum (x - x')^2; the size is sqrt(sum D^2 / 2n). For a linear
    function both are those of its gradient, since (x - x')^2 is on average twice the variance of x.

    Time d n_repeats (n m c p), and as many feature maps of all rows.
    """
    c, p, m = coefs.shape
    numbers, n = as_numbers(X), np.shape(X)[0]
    before: Any = features(X)
    sums, squares, counts = np.zeros((c, p, len(unit))), np.zeros((c, p, len(unit))), np.zeros(p)
    for rows, follow, _ in found:
        counts += len(rows) * follow.any(axis=1)
    for column in np.flatnonzero(unit != 0.0):
        moved, along = np.zeros((c, p)), np.zeros(p)
        for _ in range(n_repeats):
            order = rng.permutation(n)
            other = np.empty_like(order)
            # Every row gets the value of the next in a random order, so that none keeps its own.
            other[order] = np.roll(order, 1)
            after = features(with_column(X, int(column), other))
            change = np.asarray((before - after) @ coefs.reshape(c * p, m).T).reshape(n, c, p)
            steps = numbers[:, column] - numbers[other, column]
            steps = np.where(np.isfinite(steps), steps, 0.0)
            for rows, follow, _ in found:
                D = change[rows] @ follow.T  # (t, c, p)
                squares[:, :, column] += np.sum(D**2, axis=0) / (2.0 * n_repeats)
                moved += np.einsum("tcp,t->cp", D, steps[rows])
                along += np.sum(steps[rows] ** 2) * follow.any(axis=1)
        slope = moved / np.where(along > 0.0, along, 1.0)
        sums[:, :, column] = np.where(np.isnan(unit[column]), np.nan, slope) * counts
    size_unit = np.ones(len(unit))
    effect = _means(sums, squares, counts, unit)[0]
    return effect, _means(sums, squares, counts, size_unit)[1]


def with_column(X: Any, column: int, order: Index) -> Any:
    """A copy of a table in which the values of one column come from other rows.

    Examples
    --------
    >>> import numpy as np
    >>> with_column(np.array([[1, 2], [3, 4]]), 1, np.array([1, 0])).tolist()
    [[1, 4], [3, 2]]
    """
    if issparse(X):
        moved = X.tolil(copy=True)
        moved[:, [column]] = X.tocsr()[order][:, [column]]
        return moved.tocsr()
    if hasattr(X, "isetitem"):
        moved = X.copy()
        moved.isetitem(column, X.iloc[order, column].array)
        return moved
    if hasattr(X, "with_columns"):
        return X.with_columns(X.to_series(column)[order])
    moved = np.array(X)
    moved[:, column] = moved[order, column]
    return moved


def _means(sums: Array, squares: Array, counts: Array, unit: Array) -> tuple[Array, Array]:
    """Means and root mean squares, (c, d, p), in units of the inputs; NaN without any row."""
    number = np.where(counts > 0.0, counts, np.nan)[:, None]
    effect, size = unit * sums / number, np.abs(unit) * np.sqrt(squares / number)
    return np.swapaxes(effect, 1, 2), np.swapaxes(size, 1, 2)
