"""Which inputs a model uses, for which targets, and which way."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from ..explanation import (
    Explanation,
    Mixture,
    gradient_effects,
    measured_effects,
    mixtures,
    noise_level,
    overall,
    permutation_effects,
)
from ..features import FeatureMapTraits
from ..features.gradients import has_gradient
from ..learning.input_range import as_numbers
from ..learning.noise import AveragedPart, noise_coefficients, noise_of_average
from ..linalg import Array
from ..parameters import check_choice
from .dask_tables import is_dask
from .prediction import LinearPredictionMixin

__all__ = ["ExplainingMixin"]

METHODS = ("auto", "gradient", "permutation")
# Draws of noise, and permutations of an input, where targets or inputs are few; and how few at least.
DRAWS, NUMBERS_DRAWN, FEWEST_DRAWS = 20, 256, 4
REPEATS, INPUTS_REPEATED = 5, 250


class ExplainingMixin(LinearPredictionMixin):
    """`explain` of an estimator whose solved model is linear in its features."""

    def explain(self, X: Any, given: Any = None, *, method: str = "auto") -> Explanation:
        """Which inputs matter for which targets, and which way.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows to explain predictions of, at least two; a few hundred do. With a handful, the noise of an
            average over several feature maps comes out too small.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`. Then the predictions of the others given these
            are explained, and measured targets count as inputs too.
        method : {"auto", "gradient", "permutation"}, default="auto"
            Gradients where the feature map has them in closed form, else permutations.

        Returns
        -------
        explanation : Explanation
            Effects of inputs on targets with their signs, sizes, and the sizes that noise would have.

        Notes
        -----
        An effect is the mean over rows of the gradient of a prediction by an input, times the standard
        deviation of that input over the rows, in units of the target; its size is the root mean square of
        the same. They are exact for linear maps. With maps that have no gradients (forests, texts, foreign
        transformers) each input is permuted over the rows instead, in a way that gives the same numbers for a
        linear function (`entangled_kernels.explanation.permutation_effects`).

        Noise is the size that effects have in models, with the same features and settings, of targets that
        are nothing but errors of held-out rows. In an average every feature map counts by its share, with the
        settings of its heaviest candidate; over several maps the rows of X stand for those of training. What
        follows noise in tuning the features themselves is not in it.

        Inputs that go together share what they have in common in whatever way the model does; neither
        gradients nor permutations tell which of them is the cause.

        Targets with a ``target_transform`` are explained on the scale on which they are learned.

        Time n p d R for kernels that R rows carry, some twenty times over for the noise; permutations predict
        all rows up to five times for every input.
        """
        if is_dask(X, given):
            raise TypeError("explain needs tables in memory; take some rows of a Dask table")
        check_choice("method", method, METHODS)
        self._ensure_model()
        if self._mixing_transform is not None:
            raise ValueError(
                f"explain needs a transform of every target by itself, got target_transform="
                f"{type(self.target_transform).__name__}, which mixes them"
            )
        X = X if hasattr(X, "shape") else np.asarray(X)
        n, p = _num_samples(X), len(self._fit.linear.intercept)
        if n < 2:
            raise ValueError(f"X must have at least 2 rows to tell how inputs vary, got {n}")
        # Raises, as predict does, for rows that are not like those of training.
        self._features_and_mean(X)
        measured = None if given is None else self._check_given(given, X)
        calibration = self._held_out_errors()
        if measured is not None and calibration is None:
            raise ValueError("given needs errors of held-out rows, and none were kept; fit the model again")
        found = mixtures(calibration, measured, (n, p))
        by_gradient = has_gradient(self.feature_map_) if method == "auto" else method == "gradient"
        if method == "gradient" and not has_gradient(self.feature_map_):
            raise ValueError("method='gradient' needs a feature map with gradients; use 'permutation'")
        unit = _deviations(X)
        effect, size = self._effects(self._fit.linear.coef[None], X, found, unit, by_gradient=by_gradient)
        deviation = np.sqrt(np.maximum(self._target_variance(), 0.0))
        noise, overall_noise = np.full(size[0].shape, np.nan), np.full(len(unit), np.nan)
        best, averaged = self._best_model(), self._averaged_parts(X)
        # Cross-fitted features are predictions, in which the noise that they were fitted to cannot be seen.
        hidden = not averaged and FeatureMapTraits.of(self.feature_map_).cross_fitted
        if calibration is not None and not hidden:
            rng = np.random.default_rng(0)
            n_draws = max(FEWEST_DRAWS, min(DRAWS, NUMBERS_DRAWN // p))
            if averaged:
                coefs, model = noise_of_average(averaged, best._fit, calibration, n_draws, rng), self
            else:
                coefs, model = noise_coefficients(best._fit, calibration, n_draws, rng), best
            draws = model._effects(coefs, X, found, unit, by_gradient=by_gradient)[1]  # (draws, d, p)
            noise, overall_noise = noise_level(draws), noise_level(overall(draws, deviation))
        numbered = [f"x{place}" for place in range(len(unit))]
        names = [str(name) for name in getattr(self, "feature_names_in_", numbered)]
        targets, parts = self._output_names(p), [effect[0], size[0], noise]
        if measured is not None and calibration is not None:
            places, *more = measured_effects(calibration, measured, found)
            names += [f"{targets[place]} (measured)" for place in places]
            parts = [np.vstack(pair) for pair in zip(parts, more, strict=True)]
            overall_noise = np.append(overall_noise, overall(more[2], deviation))
        method = "gradient" if by_gradient else "permutation"
        return Explanation(
            inputs=names,
            targets=targets,
            effect=parts[0],
            size=parts[1],
            noise=parts[2],
            importance_noise=overall_noise,
            target_deviation=deviation,
            method=method,
        )

    def _averaged_parts(self, X: Any) -> list[AveragedPart]:
        """Features of rows, settings and shares of the feature maps in an average of several, else empty."""
        return []

    def _effects(
        self,
        coefs: Array,
        X: Any,
        found: list[Mixture],
        unit: Array,
        *,
        by_gradient: bool,
    ) -> tuple[Array, Array]:
        """Effects and sizes (c, d, p) of inputs on models with the features of this one."""
        if by_gradient:
            return gradient_effects(self.feature_map_, X, coefs, found, np.nan_to_num(unit))
        repeats = max(1, min(REPEATS, INPUTS_REPEATED // max(1, len(unit))))
        rng = np.random.default_rng(0)
        return permutation_effects(self._features, X, coefs, found, unit, repeats, rng)


def _deviations(X: Any) -> Array:
    """Standard deviation of every column over its numbers, NaN for one without."""
    numbers = as_numbers(X)
    known = np.isfinite(numbers)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, numbers, 0.0).sum(axis=0) / count
    squares = np.where(known, numbers - mean, 0.0) ** 2
    return np.where(known.any(axis=0), np.sqrt(squares.sum(axis=0) / count), np.nan)
