"""Which targets of a row are known: rows grouped by that, and pairs of known and other targets to try."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..linalg import Index

__all__ = ["group_patterns", "random_halves"]

Mask = NDArray[np.bool_]


def group_patterns(known: Mask) -> Iterator[tuple[Index, Mask]]:
    """Rows (their places) that have the same targets known, and which these are.

    Examples
    --------
    >>> known = np.array([[True, False], [False, False], [True, False]])
    >>> [(rows.tolist(), pattern.tolist()) for rows, pattern in group_patterns(known)]
    [([1], [False, False]), ([0, 2], [True, False])]
    """
    n, p = known.shape
    if n == 0:
        return
    if p == 0 or (known == known[0]).all():
        yield np.arange(n), known[0]
        return
    packed = np.ascontiguousarray(np.packbits(known, axis=1))
    _, group = np.unique(packed.view([("", packed.dtype)] * packed.shape[1]), return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1]):
        yield rows, known[rows[0]]


def random_halves(n_outputs: int, n_pairs: int, rng: np.random.Generator) -> list[Mask]:
    """Masks of half of the targets, each followed by its complement."""
    masks = []
    for _ in range(n_pairs):
        half = np.zeros(n_outputs, dtype=bool)
        half[rng.permutation(n_outputs)[: n_outputs // 2]] = True
        masks += [half, ~half]
    return masks
