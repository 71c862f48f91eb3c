"""Feature maps of any kind: their traits, fitting and applying them, and the automatic maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..parameters import check_numeric_columns, naming_columns
from .forest import ForestFeatures
from .kernel_maps import ColumnWidthFeatures
from .target_processes import TargetProcessFeatures

__all__ = [
    "FeatureMapTraits",
    "default_feature_maps",
    "fit_and_map",
    "fit_feature_map",
    "is_fitted",
    "map_features",
    "warm_start",
]

# The automatic kernel maps clip new rows at this many ranges of a column beyond the training rows.
REACH = 1.0
# With more targets than this, a process for each takes longer than all other maps together.
MOST_PROCESSES = 8
# With more inputs than this there is one width for all columns, and powers of columns and a process
# for every target are left out: the rows do not determine the parameters of single columns.
MOST_INPUTS = 200
# Names of scikit-learn's kernels that are psd whatever their parameters.
PSD_KERNELS = ("rbf", "laplacian", "linear", "cosine")


@dataclass(frozen=True)
class FeatureMapTraits:
    """Needs and limits of a feature map, and what it learned from the training rows.

    Attributes
    ----------
    needs_targets : bool
        The map cannot be fitted without targets.
    takes_missing_targets : bool
        Targets may be NaN in ``fit``; other maps get the mean of a target for a missing value.
    takes_missing_inputs : bool
        Inputs may be NaN.
    cross_fitted : bool
        Features of the training rows come from ``fit_transform``, which has for every row what the
        map would give if it had not seen the row; those of new rows come from ``transform``.
    interpolates : bool
        Ridge on the features works with any small alpha.
    exact_rows : int
        With at most this many rows, the kernel between any rows is the same whichever rows the map
        was fitted on. Then held-out rows need no map of their own.
    noise : float or None
        Variance of the noise, in units of the variance of a target, that a fitted map has
        estimated.
    max_targets : int or None
        A search among several maps leaves this one out if there are more targets, or only one.
    max_inputs : int or None
        A search among several maps leaves this one out if there are more inputs.
    tuned : bool
        The map has tuned parameters, from which `warm_start` continues.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from entangled_kernels import EvidenceFeatures
    >>> traits = FeatureMapTraits.of(make_pipeline(StandardScaler(), EvidenceFeatures()))
    >>> traits.needs_targets, traits.tuned, traits.cross_fitted
    (True, True, False)
    """

    needs_targets: bool = False
    takes_missing_targets: bool = False
    takes_missing_inputs: bool = False
    cross_fitted: bool = False
    interpolates: bool = False
    exact_rows: int = 0
    noise: float | None = None
    max_targets: int | None = None
    max_inputs: int | None = None
    tuned: bool = False

    @classmethod
    def of(cls, feature_map: Any) -> Self:
        """Traits of a transformer, of None (the columns themselves), or of combined transformers.

        The first step of a pipeline reads the inputs, and the last step decides everything else;
        all parts of a union, or of a column transformer, have to accept what it is given.
        """
        if isinstance(feature_map, Pipeline):
            steps = [cls.of(step) for _, step in feature_map.steps]
            last = steps[-1]
            return cls(
                needs_targets=any(step.needs_targets for step in steps),
                takes_missing_targets=last.takes_missing_targets,
                takes_missing_inputs=steps[0].takes_missing_inputs,
                cross_fitted=any(step.cross_fitted for step in steps),
                interpolates=last.interpolates,
                noise=last.noise,
                max_targets=last.max_targets,
                max_inputs=steps[0].max_inputs,
                tuned=last.tuned,
            )
        if isinstance(feature_map, FeatureUnion | ColumnTransformer):
            parts = [cls.of(part) for part in _parallel_parts(feature_map)]
            return cls(
                needs_targets=any(part.needs_targets for part in parts),
                takes_missing_targets=all(part.takes_missing_targets for part in parts),
                takes_missing_inputs=all(part.takes_missing_inputs for part in parts),
                cross_fitted=any(part.cross_fitted for part in parts),
                interpolates=any(part.interpolates for part in parts),
            )
        if isinstance(feature_map, FrozenEstimator):
            # It is never fitted again, though its attributes are those of the map inside.
            inner = cls.of(feature_map.estimator)
            return replace(inner, needs_targets=False, cross_fitted=False, tuned=False)
        if not hasattr(feature_map, "transform"):
            return cls()
        tags = get_tags(feature_map) if hasattr(feature_map, "__sklearn_tags__") else None
        psd = type(feature_map) is Nystroem and feature_map.kernel in PSD_KERNELS
        return cls(
            needs_targets=tags is not None and bool(tags.target_tags.required),
            takes_missing_targets=bool(getattr(feature_map, "takes_missing_targets", False)),
            takes_missing_inputs=tags is not None and bool(tags.input_tags.allow_nan),
            cross_fitted=bool(getattr(feature_map, "cross_fitted", False)),
            interpolates=bool(getattr(feature_map, "interpolates", False)),
            # `Nystroem` takes singular values, which of an indefinite kernel depend on the rows.
            exact_rows=feature_map.n_components if psd and feature_map.kernel_params is None else 0,
            noise=getattr(feature_map, "noise_", None),
            max_targets=getattr(feature_map, "max_targets", None),
            max_inputs=getattr(feature_map, "max_inputs", None),
            tuned=hasattr(feature_map, "warm_start") and callable(feature_map.warm_start),
        )

    def suits(self, n_targets: int, n_inputs: int) -> bool:
        """Whether a search among several maps tries this one with these numbers of targets and inputs."""
        few_targets = self.max_targets is None or 1 < n_targets <= self.max_targets
        return few_targets and (self.max_inputs is None or n_inputs <= self.max_inputs)


def default_feature_maps(random_state: Any = None, *, streamed: bool = False) -> list[Any]:
    """The maps that ``feature_map="auto"`` tries.

    Maps of streams have no ``reach``, since later rows count too. They have no Gaussian widths
    either, since small alphas lose digits with kernels that decay so fast. `TargetProcessFeatures`
    are left out of streams, since the features of the rows that it was fitted on need all these
    rows at once.
    """
    reach = None if streamed else REACH
    limits = {"reach": reach, "random_state": random_state}
    maps = [
        StandardScaler(),
        ColumnWidthFeatures("matern" if streamed else "gaussian", **limits),
        ForestFeatures(random_state=random_state),
        ColumnWidthFeatures("exponential", warp=True, max_inputs=MOST_INPUTS, **limits),
    ]
    if streamed:
        return maps
    return [
        *maps,
        TargetProcessFeatures(max_targets=MOST_PROCESSES, max_inputs=MOST_INPUTS, **limits),
    ]


def fit_feature_map(
    feature_map: Any, X: Any, targets: ArrayLike | None, sample_weight: ArrayLike | None
) -> Any:
    """A clone of the map, fitted with targets and, if it takes them, weights; None stays None.

    Targets may be missing (NaN), and there may be a weight for every target of every row. A map
    that does not take missing targets gets the mean of a target instead, and the largest weight of
    every row.
    """
    if feature_map is None:
        return None
    fitted = clone(feature_map)
    with naming_columns(X, feature_map):
        Y, weights = _fit_arguments(fitted, targets, sample_weight)
        return fitted.fit(X, Y, **weights)


def fit_and_map(
    feature_map: Any, X: Any, targets: ArrayLike, sample_weight: ArrayLike | None, **checks: Any
) -> tuple[Any, Any]:
    """A fitted clone of the map, and the features of the rows that it was fitted on.

    The features are those of `map_features`, or of ``fit_transform`` if the map is
    ``cross_fitted``.
    """
    if not FeatureMapTraits.of(feature_map).cross_fitted:
        fitted = fit_feature_map(feature_map, X, targets, sample_weight)
        return fitted, map_features(fitted, X, **checks)
    fitted = clone(feature_map)
    with naming_columns(X, feature_map):
        Y, weights = _fit_arguments(fitted, targets, sample_weight)
        Phi = fitted.fit_transform(X, Y, **weights)
        return fitted, map_features(None, Phi.toarray() if issparse(Phi) else Phi, **checks)


def map_features(feature_map: Any, X: Any, **checks: Any) -> Any:
    """Features (n, m) of a fitted map, dense and of floating point; None gives the columns of X.

    ``checks`` are options of `check_array`.
    """
    with naming_columns(X):
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


def warm_start(feature_map: Any, fitted: Any) -> Any:
    """The map, not fitted, whose search for parameters starts from those of a fitted one."""
    if not FeatureMapTraits.of(fitted).tuned:
        return feature_map
    if not isinstance(fitted, Pipeline):
        return fitted.warm_start()
    started = clone(feature_map)
    started.steps[-1] = (started.steps[-1][0], fitted.steps[-1][1].warm_start())
    return started


def _parallel_parts(feature_map: FeatureUnion | ColumnTransformer) -> list[Any]:
    """Transformers that work side by side, without those that drop their columns."""
    if isinstance(feature_map, FeatureUnion):
        parts = [part for _, part in feature_map.transformer_list]
    else:
        parts = [part for _, part, _ in feature_map.transformers] + [feature_map.remainder]
    return [part for part in parts if not (isinstance(part, str) and part == "drop")]


def _fit_arguments(
    feature_map: Any, targets: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[ArrayLike | None, dict[str, Any]]:
    """Targets for ``fit``, and weights of rows as an argument of it, if the map takes them.

    A target with a weight of zero is missing. Missing targets are replaced by the mean, if the map
    does not take them.
    """
    weight = None if sample_weight is None else np.asarray(sample_weight)
    weights: dict[str, Any] = {}
    if weight is not None and has_fit_parameter(feature_map, "sample_weight"):
        weights = {"sample_weight": weight.max(axis=1) if weight.ndim == 2 else sample_weight}
    if targets is None:
        return None, weights
    Y = np.asarray(targets)
    if weight is not None and weight.ndim == 2 and not weight.all():
        weight = weight.reshape(Y.shape)
        targets = Y = np.where(weight > 0.0, Y.astype(np.float64), np.nan)
    missing = np.isnan(Y) if Y.dtype.kind == "f" else np.zeros(Y.shape, dtype=bool)
    if missing.any() and not FeatureMapTraits.of(feature_map).takes_missing_targets:
        counts = np.maximum((~missing).sum(axis=0), 1)
        targets = np.where(missing, np.where(missing, 0.0, Y).sum(axis=0) / counts, Y)
    return targets, weights
