"""The scale on which targets are learned: logarithms, or a transformer of each target by itself.

Models are linear, and their errors normal, on that scale; this module takes predictions, deviations
and covariances back to the units of the targets.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import roots_hermitenorm

from ..features import fit_feature_map, is_fitted
from ..linalg import Array, Index

__all__ = [
    "LogScale",
    "TargetScale",
    "TransformerScale",
    "check_target_transform",
    "fit_target_scale",
    "needs_rows",
]

LOGARITHMS = ("log", "log1p")
_NEED = (
    "None, 'log', 'log1p', a mapping from names of targets to these, or a transformer of each target by "
    "itself with inverse_transform"
)
# Number of rows on which a transformer is tested for mixing targets.
_PROBED_ROWS = 16
# Nodes of Gauss-Hermite quadrature, which is exact for polynomials of degree 39.
_N_NODES = 20
# The end of an inverse is searched up to this many ranges of the target from its mean, in this many
# steps of bisection.
_FAR, _HALVINGS = 1e3, 60


@dataclass(frozen=True, eq=False)
class LogScale:
    """Logarithms of some targets, the others unchanged.

    Attributes
    ----------
    kinds : tuple of {"log", "log1p", ""}
        One for each target.
    names : tuple of str
        Names of the targets, for error messages.
    """

    kinds: tuple[str, ...]
    names: tuple[str, ...]

    def transform(self, Y: Array, name: str = "y", rows: Index | None = None) -> Array:
        """Targets (n, p) on the learned scale, NaN where missing.

        Errors name the table and the row; ``rows`` are row numbers if Y is a part of a table.
        """
        Z = np.array(Y, dtype=np.float64)
        for kind, log in (("log", np.log), ("log1p", np.log1p)):
            columns = np.flatnonzero([each == kind for each in self.kinds])
            wrong = np.argwhere((Z[:, columns] <= 0.0) if kind == "log" else (Z[:, columns] < 0.0))
            if len(wrong):
                row, column = int(wrong[0, 0]), int(columns[wrong[0, 1]])
                self._refuse(
                    kind, name, Z[row, column], row if rows is None else int(rows[row]), column
                )
            Z[:, columns] = log(Z[:, columns])
        return Z

    def inverse_transform(self, Z: Array) -> Array:
        """Targets (n, p) in their units; those with a logarithm are never negative."""
        Y = np.array(Z, dtype=np.float64)
        with np.errstate(over="ignore"):
            for column, kind in enumerate(self.kinds):
                if kind:
                    values = Y[:, column]
                    Y[:, column] = (
                        np.exp(values) if kind == "log" else np.maximum(np.expm1(values), 0.0)
                    )
        return Y

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (n, p) of targets that are normal on the learned scale.

        For a logarithm exp(mean + variance / 2), and that times sqrt(exp(variance) - 1).
        """
        logged = np.array([kind != "" for kind in self.kinds])
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.exp(mean + std**2 / 2.0)
            spread = np.where(std > 0.0, centre * np.sqrt(np.expm1(std**2)), 0.0)
        centre = np.maximum(centre - [kind == "log1p" for kind in self.kinds], 0.0)
        return np.where(logged, centre, mean), np.where(logged, spread, std)

    def covariance(self, mean: Array, covariance: Array) -> Array:
        """Covariance (n, p, p) of targets that are normal on the learned scale.

        With S the covariance on that scale and E the means of exp(z), it is E_a E_b (exp(S_ab) - 1)
        for two logarithms and E_a S_ab for one.
        """
        logged = np.array([kind != "" for kind in self.kinds])
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.where(logged, np.exp(mean + variance / 2.0), 1.0)
            spread = np.where(logged[:, None] & logged, np.expm1(covariance), covariance)
            return np.asarray(slope[:, :, None] * spread * slope[:, None, :])

    def _refuse(self, kind: str, name: str, value: float, row: int, column: int) -> None:
        need = "positive numbers" if kind == "log" else "numbers that are not negative"
        zero = "'log1p' takes zeros; " if kind == "log" and value == 0.0 else ""
        other = f"{{{self.names[column - 1]!r}: {kind!r}}}" if len(self.names) > 1 else "None"
        raise ValueError(
            f"target_transform={kind!r} needs {need}, got {value:g} in row {row + 1} of {name}, target "
            f"{self.names[column]!r}; {zero}make it NaN if it is missing, or do not transform this "
            f"target, as with target_transform={other}"
        )


