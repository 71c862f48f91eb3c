"""Features that are built on rows: which rows, and what makes their inner products those of the kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..linalg import Array, rank_tolerance

__all__ = ["inverse_root", "some_rows"]


def some_rows(n: int, limit: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Numbers of all rows where they are at most ``limit``, else of so many drawn at random, in order."""
    return np.arange(n) if n <= limit else np.sort(rng.choice(n, limit, replace=False))


def inverse_root(K: Array) -> Array:
    """K^-1/2, pseudo-inverse where K has no full rank: k(x, R) k(R, R)^-1/2 are features of rows x."""
    values, vectors = eigh(K)
    keep = values > rank_tolerance(len(values)) * max(values[-1], np.finfo(float).tiny)
    return np.asarray((vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T)
