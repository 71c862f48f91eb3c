"""Targets learned on another scale: logarithms, and any transformer that can be undone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conditioning.back_transform import (
    covariance_through,
    domain_ends,
    lognormal_covariance,
    lognormal_moments,
    moments_through,
)
from ..features import fit_feature_map, is_fitted
from ..linalg import Array, Index

__all__ = [
    "LogTargets",
    "TransformerTargets",
    "check_target_transform",
    "fit_target_transform",
    "is_ready",
]

LOGARITHMS = ("log", "log1p")
_NEED = (
    "None, 'log', 'log1p', a mapping from names of targets to these, or a transformer with inverse_transform"
)
# So many rows tell whether a transformer mixes targets.
_PROBED = 16


@dataclass(frozen=True, eq=False)
class LogTargets:
    """Logarithms of some targets, the others as they are.

    Attributes
    ----------
    kinds : tuple of {"log", "log1p", ""}
        Of every target.
    names : tuple of str
        Of the targets, for errors.
    """

    kinds: tuple[str, ...]
    names: tuple[str, ...]
    elementwise = True

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.kinds)

    def transform(self, Y: Array, name: str = "y", rows: Index | None = None) -> Array:
        """Logarithms, NaN in blanks; errors name the table, and the place among ``rows``."""
        Z = np.array(Y, dtype=np.float64)
        for kind, log in (("log", np.log), ("log1p", np.log1p)):
            places = np.flatnonzero([own == kind for own in self.kinds])
            wrong = np.argwhere((Z[:, places] <= 0.0) if kind == "log" else (Z[:, places] < 0.0))
            if len(wrong):
                row, place = int(wrong[0, 0]), int(places[wrong[0, 1]])
                self._refuse(kind, name, Z[row, place], row if rows is None else int(rows[row]), place)
            Z[:, places] = log(Z[:, places])
        return Z

    def inverse_transform(self, Z: Array) -> Array:
        """Targets, never below zero where a logarithm was taken."""
        Y = np.array(Z, dtype=np.float64)
        with np.errstate(over="ignore"):
            for place, kind in enumerate(self.kinds):
                if kind:
                    own = Y[:, place]
                    Y[:, place] = np.exp(own) if kind == "log" else np.maximum(np.expm1(own), 0.0)
        return Y

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of targets whose logarithms are normal."""
        centre, spread = lognormal_moments(mean, std**2)
        centre = np.maximum(centre - [kind == "log1p" for kind in self.kinds], 0.0)
        return np.where(self._logged, centre, mean), np.where(self._logged, spread, std)

    def covariance(self, mean: Array, covariance: Array) -> Array:
        """Their covariance, row by row."""
        return lognormal_covariance(mean, covariance, self._logged)

    @property
    def _logged(self) -> NDArray[np.bool_]:
        return np.array([kind != "" for kind in self.kinds])

    def _refuse(self, kind: str, name: str, value: float, row: int, place: int) -> None:
        need = "positive numbers" if kind == "log" else "numbers that are not negative"
        zero = "'log1p' takes zeros; " if kind == "log" and value == 0.0 else ""
        other = f"{{{self.names[place - 1]!r}: {kind!r}}}" if len(self.names) > 1 else "None"
        raise ValueError(
            f"target_transform={kind!r} needs {need}, got {value:g} in row {row + 1} of {name}, target "
            f"{self.names[place]!r}; {zero}make it NaN if it was not measured, or leave the target as it is, "
            f"as with target_transform={other}"
        )


