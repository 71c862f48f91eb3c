"""The base class of all regressors: targets with names and missing values, and containers of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _num_samples, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array, Index
from ..parameters import check_choice, check_weights

__all__ = [
    "CONTAINERS",
    "MultiTargetRegressor",
    "Targets",
    "check_columns",
    "check_costs",
    "check_given",
    "check_labels",
    "check_measured",
    "check_overflow",
    "check_targets",
    "check_weighted_targets",
    "drop_missing_rows",
    "route_groups",
    "score_targets",
    "target_names",
    "to_container",
    "unchanged_on_error",
]

CONTAINERS = ("default", "pandas", "polars")
Names = Sequence[str] | NDArray[np.object_] | None


class Targets(NamedTuple):
    """Targets (n, p) with NaN where missing, and weights: None, of rows (n,) or of single targets (n, p).

    Weights are None where all are one, and (n,) where the targets of each row weigh the same. They
    are zero where a target is missing; a target of weight zero may hold any number.
    """

    Y: Array
    weight: Array | None = None


class MultiTargetRegressor(MultiOutputMixin, RegressorMixin, DocLinkMixin, BaseEstimator):
    """Base class of the regressors: targets in one or two dimensions, as arrays or data frames.

    Predictions have the names of the targets, and the container that `set_output` asks for.
    """

    target_names_: NDArray[np.object_]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of each target over its measured values, averaged over targets.

        Parameters
        ----------
        X : array-like or data frame of shape (t, d)
        y : array-like or data frame of shape (t, p) or (t,)
            NaN where a target is missing. A target with fewer than two measured values is left out.
        sample_weight : number or array-like of shape (t,) or (t, p), optional

        Returns
        -------
        float
            `sklearn.metrics.r2_score` where nothing is missing.
        """
        return score_targets(y, self.predict(X), sample_weight)

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
            self._sklearn_output_config = {
                **getattr(self, "_sklearn_output_config", {}),
                "predict": predict,
            }
        return self

    def predict(self, X: Any) -> Any:
        """Predict the targets."""
        raise NotImplementedError

    def _take_targets(self, y: Any, *, reset: bool = True, missing: bool = False) -> Array:
        """Targets (n,) or (n, p), checked; their names are kept, or compared if not ``reset``.

        With ``missing`` a NaN is a missing target; otherwise it is an error.
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        names = target_names(y)
        targets = check_targets(y, names, missing=missing)
        if reset:
            self._one_dimensional = targets.ndim == 1
            if hasattr(self, "target_names_"):
                del self.target_names_
            if names is not None:
                self.target_names_ = names
            return targets
        if (targets.ndim == 1) != self._one_dimensional:
            raise ValueError(
                f"y must have as many dimensions as before, {1 if self._one_dimensional else 2}, "
                f"got {targets.ndim}"
            )
        known = getattr(self, "target_names_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(
                f"y must have the columns it had before, {list(known)}, got {list(names)}"
            )
        return targets

    def _measured(
        self, rows: Any, targets: Array, sample_weight: Any
    ) -> tuple[NDArray[np.bool_], Array, Array | None]:
        """A mask of the rows that have a measured target, and their targets (n, p) and weights."""
        names = getattr(self, "target_names_", None)
        Y, weight = check_weighted_targets(targets, sample_weight, names)
        check_consistent_length(rows, Y)
        if weight is not None and weight.ndim == 1 and not np.isnan(Y).any():
            # Complete rows of weight zero are kept: they change nothing.
            check_measured(Y, weight, names)
            return np.ones(len(Y), dtype=bool), Y, weight
        return drop_missing_rows(Y, weight, names)

    def _targets_like_y(self, Y: Array) -> Array:
        """Targets (n, p) in as many dimensions as y had."""
        return Y[:, 0] if self._one_dimensional else Y

    def _finish(self, values: Array, X: Any) -> Any:
        """Predictions in one dimension if y had one, in the container that was chosen."""
        check_overflow(values)
        kind = self._container()
        predicted = values[:, 0] if self._one_dimensional else values
        if kind == "default":
            return predicted
        return to_container(kind, predicted, self._output_names(values.shape[1]), X)

    def _container(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("predict", "default"))

    def _output_names(self, n_outputs: int) -> list[str]:
        if hasattr(self, "target_names_"):
            return list(self.target_names_)
        return list(map("output{}".format, range(n_outputs)))


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore all attributes of an estimator when there is an error."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_columns(estimator: Any, X: Any, *, reset: bool = True) -> None:
    """Keep or compare number and names of the columns of a table that only the feature map reads."""
    if isinstance(X, np.ndarray) and X.ndim != 2:
        check_array(X, dtype=None, ensure_all_finite=False)  # raises scikit-learn's own error
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (IndexError, KeyError):
        raise ValueError(f"X must be a table with rows and columns, got {X!r:.80}") from None


def check_overflow(values: Array) -> None:
    """Raise where predictions (n, p) are not finite."""
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise ValueError(
            f"the prediction of row {row + 1} of X overflows: its inputs are too far from those of "
            "training; check their units"
        )


def route_groups(estimator: Any, cv: Any) -> MetadataRouter:
    """Metadata routing of an estimator with a parameter ``cv``: groups go to a splitter that uses them.

    A nested cross-validation with groups needs no ``set_fit_request``: splitters such as
    `GroupKFold` request groups, and so does a number of folds, which hold whole groups if groups
    are given.
    """
    router = MetadataRouter(owner=type(estimator).__name__).add_self_request(estimator)
    splitter = GroupKFold() if cv is None or isinstance(cv, Integral) else cv
    if hasattr(splitter, "get_metadata_routing"):
        mapping = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=splitter, method_mapping=mapping)
    return router


def target_names(Y: Any) -> NDArray[np.object_] | None:
    """Column names of a data frame, the name of a series, None for anything else."""
    if hasattr(Y, "columns"):
        return np.array([str(name) for name in Y.columns], dtype=object)
    name = getattr(Y, "name", None)
    # polars names a series without a name "".
    named = name not in (None, "") and hasattr(Y, "dtype")
    return np.array([str(name)], dtype=object) if named else None


def to_container(kind: str, values: Array, names: list[str], X: Any) -> Any:
    """Values as a data frame, or a series if they are one-dimensional, with the index of X."""
    if kind == "pandas":
        import pandas as pd

        index = X.index if isinstance(X, pd.DataFrame) else None
        if values.ndim == 1:
            return pd.Series(values, index=index, name=names[0])
        return pd.DataFrame(values, index=index, columns=names)
    import polars as pl

    if values.ndim == 1:
        return pl.Series(names[0], values)
    return pl.DataFrame(values, schema=names, orient="row")


def check_targets(y: Any, names: Names = None, *, missing: bool = True) -> Array:
    """Targets (n,) or (n, p) as numbers, NaN where missing if that is allowed; errors name columns."""
    try:
        Y = check_array(
            y,
            ensure_2d=False,
            dtype=np.float64,
            ensure_min_features=0,
            ensure_all_finite=False,
            input_name="y",
        )
    except (TypeError, ValueError) as error:
        text = _text_columns(y)
        if len(text) == 0:
            raise
        raise ValueError(
            f"y must hold numbers, or NaN where missing, got text in {_name(text, names)}"
        ) from error
    if Y.ndim == 2 and Y.shape[1] == 0:
        raise ValueError(f"y must have at least one column, got shape {Y.shape}")
    if np.isfinite(Y).all():
        return np.asarray(Y)
    # scikit-learn's checks look for these words.
    need = "y must hold finite numbers" + (", or NaN where missing" if missing else "")
    columns = Y.reshape(len(Y), -1)
    if len(infinite := np.flatnonzero(np.isinf(columns).any(axis=0))):
        raise ValueError(
            f"Input y contains infinity or a value too large for dtype('float64') in "
            f"{_name(infinite, names)}; {need}"
        )
    if not missing:
        never = np.flatnonzero(np.isnan(columns).any(axis=0))
        raise ValueError(f"Input y contains NaN in {_name(never, names)}; {need}")
    return np.asarray(Y)


def check_weighted_targets(
    targets: Array, sample_weight: Any = None, names: Names = None
) -> Targets:
    """Targets that `check_targets` has checked, and their weights in the simplest form.

    Parameters
    ----------
    targets : ndarray of shape (n,) or (n, p)
        NaN where a target is missing.
    sample_weight : number, array-like or data frame of shape (n,) or (n, p), optional
        Not negative. A target of weight zero is missing.
    names : sequence of str, optional
        Names of the targets, for error messages.

    Examples
    --------
    >>> import numpy as np
    >>> check_weighted_targets(np.array([[1.0, np.nan], [2.0, 3.0]])).weight
    array([[1., 0.],
           [1., 1.]])
    >>> check_weighted_targets(np.array([1.0, np.nan, 2.0]), 3.0).weight
    array([3., 0., 3.])
    """
    Y = targets.reshape(len(targets), -1)
    missing = np.isnan(Y)
    if sample_weight is None and not missing.any():
        return Targets(Y)
    weight = _check_target_weights(sample_weight, Y.shape, names)
    if missing.any():
        weight = np.ones(Y.shape) if weight is None else weight
        weight = np.where(missing, 0.0, weight if weight.ndim == 2 else weight[:, None])
    return Targets(Y, simplify_weights(weight))


def simplify_weights(weight: Array | None) -> Array | None:
    """Weights of rows where all targets of a row weigh the same, None where all weights are one."""
    if weight is not None and weight.ndim == 2 and (weight == weight[:, :1]).all():
        weight = weight[:, 0].copy()
    return None if weight is None or (weight == 1.0).all() else weight


def check_measured(Y: Array, weight: Array | None, names: Names = None) -> None:
    """Raise unless every target has a measured value of positive weight; the error names the others."""
    if weight is None:
        return
    measured = (weight > 0.0).any(axis=0)
    if not measured.any():
        if np.isnan(Y).all():
            raise ValueError(
                "y must have a measured value in every column, got missing values (NaN) only"
            )
        raise ValueError(
            "sample_weight must be positive for at least one measured target, got zero weights only"
        )
    if not measured.all():
        never = np.flatnonzero(~measured)
        raise ValueError(
            f"y must have a measured value in every column, got only missing values (NaN or weight zero) in "
            f"{_name(never, names)}; leave it out, or measure it at least once"
        )


def check_labels(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[NDArray[Any], Array | None]:
    """Class labels (n,), or indicators of labels (n, n_labels), and weights of the rows of X.

    Raise unless rows of positive weight have at least two classes.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    weight = check_weights(sample_weight, len(labels))
    if type_of_target(labels) == "multilabel-indicator":
        return labels, weight
    labels = column_or_1d(labels, warn=True)
    weighted = np.unique(labels if weight is None else labels[weight > 0.0])
    if len(weighted) < 2:
        raise ValueError(
            f"y must hold at least two classes in rows of positive weight, got one class, "
            f"{weighted[0]!r}"
        )
    return labels, weight


