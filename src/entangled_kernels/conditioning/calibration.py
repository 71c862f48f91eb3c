"""Predictive distributions calibrated on residuals: deviations, relations between targets, intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.sparse.linalg import LinearOperator

from ..linalg import Array, Index
from .correlation import Conditional, Correlation
from .patterns import group_patterns
from .quantiles import score_quantile, target_quantiles
from .relation import LARGEST, Relation, fit_relation, relation_of_strength
from .residuals import Deviation, Residuals
from .shrinkage import N_PARTS, choose_shrinkage, estimate_correlation, row_parts

__all__ = ["Calibration", "calibrate"]

# More targets than this, and their covariance is an operator.
MOST_DENSE = 2048
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far new observations lie from a model's predictions, and what some of them say of the others.

    The covariance of a new observation is deviation * R * deviation, where the deviations depend on the
    input. The correlation R does not, but for a `Relation` that turns with it.

    Attributes
    ----------
    residuals : Residuals
    deviation : Deviation
    correlation : Correlation
    shrinkage : float
        Share of the identity in the correlation.
    relation : Relation or None
        What stands in the place of the correlation where it depends on the input.
    relation_facts : dict
        How the relation did on held-out rows.
    """

    residuals: Residuals
    deviation: Deviation
    correlation: Correlation
    shrinkage: float
    relation: Relation | None = None
    relation_facts: dict[str, Any] = field(default_factory=dict)

    def mean_covariance(self) -> Any:
        """Covariance of errors over the rows calibrated on, (p, p); an operator where targets are many."""
        residuals = self.residuals
        factor = self.deviation.factor(residuals.relative_variance) ** 2
        unit = self.deviation.scale * np.sqrt(np.average(factor, weights=residuals.weight))
        if len(unit) <= MOST_DENSE:
            return unit[:, None] * self.correlation.dense() * unit
        F, own = self.correlation.factor * unit, self.correlation.own * unit**2

        def multiply(vector: Array) -> Array:
            vector = vector.reshape(len(own), -1)
            return np.asarray(F.T @ (F @ vector) + own[:, None] * vector)

        shape = (len(unit), len(unit))
        return LinearOperator(shape, matvec=multiply, rmatvec=multiply, matmat=multiply, dtype=np.float64)

    def condition(
        self,
        mean: Array,
        given: Array,
        relative_variance: Array,
        features: Array | None = None,
        *,
        with_covariance: bool = False,
    ) -> Conditional:
        """Predictions (n, p) once some targets are measured, ``given`` with NaN for the others.

        ``features`` (n, q) are those of `Residuals`, where the relation depends on them.
        """
        std = self.deviation.at(relative_variance)
        unit = np.where(std > 0.0, std, 1.0)
        found = _condition(
            self.correlation, self.relation, (given - mean) / unit, features, with_covariance=with_covariance
        )
        covariance = found.covariance
        if covariance is not None:
            covariance = std[:, :, None] * covariance * std[:, None, :]
        measured = np.isfinite(given)
        return Conditional(
            np.where(measured, given, mean + std * found.mean), std**2 * found.variance, covariance
        )

    def half_widths(self, coverage: float, known: Mask, std: Array, *, joint: bool) -> Array:
        """Half the widths of intervals, (n, p), for rows with deviations ``std`` and known targets (n, p).

        Notes
        -----
        For every pattern of known targets, residuals are conditioned as new rows are, with a correlation
        that their own rows had no part in; what is left, over its deviation, are the scores. Their quantile
        (`entangled_kernels.conditioning.quantiles`) times the deviation is half the width. Joint intervals
        take the largest score of every row.
        """
        widths = np.zeros(std.shape)
        for rows, pattern in group_patterns(known):
            if pattern.all():
                continue
            # A target without errors says nothing of how far others lie.
            scores = np.where(self.deviation.scale[~pattern] > 0.0, self._scores(pattern), np.nan)
            observed = np.isfinite(scores).any(axis=1)
            if not observed.any():
                continue
            scores, weight = scores[observed], self.residuals.weight[observed]
            n_rows = len(np.unique(self.residuals.row[observed]))
            if joint:
                quantile = np.full(
                    scores.shape[1], score_quantile(np.nanmax(scores, axis=1), weight, n_rows, coverage)
                )
            else:
                quantile = target_quantiles(scores, weight, n_rows, coverage)
            places = np.ix_(rows, np.flatnonzero(~pattern))
            widths[places] = quantile * std[places]
        return widths

    @cached_property
    def _standardised(self) -> Array:
        """Residuals in units of deviations that their own rows had no part in, (N, p)."""
        Z = self.residuals.standardised(self.deviation)
        return Z / self.residuals.left_out_scales(Z)

    @cached_property
    def _parts(self) -> Index:
        return row_parts(self.residuals.row, N_PARTS)

    @cached_property
    def _left_out(self) -> list[tuple[Correlation, Relation | None]]:
        """For every part of the rows the correlation, and the relation, of the others."""
        Z, weight, U = self._standardised, self.residuals.weight, self.residuals.features
        found: list[tuple[Correlation, Relation | None]] = []
        for part in range(self._parts.max() + 1):
            others = self._parts != part
            correlation, relation = estimate_correlation(Z[others], weight[others], self.shrinkage), None
            if self.relation is not None and U is not None:
                rows = (Z[others], U[others], weight[others], correlation.dense())
                chosen = (self.relation_facts["rank"], self.relation_facts["strength"])
                relation = relation_of_strength(*rows, *chosen)
            found.append((correlation, relation))
        return found

    def _scores(self, pattern: Mask) -> Array:
        """Errors over their deviations of the targets that are not known, (N, u); NaN where not measured."""
        Z, U = self._standardised, self.residuals.features
        if self.relation is None and not pattern.any():
            return np.abs(Z)
        scores = np.empty((len(Z), int((~pattern).sum())))
        for part, (correlation, relation) in enumerate(self._left_out):
            rows = self._parts == part
            features = None if U is None else U[rows]
            found = _condition(correlation, relation, np.where(pattern, Z[rows], np.nan), features)
            error = (Z[rows] - found.mean)[:, ~pattern]
            scores[rows] = np.abs(error) / np.sqrt(found.variance[:, ~pattern])
        return scores

    def __getstate__(self) -> dict[str, object]:
        # What is found from the residuals again when it is asked for.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def calibrate(residuals: Residuals, rng: np.random.Generator, relation: str = "constant") -> Calibration:
    """Deviations and correlation that residuals show.

    Parameters
    ----------
    residuals : Residuals
    rng : numpy.random.Generator
        For halves of the targets on which the shrinkage of the correlation is chosen.
    relation : {"constant", "entangled", "auto"}, default="constant"
        Whether the relation between targets may depend on the features of the residuals; "auto" lets it
        where held-out rows say so.
    """
    deviation = residuals.deviation()
    Z = residuals.standardised(deviation)
    shrinkage = choose_shrinkage(Z[:, deviation.scale > 0.0], residuals.weight, residuals.row, rng)
    correlation = estimate_correlation(Z, residuals.weight, shrinkage)
    found, facts = None, dict[str, Any]()
    if relation != "constant" and residuals.features is not None:

        def estimate(Z: Array, weight: Array) -> Array:
            return estimate_correlation(Z, weight, shrinkage).dense()

        rows = (residuals.row, residuals.weight)
        dense = correlation.dense() if len(correlation.own) <= LARGEST else np.eye(len(correlation.own))
        found, facts = fit_relation(Z, residuals.features, *rows, dense, relation, estimate, rng)
    return Calibration(residuals, deviation, correlation, shrinkage, found, facts)


def _condition(
    correlation: Correlation,
    relation: Relation | None,
    Z: Array,
    features: Array | None,
    *,
    with_covariance: bool = False,
) -> Conditional:
    """Condition rows on their finite entries, with a relation that depends on features where there is one."""
    if relation is None or features is None:
        return correlation.condition(Z, with_covariance=with_covariance)
    shared = Correlation(cholesky(relation.psi), np.zeros(len(relation.psi)))
    return shared.condition(Z, relation.spread(features), with_covariance=with_covariance)