@dataclass(frozen=True, eq=False)
class TransformerTargets:
    """Targets as a fitted transformer gives them.

    Attributes
    ----------
    transformer : transformer
    elementwise : bool
        Whether every target is transformed by itself; otherwise targets are mixed.
    n_targets : int
        Number of targets, that of the columns of ``inverse_transform``.
    ends : pair of ndarray or None
        Between which the inverse is defined, (p,) each; None where targets are mixed.
    variance : ndarray of shape (p,) or None
        Of the targets, where they are mixed.
    """

    transformer: Any
    elementwise: bool
    n_targets: int
    ends: tuple[Array, Array] | None
    variance: Array | None

    def transform(self, Y: Array, name: str = "y", rows: Index | None = None) -> Array:
        """Transformed targets, (n, q), NaN in blanks."""
        return _transformed(self.transformer, Y, name)

    def inverse_transform(self, Z: Array) -> Array:
        """Targets (n, p); beyond the ends of the inverse those at its end."""
        return _undone(self.transformer, Z if self.ends is None else np.clip(Z, *self.ends))

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of targets that are normal once transformed, each by itself."""
        return moments_through(self.inverse_transform, mean, std)

    def covariance(self, mean: Array, covariance: Array) -> Array:
        """Their covariance, row by row."""
        return covariance_through(self.inverse_transform, mean, covariance)


def check_target_transform(given: Any) -> None:
    """Raise unless ``given`` can be a ``target_transform``."""
    kinds = list(given.values()) if isinstance(given, Mapping) else [given]
    for kind in kinds:
        if kind is None or (isinstance(kind, str) and kind in LOGARITHMS):
            continue
        if isinstance(given, Mapping) or not all(
            hasattr(given, name) for name in ("fit", "transform", "inverse_transform")
        ):
            got = repr(kind) if isinstance(kind, str) else type(kind).__name__
            raise ValueError(f"target_transform must be {_NEED}, got {got}")


def is_ready(given: Any) -> bool:
    """Whether targets can be transformed without fitting something on them first."""
    return given is None or isinstance(given, str | Mapping) or is_fitted(given)


def fit_target_transform(
    given: Any, Y: Array, weight: Array | None, names: Sequence[str], *, refit: bool = True
) -> LogTargets | TransformerTargets | None:
    """What a parameter ``target_transform`` comes to on some targets.

    Parameters
    ----------
    given : None, str, mapping or transformer
        A transformer is cloned, and fitted with the weights of rows where it takes them.
    Y : ndarray of shape (n, p)
        NaN in blanks.
    weight : ndarray of shape (n,) or (n, p), or None
        A transformer is fitted on rows of positive weight.
    names : sequence of str
        Of the targets.
    refit : bool, default=True
        Otherwise a transformer that is fitted is used as it is.

    Examples
    --------
    >>> import numpy as np
    >>> found = fit_target_transform("log", np.array([[1.0, np.e]]), None, ["a", "b"])
    >>> found.transform(np.array([[1.0, np.e]])).tolist()
    [[0.0, 1.0]]
    """
    if given is None:
        return None
    if isinstance(given, str):
        return LogTargets((given,) * Y.shape[1], tuple(names))
    if isinstance(given, Mapping):
        return LogTargets(_kinds(given, names), tuple(names))
    if weight is not None and weight.any():
        counted = np.flatnonzero(weight if weight.ndim == 1 else weight.any(axis=1))
        Y, weight = Y[counted], weight[counted]
    transformer = given
    if refit or not is_fitted(given):
        try:
            transformer = fit_feature_map(given, Y, None, weight)
        except ValueError as error:
            raise _refused(given, Y, "y", error) from error
    Z = _transformed(transformer, Y, "y")
    elementwise = Z.shape == Y.shape and not _mixes(transformer, Z[:_PROBED])
    if not elementwise and np.isnan(Y).any():
        raise _refused(given, Y, "y", None)
    if not elementwise and weight is not None and weight.ndim == 2:
        raise ValueError("sample_weight must have one weight a row where target_transform mixes the targets")
    back = _undone(transformer, Z[:1])
    if back.shape[1] != Y.shape[1]:
        raise ValueError(
            f"inverse_transform of target_transform must give the {Y.shape[1]} targets, got {back.shape[1]}"
        )
    ends = variance = None
    if not elementwise:
        variance = np.average((Y - np.average(Y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    else:
        with warnings.catch_warnings():
            # scikit-learn warns of the NaN that is looked for.
            warnings.simplefilter("ignore")
            ends = domain_ends(lambda Z: _undone(transformer, Z), Z, None if transformer is given else Y)
    return TransformerTargets(transformer, elementwise, Y.shape[1], ends, variance)


def _kinds(given: Mapping[Any, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Kind of every target, by name or number."""
    unknown = [key for key in given if str(key) not in names and key not in range(len(names))]
    if unknown:
        raise ValueError(f"target_transform must name targets, {list(names)[:12]}, got {unknown[0]!r}")
    by_name = {str(key): kind for key, kind in given.items()}
    return tuple(by_name.get(name, by_name.get(str(i))) or "" for i, name in enumerate(names))


def _transformed(transformer: Any, Y: Array, name: str) -> Array:
    """Transformed targets, finite where a target was measured."""
    try:
        Z = np.asarray(transformer.transform(Y), dtype=np.float64)
    except ValueError as error:
        raise _refused(transformer, Y, name, error) from error
    if Z.ndim != 2 or len(Z) != len(Y) or Z.shape[1] == 0:
        raise ValueError(
            f"target_transform must give a table of {len(Y)} rows, got shape {Z.shape} from "
            f"{type(transformer).__name__}"
        )
    blank = np.isnan(Y)
    if blank.any() and (Z.shape != Y.shape or not np.isnan(Z[blank]).all()):
        raise _refused(transformer, Y, name, None)
    lost = ~np.isfinite(Z) & ~blank if Z.shape == Y.shape else ~np.isfinite(Z)
    if lost.any():
        row = int(np.argwhere(lost)[0, 0])
        raise ValueError(
            f"target_transform={type(transformer).__name__} gives no finite number for row {row + 1} of "
            f"{name}, {Y[row].tolist()}"
        )
    return Z


def _undone(transformer: Any, Z: Array) -> Array:
    Y = np.asarray(transformer.inverse_transform(Z), dtype=np.float64)
    return Y.reshape(len(Z), -1)


def _mixes(transformer: Any, Z: Array) -> bool:
    """Whether the inverse makes some target of the columns of others.

    Any two columns differ in a binary digit of their numbers. For every digit the columns that have it are
    moved, and then those that have not; the others must stay as they are.
    """
    number, before = np.arange(Z.shape[1]), _undone(transformer, Z)
    if before.shape != Z.shape:
        return True
    for digit in range(int(Z.shape[1] - 1).bit_length()):
        for moved in ((number >> digit) % 2 == 1, (number >> digit) % 2 == 0):
            after = _undone(transformer, np.where(moved, 0.9 * Z + 0.05, Z))
            if not np.allclose(after[:, ~moved], before[:, ~moved], rtol=1e-9, atol=0.0, equal_nan=True):
                return True
    return False


def _refused(transformer: Any, Y: Array, name: str, error: Exception | None) -> ValueError:
    """Why targets cannot be transformed."""
    what = f"target_transform={type(transformer).__name__}"
    if np.isnan(Y).any():
        return ValueError(
            f"{what} cannot take {name} with blanks (NaN); use a transformer of each target by itself that "
            f"keeps them, such as PowerTransformer, or fill them in"
        )
    return ValueError(f"{what} refuses {name}: {error}")