def drop_missing_rows(
    Y: Array, weight: Array | None, names: Names = None
) -> tuple[NDArray[np.bool_], Array, Array | None]:
    """A mask of the rows that have a measured target, and the targets and weights of these rows.

    Examples
    --------
    >>> import numpy as np
    >>> drop_missing_rows(*check_weighted_targets(np.array([[1.0, 2.0], [np.nan, np.nan]])))
    (array([ True, False]), array([[1., 2.]]), None)
    """
    check_measured(Y, weight, names)
    if weight is None:
        return np.ones(len(Y), dtype=bool), Y, None
    measured = np.asarray(weight.reshape(len(Y), -1).any(axis=1))
    return measured, Y[measured], simplify_weights(weight[measured])


def score_targets(y: Any, prediction: Any, sample_weight: Any = None) -> float:
    """R^2 of each target over its measured values, averaged over targets.

    Parameters
    ----------
    y : array-like or data frame of shape (n,) or (n, p)
        NaN where a target is missing.
    prediction : array-like or data frame of the same shape
    sample_weight : number or array-like of shape (n,) or (n, p), optional

    Returns
    -------
    float
        `sklearn.metrics.r2_score` where nothing is missing. Targets with fewer than two measured
        values are left out.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, np.nan]])
    >>> score_targets(y, np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]))
    1.0
    """
    if y is None:
        raise ValueError("The estimator requires y to be passed, but the target y is None")
    names = target_names(y)
    Y, weight = check_weighted_targets(check_targets(y, names), sample_weight, names)
    values = np.asarray(prediction, dtype=np.float64).reshape(Y.shape)
    if weight is None or (weight.ndim == 1 and not np.isnan(Y).any()):
        return float(r2_score(Y, values, sample_weight=weight))
    weights = np.broadcast_to(weight.reshape(len(Y), -1), Y.shape)
    scores = []
    for target, predicted, target_weight in zip(Y.T, values.T, weights.T, strict=True):
        rows = target_weight > 0.0
        if rows.sum() >= 2:
            scores.append(
                r2_score(target[rows], predicted[rows], sample_weight=target_weight[rows])
            )
    if not scores:
        raise ValueError("y must have at least two measured values in some column to be scored")
    return float(np.mean(scores))


