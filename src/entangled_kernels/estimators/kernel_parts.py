"""Kernels on columns of a table, and the attributes that say how a convex search ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from ..convex import KernelPart, Result
from ..features import fit_feature_map, map_features
from ..kernels.scalar import check_scalar_kernel, scalar_gram
from ..linalg import Array, Index
from ..parameters import check_solver_params, warn_user

__all__ = ["ColumnKernel", "resolve_kernels", "store_certificate"]

DEFAULT = ("linear", "rbf")


@dataclass(frozen=True, eq=False)
class ColumnKernel:
    """A scalar kernel on some columns.

    Attributes
    ----------
    name : str
    kernel : str, kernel object, function of two rows, or transformer
        The kernel of a transformer is the inner product of its output; ``"linear"`` is that of the
        columns.
    columns : ndarray of int
    """

    name: str
    kernel: Any
    columns: Index

    @property
    def is_features(self) -> bool:
        """Whether the kernel is an inner product of features that can be computed."""
        return self._is_transformer or (isinstance(self.kernel, str) and self.kernel == "linear")

    @property
    def _is_transformer(self) -> bool:
        return isinstance(self.kernel, BaseEstimator) or hasattr(self.kernel, "transform")

    def fit(self, X: Array, Y: Array, weight: Array | None) -> ColumnKernel:
        """The same with its transformer fitted, if it has one."""
        if not self._is_transformer:
            return self
        fitted = fit_feature_map(self.kernel, X[:, self.columns], Y, weight)
        return ColumnKernel(self.name, fitted, self.columns)

    def features(self, X: Array) -> Array:
        """Features (n, d) of rows."""
        chosen = X[:, self.columns]
        return (
            chosen
            if not self._is_transformer
            else np.asarray(map_features(self.kernel, chosen), dtype=float)
        )

    def part(self, X: Array) -> KernelPart:
        """The kernel on the training rows."""
        if self.is_features:
            return KernelPart(self.features(X), True)
        return KernelPart(scalar_gram(self.kernel, X[:, self.columns], None, {}))

    def gram(self, X: Array, Z: Array) -> Array:
        """The kernel between new rows and training rows."""
        return scalar_gram(self.kernel, X[:, self.columns], Z[:, self.columns], {})


def store_certificate(estimator: Any, result: Result, solver_params: Any, subject: str) -> None:
    """Store objective, gap and reason of a convex search in an estimator; warn unless it converged.

    The warning begins with ``subject``, which names what was learned.
    """
    estimator.objective_, estimator.duality_gap_ = result.value, result.gap
    estimator.n_iter_, estimator.converged_ = result.n_iter, result.converged
    estimator.stop_reason_ = result.reason
    if result.converged:
        return
    settings = check_solver_params(solver_params, zero_allowed=True)
    if result.reason == "max_iter":
        ending = f"after max_iter={settings['max_iter']} steps; raise max_iter or tol"
    else:
        ending = (
            f"after {result.n_iter} steps, and no step lowers the objective any further; raise "
            f"max_iter or tol"
        )
    warn_user(
        f"{subject} not converged to tol={settings['tol']:g} {ending} in solver_params, or alpha",
        ConvergenceWarning,
    )


def resolve_kernels(
    kernels: Any, n_columns: int, column_names: Sequence[str] | None
) -> list[ColumnKernel]:
    """Kernels of the parameter ``kernels``, with columns as indices; errors name the bad one."""
    if kernels is None:
        kernels = list(DEFAULT)
    if isinstance(kernels, Mapping):
        kernels = [(str(name), "linear", columns) for name, columns in kernels.items()]
    if isinstance(kernels, str) or not isinstance(kernels, Sequence) or not len(kernels):
        raise ValueError(
            f"kernels must be a list of kernels, or of (name, kernel, columns), or a dictionary of "
            f"named groups of columns, with at least one entry, got {kernels!r}"
        )
    parts = []
    for number, entry in enumerate(kernels):
        if isinstance(entry, tuple):
            if len(entry) != 3:
                raise ValueError(
                    f"kernels[{number}] must be (name, kernel, columns), got {entry!r}"
                )
            name, kernel, columns = (
                str(entry[0]),
                entry[1],
                _columns(entry, n_columns, column_names),
            )
        else:
            name = entry if isinstance(entry, str) else type(entry).__name__
            kernel, columns = entry, np.arange(n_columns)
        if not hasattr(kernel, "transform"):
            check_scalar_kernel(kernel, {})
        parts.append(ColumnKernel(name, kernel, columns))
    return _distinct(parts)


def _columns(entry: tuple[Any, Any, Any], n_columns: int, names: Sequence[str] | None) -> Index:
    """Columns of a group as indices."""
    name, _, given = entry
    if isinstance(given, slice):
        index: Any = np.arange(n_columns)[given]
    else:
        listed: list[Any] = [given] if isinstance(given, str | int | np.integer) else list(given)
        if any(isinstance(column, str) for column in listed):
            known = {column: i for i, column in enumerate(names)} if names is not None else {}
            missing = [column for column in listed if column not in known]
            if missing:
                raise ValueError(
                    f"kernels: group {name!r} names columns that X does not have, {missing}; X has "
                    f"{'no column names' if names is None else list(names)}"
                )
            listed = [known[column] for column in listed]
        index = np.asarray(listed)
    if index.ndim != 1 or not index.size:
        raise ValueError(f"kernels: group {name!r} must have at least one column, got {given!r}")
    if index.dtype == bool and len(index) == n_columns:
        index = np.flatnonzero(index)
    if index.dtype.kind not in "iu" or index.min() < -n_columns or index.max() >= n_columns:
        raise ValueError(
            f"kernels: group {name!r} must name columns from 0 to {n_columns - 1}, got {given!r}"
        )
    index = index % n_columns
    if len(np.unique(index)) < len(index):
        raise ValueError(f"kernels: group {name!r} names a column twice, got {given!r}")
    return np.asarray(index, dtype=np.intp)


def _distinct(parts: list[ColumnKernel]) -> list[ColumnKernel]:
    """The same kernels, with a number after every name that was used before."""
    seen: dict[str, int] = {}
    named = []
    for part in parts:
        seen[part.name] = seen.get(part.name, 0) + 1
        name = part.name if seen[part.name] == 1 else f"{part.name}-{seen[part.name]}"
        named.append(ColumnKernel(name, part.kernel, part.columns))
    return named
