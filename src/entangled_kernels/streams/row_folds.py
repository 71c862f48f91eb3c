"""Folds of rows that arrive in any order and any place: a row's own contents tell where it belongs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

__all__ = ["block_ends", "group_folds", "row_folds", "sampling_keys"]

Hashes = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_folds(X: Any, Y: NDArray[Any], n_folds: int) -> NDArray[np.intp]:
    """Fold of every row, 0 to n_folds - 1, by a hash of its values.

    Depends on nothing but the row: not on its neighbours, its place, the machine, or whether it is stored as
    float32 or float64. Rows that are equal share a fold, so none is held out from its own copy.

    Parameters
    ----------
    X : array, sparse array or data frame of shape (n, d)
        Numbers or text.
    Y : ndarray of shape (n, p)
    n_folds : int

    Notes
    -----
    The values' bits are mixed with the number of their column (the finaliser of splitmix64) and added,
    wrapping around; zeros count as nothing, so that sparse rows have the folds of dense ones.

    Time n (d + p).

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.streams import row_folds
    >>> X, Y = np.arange(12.0).reshape(6, 2), np.ones((6, 1))
    >>> bool((row_folds(X[::-1], Y, 3) == row_folds(X, Y, 3)[::-1]).all())
    True
    """
    return _folds(_hash_table(Y, 0) + _hash_table(X, Y.shape[1]), n_folds)


def group_folds(groups: NDArray[Any], n_folds: int) -> NDArray[np.intp]:
    """Fold of every row, 0 to n_folds - 1, by a hash of its group, a number or a text.

    All rows of a group share a fold, wherever and whenever they come.

    Notes
    -----
    Groups fall into folds as if by throws of a die: of few groups some folds get none, and the others are
    uneven.

    Time n.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array(["a", "b", "a", "c"])
    >>> folds = group_folds(groups, 5)
    >>> bool(folds[0] == folds[2] == group_folds(groups[2:], 5)[0])
    True
    """
    return _folds(_hash_column(groups, 0) + _GOLDEN, n_folds)


def block_ends(n_rows: int, n_blocks: int) -> NDArray[np.intp]:
    """Ends of blocks of rows in their order, as in `TimeSeriesSplit`: the first has what is left over.

    Examples
    --------
    >>> block_ends(11, 3).tolist()
    [5, 8, 11]
    """
    if n_rows < 2 * n_blocks:
        raise ValueError(f"{n_blocks} blocks of rows need at least {2 * n_blocks} rows, got {n_rows}")
    return np.asarray(n_rows - (n_rows // n_blocks) * np.arange(n_blocks - 1, -1, -1))


def sampling_keys(X: Any, Y: NDArray[Any]) -> Hashes:
    """Keys of rows, by which they are drawn into a sample, independent of their folds.

    Arrays of numbers take one product of their bits with odd numbers for each row, mixed once, which is a
    tenth of the time of `row_folds`; other tables take the hashes that it rests on.
    """
    plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    inputs = _multiplied(X, Y.shape[1]) if plain else _hash_table(X, Y.shape[1])
    return _mix(_multiplied(np.where(np.isnan(Y), np.nan, Y), 0) + inputs + _GOLDEN)


def _multiplied(table: NDArray[Any], first: int) -> Hashes:
    """Sum over columns of the bits of the values times an odd number for each column."""
    # Zero has two signs.
    bits: Hashes = (np.ascontiguousarray(table, dtype=np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(29)
    places = np.arange(first + 1, first + 1 + table.shape[1], dtype=np.uint64)
    return np.asarray(np.einsum("nd,d->n", bits, _mix(places * _GOLDEN) | np.uint64(1)))


def _hash_table(table: Any, first: int) -> Hashes:
    """Sum over columns of the hashes of the values; columns are numbered from ``first``."""
    if issparse(table):
        rows = csr_array(table)
        hashes = _hash_numbers(rows.data, rows.indices + first)
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        return np.asarray(ends[rows.indptr[1:]] - ends[rows.indptr[:-1]])
    if hasattr(table, "columns"):
        columns = [np.asarray(table[name]) for name in table.columns]
    else:
        # A list of texts is one column.
        columns = list(np.atleast_2d(np.asarray(table).T))
    total = np.zeros(len(columns[0]) if columns else 0, dtype=np.uint64)
    for place, column in enumerate(columns, start=first):
        total += _hash_column(column, place)
    return total


def _hash_column(column: NDArray[Any], place: int) -> Hashes:
    return _hash_numbers(column, place) if column.dtype.kind in "biuf" else _hash_text(column, place)


def _hash_numbers(values: Any, place: Any) -> Hashes:
    # Zero has two signs, and what is no number many forms; a zero counts as nothing.
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    # An array, not a number: that wraps around without a warning.
    shift = (np.atleast_1d(place).astype(np.uint64) + np.uint64(1)) * _GOLDEN
    return np.where(numbers == 0.0, np.uint64(0), _mix(bits + shift))


def _hash_text(values: Any, place: int) -> Hashes:
    distinct, where = np.unique([str(value) for value in values], return_inverse=True)
    hashes = [
        int.from_bytes(hashlib.blake2b(f"{place} {text}".encode(), digest_size=8).digest(), "little")
        for text in distinct
    ]
    return np.array(hashes, dtype=np.uint64)[where.reshape(-1)]


def _folds(hashes: Hashes, n_folds: int) -> NDArray[np.intp]:
    return (_mix(hashes) % np.uint64(n_folds)).astype(np.intp)


def _mix(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(hashes ^ (hashes >> np.uint64(31)))