def check_given(given: Any, X: Any, names: list[str], *, named: bool) -> Array:
    """Given targets of new rows, (n, p), NaN where a target is to be predicted.

    Parameters
    ----------
    given : array-like of shape (n, p) or (n,), or data frame
        Columns of a data frame are matched by name; it may have only some of the targets.
    X : table
        The rows. If both are pandas frames, ``given`` must have the index of X, in any order.
    names : list of str
        Names of the targets.
    named : bool
        Whether the training targets had these names.
    """
    columns = target_names(given)
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError(f"given must name each target once, got {list(columns)}")
    n_rows = _num_samples(X)
    index: Any = getattr(X, "index", None)
    indexed = hasattr(given, "reindex") and hasattr(index, "equals") and len(given.index) == n_rows
    if indexed and not index.equals(given.index):
        if not (index.is_unique and set(given.index) == set(index)):
            raise ValueError(
                "given must have the index of X; use given.set_axis(X.index) if its rows are in the "
                "order of X"
            )
        given = given.reindex(index)
    values = check_targets(given, columns)
    values = values.reshape(len(values), -1)
    if len(values) != n_rows:
        raise ValueError(
            f"given must have a row for each of the {n_rows} rows of X, got {len(values)}"
        )
    if columns is None or (
        not named and len(columns) == len(names) and not set(columns) & set(names)
    ):
        if values.shape[1] != len(names):
            raise ValueError(
                f"given must have {len(names)} columns, one for each target, got {values.shape[1]}; "
                f"a data frame may have some of them, by name"
            )
        return np.array(values)
    unknown = [str(name) for name in columns if name not in names]
    if unknown:
        near = get_close_matches(unknown[0], [str(name) for name in names], n=1)
        raise ValueError(
            f"given must have columns that are targets, {names[:12]}, got "
            f"{', '.join(map(repr, unknown))} as well; "
            + (f"did you mean {near[0]!r}?" if near else "leave these out")
        )
    whole = np.full((n_rows, len(names)), np.nan)
    whole[:, [names.index(name) for name in columns]] = values
    return whole