@dataclass(frozen=True, eq=False)
class TransformerScale:
    """Targets transformed by a fitted transformer, each by itself.

    Attributes
    ----------
    transformer : transformer
    low, high : ndarray of shape (p,)
        Ends of the interval on which the inverse of each target is defined.
    """

    transformer: Any
    low: Array
    high: Array

    def transform(self, Y: Array, name: str = "y", rows: Index | None = None) -> Array:
        """Targets (n, p) on the learned scale, NaN where missing."""
        return _transform(self.transformer, Y, name)

    def inverse_transform(self, Z: Array) -> Array:
        """Targets (n, p) in their units; values beyond the ends of the inverse are clipped."""
        return _invert(self.transformer, np.clip(Z, self.low, self.high))

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (n, p), by quadrature, of targets normal on the learned scale."""
        values, weight, _ = self._at_nodes(mean, std)
        centre = np.einsum("k,kno->no", weight, values)  # (n, p)
        square = np.einsum("k,kno->no", weight, (values - centre) ** 2)  # (n, p)
        return np.where(std > 0.0, centre, values[0]), np.where(std > 0.0, np.sqrt(square), 0.0)

    def covariance(self, mean: Array, covariance: Array) -> Array:
        """Covariance (n, p, p) of targets that are normal on the learned scale.

        Notes
        -----
        Let a_j be the coefficients of the inverse at mean + std x in normalised Hermite polynomials
        of x, and R the correlations on the learned scale. Mehler's formula gives sum_j a_aj a_bj
        R_ab^j over j = 1, 2, ... The coefficients are those of the quadrature of `moments`, so the
        diagonal is its variance.
        """
        std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))  # (n, p)
        values, weight, nodes = self._at_nodes(mean, std)
        values = np.where(std > 0.0, values, 0.0)
        unit = np.where(std > 0.0, std, 1.0)
        R = covariance / unit[:, :, None] / unit[:, None, :]
        power, total = np.ones_like(R), np.zeros_like(R)
        before, polynomial = np.zeros_like(nodes), np.ones_like(nodes)
        for j in range(1, _N_NODES):
            # Normalised polynomials: sqrt(j) h_j = x h_{j-1} - sqrt(j - 1) h_{j-2}.
            before, polynomial = (
                polynomial,
                (nodes * polynomial - np.sqrt(j - 1) * before) / np.sqrt(j),
            )
            a = np.einsum("k,kno->no", weight * polynomial, values)  # (n, p)
            power = power * R
            total += a[:, :, None] * a[:, None, :] * power
        return total

    def _at_nodes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Values (k, n, p) of the inverse at the nodes of the quadrature, weights (k,) and nodes (k,)."""
        nodes, weight = roots_hermitenorm(_N_NODES)
        points = mean + nodes[:, None, None] * std  # (k, n, p)
        values = self.inverse_transform(points.reshape(-1, mean.shape[1])).reshape(points.shape)
        return values, weight / weight.sum(), nodes


TargetScale = LogScale | TransformerScale


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


def needs_rows(given: Any) -> bool:
    """Whether a target transform is a transformer that is not fitted yet."""
    return not (isinstance(given, str | Mapping) or is_fitted(given))


def fit_target_scale(
    given: Any, Y: Array, weight: Array | None, names: Sequence[str], *, refit: bool = True
) -> TargetScale:
    """The scale of a parameter ``target_transform``, fitted to some targets.

    Parameters
    ----------
    given : str, mapping or transformer
        A transformer is cloned, and fitted with the weights of rows if it accepts them.
    Y : ndarray of shape (n, p)
        NaN where a target is missing.
    weight : ndarray of shape (n,) or (n, p), or None
        A transformer is fitted on rows of positive weight.
    names : sequence of str
        Names of the targets.
    refit : bool, default=True
        Whether to fit a transformer again that is fitted already.

    Examples
    --------
    >>> import numpy as np
    >>> scale = fit_target_scale("log", np.array([[1.0, np.e]]), None, ["a", "b"])
    >>> scale.transform(np.array([[1.0, np.e]])).tolist()
    [[0.0, 1.0]]
    """
    if isinstance(given, str):
        return LogScale((given,) * Y.shape[1], tuple(names))
    if isinstance(given, Mapping):
        unknown = [key for key in given if str(key) not in names and key not in range(len(names))]
        if unknown:
            raise ValueError(
                f"target_transform must name targets, {list(names)[:12]}, got {unknown[0]!r}"
            )
        by_name = {str(key): kind for key, kind in given.items()}
        kinds = tuple(by_name.get(name, by_name.get(str(i))) or "" for i, name in enumerate(names))
        return LogScale(kinds, tuple(names))
    if weight is not None and weight.any():
        counted = np.flatnonzero(weight if weight.ndim == 1 else weight.any(axis=1))
        Y, weight = Y[counted], weight[counted]
        if weight.ndim == 2:
            # A target of weight zero is missing, and may hold any number.
            Y = np.where(weight > 0.0, Y, np.nan)
    transformer, fitted_here = given, refit or not is_fitted(given)
    if fitted_here:
        try:
            transformer = fit_feature_map(given, Y, None, weight)
        except ValueError as error:
            raise _refused(given, Y, "y", error) from error
    Z = _transform(transformer, Y, "y")
    if Z.shape != Y.shape or _mixes(transformer, Z[:_PROBED_ROWS]):
        raise ValueError(
            f"target_transform={type(given).__name__} mixes the targets; use a transformer of each target by "
            f"itself. More targets than rows need no basis: they are handled exactly as they are"
        )
    with warnings.catch_warnings():
        # scikit-learn warns of NaN, which marks the end of an inverse.
        warnings.simplefilter("ignore")
        low, high = _inverse_ends(transformer, Z, Y if fitted_here else None)
    return TransformerScale(transformer, low, high)


