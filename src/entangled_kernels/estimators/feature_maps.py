"""Feature maps inside an estimator: any transformer, fitted and applied with the right checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import Tags, check_array, get_tags
from sklearn.utils.validation import has_fit_parameter, validate_data

__all__ = ["FeatureMapMixin", "check_numbers"]

Array = NDArray[np.float64]


class FeatureMapMixin:
    """Features phi(x) of a regressor with a parameter ``feature_map``, None for the columns themselves."""

    feature_map: Any
    coef_: Any

    def _given_map(self) -> Any:
        """The feature map to use, fitted or not, None for the columns themselves."""
        return self.feature_map

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        if hasattr(self.feature_map, "__sklearn_tags__"):
            tags.input_tags.sparse = get_tags(self.feature_map).input_tags.sparse
        return tags

    def _check_feature_map(self) -> None:
        if self.feature_map is not None and not hasattr(self.feature_map, "transform"):
            raise TypeError(
                f"feature_map must be None or a transformer with fit and transform, got {self.feature_map!r}"
            )

    def _fit_features(self, X: Any, targets: Array, sample_weight: ArrayLike | None) -> Any:
        self._fit_map(X, targets, sample_weight)
        return self._training_features(X)

    def _training_features(self, X: Any) -> Any:
        """Features (n, m) of the rows that the map was fitted on."""
        if self.feature_map_ is None:
            check_numbers(X)
            return validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        return _dense_features(self.feature_map_.transform(X), ensure_min_samples=2)

    def _fit_map(self, X: Any, targets: Array, sample_weight: ArrayLike | None) -> None:
        if self.feature_map is None:
            self.feature_map_ = None
            return
        _check_table(X)
        validate_data(self, X, skip_check_array=True)
        feature_map = clone(self.feature_map)
        weighted = sample_weight is not None and has_fit_parameter(feature_map, "sample_weight")
        weights = {"sample_weight": sample_weight} if weighted else {}
        self.feature_map_ = feature_map.fit(X, targets, **weights)

    def _check_batch(self, X: Any, *, reset: bool) -> Any:
        """Rows of a batch, of the columns and names of those before; as an array where they are features."""
        feature_map = self._given_map()
        if feature_map is None:
            check_numbers(X)
            return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        _check_table(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        lenient = hasattr(feature_map, "transform") and get_tags(feature_map).input_tags.allow_nan
        finite = "allow-nan" if lenient else True
        check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=finite, input_name="X")
        return X

    def _batch_features(self, X: Any) -> Any:
        """Features (n, m) of a batch that was checked, finite."""
        return X if self.feature_map_ is None else _dense_features(self.feature_map_.transform(X))

    def _features(self, X: Any) -> Any:
        """Features of new rows; finiteness is left to `_check_finite`, which looks at what came of them."""
        if self.feature_map_ is None:
            return validate_data(
                self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False
            )
        _check_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return _dense_features(self.feature_map_.transform(X), ensure_all_finite=False)

    def _check_finite(self, Phi: Any, result: Array) -> None:
        """Raise when a feature is not finite; every such feature that is used makes the result so too.

        A pass over the result is shorter than one over the features. A feature that no target uses may leave
        no trace in the result, so then the features are looked at.
        """
        if np.isfinite(result).all() and self.coef_.any(axis=0).all():
            return
        name = "X" if self.feature_map_ is None else "features"
        with np.errstate(invalid="ignore", over="ignore"):
            check_array(Phi, dtype=[np.float64, np.float32], input_name=name)


def _check_table(X: Any) -> None:
    """Raise scikit-learn's error for an array that is no table; its contents are the map's affair."""
    if isinstance(X, np.ndarray) and X.ndim != 2:
        check_array(X, dtype=None, ensure_all_finite=False)


def check_numbers(X: Any) -> None:
    """Name the columns of a data frame that hold text; scikit-learn's own error names a value."""
    if not hasattr(X, "columns"):
        return
    # Only columns of objects or of a text type can hold it; numbers are not looked at one by one.
    kinds = {name: np.asarray(X[name][:1]).dtype.kind for name in X.columns}
    text = [
        name
        for name, kind in kinds.items()
        if kind in "OUST" and any(isinstance(value, str) for value in X[name])
    ]
    if text:
        raise ValueError(
            f"X must hold numbers, got text in {', '.join(map(repr, text))}; leave these columns out, or "
            f"encode them with a ColumnTransformer as feature_map"
        )


def _dense_features(Phi: Any, **checks: Any) -> Any:
    Phi = Phi.toarray() if issparse(Phi) else Phi
    return check_array(Phi, dtype=[np.float64, np.float32], input_name="features", **checks)
