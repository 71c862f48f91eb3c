"""What is told of inputs: their effect on every target, its size, and the size that noise would have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array, Index

__all__ = ["Explanation", "noise_level", "overall"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """How predictions of every target change with every input.

    Attributes
    ----------
    inputs : list of str
        Measured targets come after the inputs of the model, with "(measured)" behind their names.
    targets : list of str
    effect : ndarray of shape (inputs, targets)
        Mean change of the prediction, in units of the target, as the input grows by its standard deviation;
        NaN for an input that is no number, and for a target that is measured in all rows.
    size : ndarray of shape (inputs, targets)
        Root mean square of that change over the rows: an input that raises some rows and lowers others has a
        size, though its effect may be zero. It is never less than the absolute effect.
    noise : ndarray of shape (inputs, targets)
        The size that the input would have, but for one time in twenty, if targets were nothing but the errors
        of held-out rows; NaN where nothing is known of these.
    importance_noise : ndarray of shape (inputs,)
        The `importance` that it would have then.
    target_deviation : ndarray of shape (targets,)
        Standard deviation of every target over the training rows.
    method : {"gradient", "permutation"}

    Examples
    --------
    >>> import numpy as np
    >>> found = Explanation(["a", "b"], ["y"], np.array([[0.1], [-2.0]]), np.array([[0.1], [2.0]]),
    ...                     np.array([[0.2], [0.2]]), np.array([0.05, 0.05]), np.array([4.0]), "gradient")
    >>> found.importance, found.order.tolist(), found.beyond_noise[:, 0]
    (array([0.025, 0.5  ]), [1, 0], array([False,  True]))
    """

    inputs: list[str]
    targets: list[str]
    effect: Array
    size: Array
    noise: Array
    importance_noise: Array
    target_deviation: Array
    method: str

    @property
    def importance(self) -> Array:
        """Root mean square over targets of the size in deviations of the target, one for each input."""
        return overall(self.size, self.target_deviation)

    @property
    def order(self) -> Index:
        """Places of the inputs, the most important first."""
        return np.argsort(-self.importance, kind="stable")

    @property
    def beyond_noise(self) -> NDArray[np.bool_]:
        """Whether a size is larger than that of noise, (inputs, targets)."""
        return np.asarray(self.size > self.noise)

    @property
    def important(self) -> NDArray[np.bool_]:
        """Whether the importance of an input is larger than that of noise."""
        return np.asarray(self.importance > self.importance_noise)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for every input and target, the most important input first."""
        import pandas as pd

        order, p = self.order, len(self.targets)
        return pd.DataFrame(
            {
                "input": np.repeat([self.inputs[place] for place in order], p),
                "target": self.targets * len(order),
                **{name: getattr(self, name)[order].ravel() for name in ("effect", "size", "noise")},
            }
        )


def overall(sizes: Array, deviation: Array) -> Array:
    """Root mean square over targets, the last axis, of sizes in deviations of the targets.

    Targets that do not vary, and sizes that are NaN, are left out.
    """
    relative = sizes / np.where(deviation > 0.0, deviation, np.nan)
    known = np.isfinite(relative)
    squares = np.where(known, relative, 0.0) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=-1) / np.maximum(known.sum(axis=-1), 1)))


def noise_level(draws: Array) -> Array:
    """What sizes of noise (draws, ...) stay below but for one in twenty: mean and two standard deviations."""
    return np.asarray(draws.mean(axis=0) + 2.0 * draws.std(axis=0))