def _transform(transformer: Any, Y: Array, name: str) -> Array:
    """Transformed targets, NaN where missing; an error if another value is not finite."""
    try:
        Z = np.asarray(transformer.transform(Y), dtype=np.float64)
    except ValueError as error:
        raise _refused(transformer, Y, name, error) from error
    if Z.ndim != 2 or len(Z) != len(Y) or Z.shape[1] == 0:
        raise ValueError(
            f"target_transform must give a table of {len(Y)} rows, got shape {Z.shape} from "
            f"{type(transformer).__name__}"
        )
    missing = np.isnan(Y)
    if Z.shape != Y.shape:
        if missing.any():
            raise _refused(transformer, Y, name, None)
        return Z
    if not np.isnan(Z[missing]).all():
        raise _refused(transformer, Y, name, None)
    lost = ~np.isfinite(Z) & ~missing
    if lost.any():
        row = int(np.argwhere(lost)[0, 0])
        raise ValueError(
            f"target_transform={type(transformer).__name__} gives no finite number for row {row + 1} of "
            f"{name}, {Y[row].tolist()}"
        )
    return Z


def _invert(transformer: Any, Z: Array) -> Array:
    return np.asarray(transformer.inverse_transform(Z), dtype=np.float64).reshape(len(Z), -1)


def _mixes(transformer: Any, Z: Array) -> bool:
    """Whether the inverse of some target depends on the columns of others.

    Any two column numbers differ in a binary digit. For every digit, the columns with the digit 1
    are changed, and then those with 0; the inverses of the other columns must not change.
    """
    number, before = np.arange(Z.shape[1]), _invert(transformer, Z)
    if before.shape != Z.shape:
        return True
    for digit in range(int(Z.shape[1] - 1).bit_length()):
        for changed in ((number >> digit) % 2 == 1, (number >> digit) % 2 == 0):
            after = _invert(transformer, np.where(changed, 0.9 * Z + 0.05, Z))
            others = after[:, ~changed], before[:, ~changed]
            if not np.allclose(*others, rtol=1e-9, atol=0.0, equal_nan=True):
                return True
    return False


def _inverse_ends(transformer: Any, Z: Array, Y: Array | None) -> tuple[Array, Array]:
    """Ends (p,) of the interval on which the inverse of each target is defined; infinite without an end.

    Z (n, p) are transformed targets, NaN where missing, and Y the targets, or None if they are not
    those that the transformer was fitted to.

    Notes
    -----
    An inverse that is not defined everywhere, such as that of a power transform, is NaN beyond its
    end, and may have a pole there. So such an inverse is used up to one range of the target beyond
    that range, if Y is known. The ends are found by bisection.
    """
    highest = np.full(Z.shape[1], np.finfo(np.float64).max)
    lowest = -highest
    if Y is not None:
        low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
        lowest, highest = 2.0 * low - high, 2.0 * high - low
    # A target without any measured value starts from zero.
    known = np.where(np.isnan(Z).all(axis=0), 0.0, Z)
    start = np.nanmean(known, axis=0)
    step = _FAR * np.maximum(np.nanmax(np.abs(known - start), axis=0), 1.0)
    begins = ~np.isnan(_invert(transformer, start[None]))[0]
    ends = []
    for sign in (-1.0, 1.0):
        outside = start + sign * step
        ended = np.isnan(_invert(transformer, outside[None]))[0] & begins
        inside = start.copy()
        for _ in range(_HALVINGS if ended.any() else 0):
            middle = (inside + outside) / 2.0
            value = _invert(transformer, middle[None])[0]
            defined = (value >= lowest) & (value <= highest)
            inside, outside = np.where(defined, middle, inside), np.where(defined, outside, middle)
        ends.append(np.where(ended, inside, sign * np.inf))
    return ends[0], ends[1]


def _refused(transformer: Any, Y: Array, name: str, error: Exception | None) -> ValueError:
    """The error of a transformer that does not accept some targets."""
    what = f"target_transform={type(transformer).__name__}"
    if np.isnan(Y).any():
        return ValueError(
            f"{what} does not accept {name} with missing targets (NaN); use a transformer of each target by "
            f"itself that keeps them, such as PowerTransformer, or fill them in"
        )
    return ValueError(f"{what} refuses {name}: {error}")
