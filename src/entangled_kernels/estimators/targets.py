"""What a regressor does with targets: take them, keep their names, give predictions back alike."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..parameters import check_choice
from .cells import check_targets
from .frames import CONTAINERS, target_names, to_container

__all__ = ["TargetsMixin"]

Array = NDArray[np.float64]


class TargetsMixin:
    """Targets in one or two dimensions, as arrays or frames, and predictions in the same form."""

    def set_output(self, *, predict: str | None = None) -> Self:
        """Choose the container that `predict` returns.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"} or None
            None leaves the choice as it is.
        """
        if predict is not None:
            check_choice("predict", predict, CONTAINERS)
            # scikit-learn's clone copies this dictionary, so the choice survives cross-validation.
            config = getattr(self, "_sklearn_output_config", {})
            self._sklearn_output_config = {**config, "predict": predict}
        return self

    def _take_targets(self, y: Any, *, reset: bool = True, blanks: bool = False) -> Array:
        """Targets as they are, one- or two-dimensional, with their names kept, or held to those kept.

        With ``blanks`` a NaN is a target that was not measured.
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        names = target_names(y)
        targets = check_targets(y, names, blanks=blanks)
        if not reset:
            self._check_alike(targets, names)
            return np.asarray(targets)
        self._one_dimensional = targets.ndim == 1
        if names is not None:
            self.target_names_ = names
        elif hasattr(self, "target_names_"):
            del self.target_names_
        return np.asarray(targets)

    def _targets_like_y(self, Y: Array) -> Array:
        """Targets (n, p) in as many dimensions as y had."""
        return Y[:, 0] if self._one_dimensional else Y

    def _check_alike(self, targets: Array, names: NDArray[np.object_] | None) -> None:
        """Raise unless targets have the dimensions and names of those seen before."""
        if (targets.ndim == 1) != self._one_dimensional:
            raise ValueError(
                f"y must have as many dimensions as before, {1 if self._one_dimensional else 2}, "
                f"got {targets.ndim}"
            )
        known = getattr(self, "target_names_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(f"y must have the columns it had before, {list(known)}, got {list(names)}")

    def _finish(self, values: Array, X: Any) -> Any:
        """One-dimensional where y was, in the container asked for."""
        names = self._output_names(values.shape[1])
        return to_container(self._container(), values[:, 0] if self._one_dimensional else values, names, X)

    def _container(self) -> str:
        """The container that `set_output` asked for."""
        return str(getattr(self, "_sklearn_output_config", {}).get("predict", "default"))

    def _output_names(self, n_outputs: int) -> list[str]:
        if hasattr(self, "target_names_"):
            return [str(name) for name in self.target_names_]
        return [f"output{o}" for o in range(n_outputs)]
