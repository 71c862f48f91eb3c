"""Classes of samples, from labels or from one target per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["class_labels", "kernel_names", "one_per_class", "output_names", "shortened"]


def class_labels(y: Any, names: list[str] | None = None) -> NDArray[Any]:
    """Label of each sample, from labels (n,) or from targets (n, p) that are high in one column each.

    Examples
    --------
    >>> class_labels([[1, -1], [-1, 1], [1, -1]])
    array([0, 1, 0])
    """
    array = np.asarray(y)
    if array.ndim == 1:
        return array
    if not one_per_class(array):
        raise ValueError(
            "y must hold one label per sample, or one column per class with a single high value in each row; "
            f"got shape {array.shape} of other values. Pass the labels, or y=None."
        )
    places = array.argmax(axis=1)
    return np.asarray(places if names is None else np.asarray(names)[places])


def one_per_class(Y: NDArray[Any]) -> bool:
    """Whether targets (n, p) take two values, the higher one in exactly one column of each row."""
    if Y.ndim != 2 or Y.shape[1] < 2 or Y.dtype.kind not in "biuf":
        return False
    values = np.unique(Y)
    return len(values) == 2 and bool(((values[1] == Y).sum(axis=1) == 1).all())


def kernel_names(estimator: Any, n_outputs: int) -> Any:
    """Names of the targets of a model; None where its kernel has other outputs, those of a transform."""
    names = getattr(estimator, "target_names_", None)
    return None if names is None or len(names) != n_outputs else names


def output_names(names: Any, n_outputs: int) -> list[str]:
    """Names of the outputs as text; numbered from 0 when there are none."""
    if names is None:
        return [str(output) for output in range(n_outputs)]
    words = [str(name) for name in names]
    if len(words) != n_outputs:
        raise ValueError(f"names must hold {n_outputs} names, one per output, got {len(words)}")
    return words


def shortened(name: str, length: int) -> str:
    """A name of at most so many letters, with a sign where some are left out.

    Examples
    --------
    >>> shortened("strength of concrete", 12)
    'strength of…'
    """
    return name if len(name) <= length else name[: length - 1].rstrip() + "…"
