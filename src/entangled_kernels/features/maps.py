"""Feature maps of any kind: fitted, applied, and asked what they need and what they have found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..parameters import check_numeric_columns
from .kernel_features import EvidenceFeatures, GaussianFeatures

__all__ = [
    "default_feature_maps",
    "fit_feature_map",
    "found_noise",
    "is_fitted",
    "map_features",
    "needs_targets",
    "takes_blanks",
    "warm_start",
]


def default_feature_maps(random_state: Any = None) -> list[Any]:
    """The maps that ``feature_map="auto"`` tries."""
    return [
        StandardScaler(),
        EvidenceFeatures(random_state=random_state),
        GaussianFeatures(random_state=random_state),
    ]


def fit_feature_map(feature_map: Any, X: Any, targets: ArrayLike, sample_weight: ArrayLike | None) -> Any:
    """A clone of the map, fitted with the targets and, where it takes them, the weights; None stays None.

    Targets may have blanks (NaN), and weights may be those of cells. Maps that do not say that they take
    blanks get the mean of the target in their place, and the largest weight of every row.
    """
    if feature_map is None:
        return None
    fitted = clone(feature_map)
    weighted = sample_weight is not None and has_fit_parameter(fitted, "sample_weight")
    if sample_weight is not None and np.ndim(sample_weight) == 2:
        sample_weight = np.max(sample_weight, axis=1)
    if not takes_blanks(fitted):
        targets = _filled_with_means(np.asarray(targets, dtype=np.float64))
    return fitted.fit(X, targets, **({"sample_weight": sample_weight} if weighted else {}))


def takes_blanks(feature_map: Any) -> bool:
    """Whether a transformer, or the last step of a pipeline, says that its targets may be NaN."""
    return bool(getattr(_last_step(feature_map), "takes_blanks", False))


def _filled_with_means(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    blank = np.isnan(targets)
    if not blank.any():
        return targets
    counts = np.maximum((~blank).sum(axis=0), 1)
    return np.where(blank, np.where(blank, 0.0, targets).sum(axis=0) / counts, targets)


def map_features(feature_map: Any, X: Any, **checks: Any) -> Any:
    """Features (n, m) of a fitted map, dense and of floating point; ``checks`` are those of `check_array`.

    With None the columns of X are the features.
    """
    if feature_map is None:
        check_numeric_columns(X)
        return check_array(X, dtype=[np.float64, np.float32], input_name="X", **checks)
    Phi = feature_map.transform(X)
    Phi = Phi.toarray() if issparse(Phi) else Phi
    return check_array(Phi, dtype=[np.float64, np.float32], input_name="features", **checks)


def is_fitted(feature_map: Any) -> bool:
    """Whether a map can be used as it is; None can."""
    try:
        check_is_fitted(feature_map)
    except NotFittedError:
        return False
    except TypeError:
        return feature_map is None
    return True


def needs_targets(feature_map: Any) -> bool:
    """Whether a transformer, or a step of a pipeline, cannot be fitted without the targets."""
    steps = getattr(feature_map, "steps", None)
    if steps is not None:
        return any(needs_targets(step) for _, step in steps)
    return hasattr(feature_map, "__sklearn_tags__") and bool(get_tags(feature_map).target_tags.required)


def found_noise(feature_map: Any) -> float | None:
    """Variance of the noise that a fitted map, or the last step of a pipeline, has found, if it has."""
    noise: float | None = getattr(_last_step(feature_map), "noise_", None)
    return noise


def warm_start(feature_map: Any, fitted: Any) -> Any:
    """The map, not fitted, with its search for a kernel starting from what a fitted one has found."""
    if isinstance(fitted, EvidenceFeatures):
        return fitted.warm_start()
    if isinstance(_last_step(fitted), EvidenceFeatures):
        started = clone(feature_map)
        started.steps[-1] = (started.steps[-1][0], _last_step(fitted).warm_start())
        return started
    return feature_map


def _last_step(feature_map: Any) -> Any:
    steps = getattr(feature_map, "steps", None)
    return feature_map if not steps else steps[-1][1]