def check_costs(cost: Any, names: list[str]) -> Array:
    """Costs of measuring each target, (p,), from a sequence or a mapping of names to numbers."""
    if cost is None:
        return np.ones(len(names))
    if isinstance(cost, Mapping):
        unknown = [str(name) for name in cost if str(name) not in names]
        if unknown:
            raise ValueError(
                f"cost must name targets, {names}, got {', '.join(map(repr, unknown))}"
            )
        cost = [cost.get(name, 1.0) for name in names]
    costs = np.asarray(cost, dtype=np.float64)
    if costs.shape != (len(names),):
        raise ValueError(
            f"cost must hold {len(names)} numbers, one for each target, got shape {costs.shape}"
        )
    if not np.isfinite(costs).all() or costs.min(initial=1.0) <= 0.0:
        raise ValueError(f"cost must be positive and finite, got {costs.tolist()}")
    return costs


def _check_target_weights(sample_weight: Any, shape: tuple[int, int], names: Names) -> Array | None:
    """Weights (n,) or (n, p), checked; columns of a data frame must be those of the targets."""
    weight = check_weights(sample_weight, *shape, all_zero=True)
    columns = target_names(sample_weight)
    if columns is None or names is None or weight is None or weight.ndim == 1:
        return weight
    if list(columns) != list(names):
        raise ValueError(
            f"sample_weight must have the columns of y, {list(names)}, got {list(columns)}"
        )
    return weight


def _text_columns(y: Any) -> Index:
    """Numbers of the columns that hold text."""
    values = np.asarray(y, dtype=object)
    if values.ndim not in (1, 2) or not values.size:
        return np.array([], dtype=np.intp)
    values = values.reshape(len(values), -1)
    return np.flatnonzero([any(isinstance(value, str) for value in column) for column in values.T])


def _name(columns: Index, names: Names) -> str:
    """Columns in words, by name where there are names."""
    words = [repr(str(names[i])) if names is not None else str(i) for i in columns]
    return f"column{'s' if len(words) > 1 else ''} {', '.join(words)}"
