"""What a regressor does with targets: take them, keep their names, give predictions back alike."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from ..linalg import Array
from ..parameters import check_choice
from .cells import check_cells, check_every_target_measured, check_targets, measured_rows, score_cells
from .frames import CONTAINERS, target_names, to_container

__all__ = ["TargetsMixin"]


class TargetsMixin:
    """Targets in one or two dimensions, as arrays or frames, and predictions in the same form."""

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of each target over its measured cells, averaged over targets.

        Parameters
        ----------
        X : array-like or data frame of shape (t, d)
        y : array-like or data frame of shape (t, p) or (t,)
            NaN is a blank. A target with fewer than two measured cells has no R^2, and is left out.
        sample_weight : number or array-like of shape (t,) or (t, p), optional

        Returns
        -------
        float
            `sklearn.metrics.r2_score` where nothing is blank.
        """
        return score_cells(y, self.predict(X), sample_weight)  # type: ignore[attr-defined]

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
            self._sklearn_output_config = {**getattr(self, "_sklearn_output_config", {}), "predict": predict}
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
        if reset:
            self._one_dimensional = targets.ndim == 1
            vars(self).pop("target_names_", None)
            if names is not None:
                self.target_names_ = names
        else:
            self._check_alike(targets, names)
        return targets

    def _measured(
        self, rows: Any, targets: Array, sample_weight: Any
    ) -> tuple[NDArray[np.bool_], Array, Array | None]:
        """Which rows are not blank, and their targets (n, p) and weights, (n,), (n, p) or None."""
        names = getattr(self, "target_names_", None)
        Y, weights = check_cells(targets, sample_weight, names)
        check_consistent_length(rows, Y)
        if weights is not None and weights.ndim == 1 and not np.isnan(Y).any():
            # Complete rows of weight zero are kept: no row is blank, and none counts that did not before.
            check_every_target_measured(Y, weights, names)
            return np.ones(len(Y), dtype=bool), Y, weights
        return measured_rows(Y, weights, names)

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
        return to_container(self._container(), self._targets_like_y(values), names, X)

    def _container(self) -> str:
        """The container that `set_output` asked for."""
        return str(getattr(self, "_sklearn_output_config", {}).get("predict", "default"))

    def _output_names(self, n_outputs: int) -> list[str]:
        if hasattr(self, "target_names_"):
            return [str(name) for name in self.target_names_]
        return [f"output{o}" for o in range(n_outputs)]
