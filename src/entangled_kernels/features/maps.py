"""Feature maps of any kind: fitted, applied, and asked what they need and what they have found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..parameters import check_numeric_columns, naming_columns
from .column_widths import ColumnWidthFeatures
from .forest_features import ForestFeatures
from .kernel_features import EvidenceFeatures
from .target_processes import TargetProcessFeatures

__all__ = [
    "default_feature_maps",
    "fit_and_map",
    "fit_feature_map",
    "found_noise",
    "interpolates",
    "is_cross_fitted",
    "is_exact",
    "is_fitted",
    "knows_targets",
    "left_out_features",
    "map_features",
    "needs_targets",
    "noise_features",
    "refuse_in_batches",
    "suits",
    "takes_blanks",
    "warm_start",
]

# Maps whose search can go on from what another has found.
TUNED = (EvidenceFeatures, ColumnWidthFeatures, TargetProcessFeatures)
# Ranges of a column, beyond its training rows, that the automatic kernel maps tell apart.
REACH = 1.0
# With more targets than this, processes of their own would take longer than all other maps.
MOST_PROCESSES = 8
# Names of scikit-learn's kernels that are psd whatever their parameters.
PSD_KERNELS = ("rbf", "laplacian", "linear", "cosine")


def default_feature_maps(random_state: Any = None, *, streamed: bool = False) -> list[Any]:
    """The maps that ``feature_map="auto"`` tries.

    Those of streams have no reach, since later rows count too; no Gaussian widths, since rows in batches are
    not turned to their axes, and small alphas of kernels that decay so fast would lose digits; and no
    processes of single targets, whose features of training rows are the targets, since rows in batches only
    have features that a map gives new rows.
    """
    reach = None if streamed else REACH
    maps = [
        StandardScaler(),
        ColumnWidthFeatures("matern" if streamed else "gaussian", reach=reach, random_state=random_state),
        ForestFeatures(random_state=random_state),
        ColumnWidthFeatures("exponential", warp=True, reach=reach, random_state=random_state),
    ]
    if streamed:
        return maps
    own = TargetProcessFeatures(max_targets=MOST_PROCESSES, reach=reach, random_state=random_state)
    return [*maps, own]


def fit_feature_map(
    feature_map: Any, X: Any, targets: ArrayLike | None, sample_weight: ArrayLike | None
) -> Any:
    """A clone of the map, fitted with the targets and, where it takes them, the weights; None stays None.

    Targets may have blanks (NaN), and weights may be those of cells. Maps that do not say that they take
    blanks get the mean of the target in their place, and the largest weight of every row.
    """
    if feature_map is None:
        return None
    fitted = clone(feature_map)
    with naming_columns(X):
        measured = _targets_for(fitted, targets, sample_weight)
        return fitted.fit(X, measured, **_weights(fitted, sample_weight))


def fit_and_map(
    feature_map: Any, X: Any, targets: ArrayLike, sample_weight: ArrayLike | None, **checks: Any
) -> tuple[Any, Any]:
    """A fitted clone of the map, and the features of the rows that it was fitted on.

    They are what `map_features` gives, unless the map, or the last step of a pipeline, is ``cross_fitted``:
    then they come from its ``fit_transform``.
    """
    if not is_cross_fitted(feature_map):
        fitted = fit_feature_map(feature_map, X, targets, sample_weight)
        return fitted, map_features(fitted, X, **checks)
    fitted = clone(feature_map)
    with naming_columns(X):
        measured = _targets_for(fitted, targets, sample_weight)
        Phi = fitted.fit_transform(X, measured, **_weights(fitted, sample_weight))
        return fitted, _as_features(Phi, checks)


def knows_targets(feature_map: Any) -> bool:
    """Whether training rows have their targets for features, in which no error can be seen.

    So it is with a map, or a pipeline that ends with one, that can tell features of rows left out.
    """
    return hasattr(_last_step(feature_map), "left_out")


def left_out_features(
    feature_map: Any, X: Any, targets: ArrayLike, sample_weight: ArrayLike | None
) -> Any | None:
    """Features of the rows that a map was fitted on, each as if it were new, where the map can tell; or None.

    A map that `knows_targets` can, so that errors are judged on these features.
    """
    if not knows_targets(feature_map):
        return None
    last = _last_step(feature_map)
    rows = X if last is feature_map else feature_map[:-1].transform(X)
    measured = _targets_for(feature_map, targets, sample_weight)
    return last.left_out(rows, measured, **_weights(feature_map, sample_weight))


def noise_features(feature_map: Any, X: Any) -> tuple[Any, float | None]:
    """Features that models of nothing but noise are to be fitted on, and the ridge that goes with them.

    They are those of the map, with whatever ridge, unless it `knows_targets`: what its processes make of
    noise is not in their predictions, and one process with the mean of their kernels and noises stands for
    them.
    """
    if not knows_targets(feature_map):
        return map_features(feature_map, X), None
    last = _last_step(feature_map)
    rows = X if last is feature_map else feature_map[:-1].transform(X)
    return last.mean_features(rows), float(np.mean(last.noises_))


def refuse_in_batches(feature_map: Any) -> None:
    """Raise an error for a map that `knows_targets`, to be fitted on rows that come in batches.

    Of these the features of new rows are all there is, and of rows that it has seen they are far too good.
    """
    if knows_targets(feature_map):
        raise ValueError(
            f"feature_map must be one that rows in batches can be learned with, got "
            f"{type(_last_step(feature_map)).__name__}, which has the targets for features of training rows; "
            f"use fit, or give a map that was fitted on other rows"
        )


def suits(feature_map: Any, n_targets: int) -> bool:
    """Whether a map, or the last step of a pipeline, is to be tried with so many targets."""
    most = getattr(_last_step(feature_map), "max_targets", None)
    return most is None or 1 < n_targets <= most


def map_features(feature_map: Any, X: Any, **checks: Any) -> Any:
    """Features (n, m) of a fitted map, dense and of floating point; ``checks`` are those of `check_array`.

    With None the columns of X are the features.
    """
    with naming_columns(X):
        if feature_map is None:
            check_numeric_columns(X)
            return check_array(X, dtype=[np.float64, np.float32], input_name="X", **checks)
        return _as_features(feature_map.transform(X), checks)


def is_cross_fitted(feature_map: Any) -> bool:
    """Whether a transformer, or the last step of a pipeline, has other features for its training rows."""
    return bool(getattr(_last_step(feature_map), "cross_fitted", False))


def takes_blanks(feature_map: Any) -> bool:
    """Whether a transformer, or the last step of a pipeline, says that its targets may be NaN."""
    return bool(getattr(_last_step(feature_map), "takes_blanks", False))


def interpolates(feature_map: Any) -> bool:
    """Whether ridge on a transformer, or on the last step of a pipeline, may have any small alpha."""
    return bool(getattr(_last_step(feature_map), "interpolates", False))


def is_exact(feature_map: Any, n_rows: int) -> bool:
    """Whether a map gives the same kernel between so many rows whichever of them it is fitted on.

    Then kernel ridge predicts held-out rows alike, whether the map has seen them or not. Of an indefinite
    kernel `Nystroem` takes singular values, which depend on the rows, so only kernels that are psd count.
    """
    exact = type(feature_map) is Nystroem and feature_map.n_components >= n_rows
    return exact and feature_map.kernel in PSD_KERNELS and feature_map.kernel_params is None


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
    if isinstance(fitted, TUNED):
        return fitted.warm_start()
    if isinstance(_last_step(fitted), TUNED):
        started = clone(feature_map)
        started.steps[-1] = (started.steps[-1][0], _last_step(fitted).warm_start())
        return started
    return feature_map


def _last_step(feature_map: Any) -> Any:
    steps = getattr(feature_map, "steps", None)
    return feature_map if not steps else steps[-1][1]


def _weights(feature_map: Any, sample_weight: ArrayLike | None) -> dict[str, Any]:
    """Weights as an argument of ``fit``, of a map that takes them."""
    if sample_weight is None or not has_fit_parameter(feature_map, "sample_weight"):
        return {}
    weight = np.asarray(sample_weight)
    return {"sample_weight": weight.max(axis=1) if weight.ndim == 2 else sample_weight}


def _targets_for(
    feature_map: Any, targets: ArrayLike | None, sample_weight: ArrayLike | None
) -> ArrayLike | None:
    """Targets with the mean in the place of blanks, for a map that does not take these.

    Cells without weight are blanks, whatever they hold.
    """
    if targets is None:
        return None
    values = np.asarray(targets)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    if weight is not None and weight.ndim == 2 and not weight.all():
        weight = weight.reshape(values.shape)
        targets = values = np.where(weight > 0.0, values.astype(np.float64), np.nan)
    blank = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    if takes_blanks(feature_map) or not blank.any():
        return targets
    counts = np.maximum((~blank).sum(axis=0), 1)
    return np.where(blank, np.where(blank, 0.0, values).sum(axis=0) / counts, values)


def _as_features(Phi: Any, checks: dict[str, Any]) -> Any:
    Phi = Phi.toarray() if issparse(Phi) else Phi
    return check_array(Phi, dtype=[np.float64, np.float32], input_name="features", **checks)
