"""Feature maps inside an estimator: any transformer, with the right checks of the rows around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import Tags, check_array, get_tags
from sklearn.utils.validation import validate_data

from ..features import FeatureMapTraits, fit_and_map, fit_feature_map, map_features
from ..linalg import Array
from ..parameters import (
    check_numeric_columns,
    check_range,
    naming_columns,
    validate_rows,
)

__all__ = ["FeatureMapMixin"]


class FeatureMapMixin:
    """Features phi(x) of a regressor with a parameter ``feature_map``, None for the columns themselves."""

    feature_map: Any
    feature_map_: Any

    def _given_map(self) -> Any:
        """The feature map to use, fitted or not, None for the columns themselves."""
        return self.feature_map

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        if hasattr(self.feature_map, "__sklearn_tags__"):
            tags.input_tags.sparse = get_tags(self.feature_map).input_tags.sparse
        return tags

    def _fit_map(
        self, feature_map: Any, X: Any, targets: Array, sample_weight: ArrayLike | None
    ) -> tuple[Any, Any]:
        """A feature map fitted on rows, whose columns and names become those of the estimator.

        Beside it the features of these rows, where they are not those that it gives new rows, else None.
        """
        if feature_map is None:
            return None, None
        self._check_columns(X)
        with refusing_sparse_rows(feature_map, X):
            if FeatureMapTraits.of(feature_map).cross_fitted:
                return fit_and_map(feature_map, X, targets, sample_weight, ensure_min_samples=2)
            return fit_feature_map(feature_map, X, targets, sample_weight), None

    def _training_features(self, feature_map: Any, X: Any, Phi: Any = None) -> Any:
        """Features (n, m) of the rows that the map was fitted on; ``Phi`` where they are known already."""
        if feature_map is None:
            check_numeric_columns(X)
            Phi = validate_rows(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        elif Phi is None:
            Phi = map_features(feature_map, X, ensure_min_samples=2)
        check_range("X" if feature_map is None else "the output of feature_map", Phi)
        return Phi

    def _check_batch(self, X: Any, *, reset: bool) -> Any:
        """Rows of a batch, of the columns and names of those before; as an array where they are features."""
        feature_map = self._given_map()
        if feature_map is None:
            check_numeric_columns(X)
            return validate_rows(self, X, reset=reset, dtype=[np.float64, np.float32])
        self._check_columns(X, reset=reset)
        maps = feature_map if isinstance(feature_map, list) else [feature_map]
        finite = "allow-nan" if all(FeatureMapTraits.of(own).takes_missing_inputs for own in maps) else True
        with naming_columns(X):
            check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=finite, input_name="X")
        return X

    def _check_columns(self, X: Any, *, reset: bool = True) -> None:
        """Take or check number and names of the columns of a table that only the feature map reads."""
        if isinstance(X, np.ndarray) and X.ndim != 2:
            check_array(X, dtype=None, ensure_all_finite=False)  # raises scikit-learn's own error
        validate_data(self, X, reset=reset, skip_check_array=True)

    def _features(self, X: Any) -> Any:
        """Features of new rows; finiteness is left to `_check_finite`, which looks at what came of them."""
        if self.feature_map_ is None:
            return validate_rows(
                self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False
            )
        self._check_columns(X, reset=False)
        return map_features(self.feature_map_, X, ensure_all_finite=False)

    def _check_finite(self, Phi: Any, result: Array, coef: Array) -> None:
        """Raise when a feature is not finite; every such feature that is used makes the result so too.

        A pass over the result is shorter than one over the features. A feature that no target uses may leave
        no trace in the result, so then the features are looked at.
        """
        if np.isfinite(result).all() and coef.any(axis=0).all():
            return
        name = "X" if self.feature_map_ is None else "features"
        with np.errstate(invalid="ignore", over="ignore"):
            check_array(Phi, dtype=[np.float64, np.float32], input_name=name)


@contextmanager
def refusing_sparse_rows(feature_map: Any, X: Any) -> Iterator[None]:
    """Turn the error of a map that takes no sparse rows into one that tells the way out."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not (issparse(X) and "sparse" in str(error).lower()):
            raise
        raise TypeError(
            f"X is sparse, and {type(feature_map).__name__} needs dense rows; use X.toarray(), or a "
            f"feature_map for sparse rows, such as MaxAbsScaler() ({error})"
        ) from error
