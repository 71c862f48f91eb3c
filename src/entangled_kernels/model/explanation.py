"""Which inputs matter for which targets: effects on predictions, and the effects of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..features import FeatureMapTraits, map_features
from ..features.gradients import has_gradient, pull_back
from ..learning import Fit, FitSettings, Problem, fit_problem, reduce_rows
from ..learning.alignment import Alignment
from ..linalg import Array, Index
from ..parameters import as_table
from ..uncertainty import Calibration, group_patterns
from .input_range import as_numbers, number_blocks

if TYPE_CHECKING:
    from .fitted import FittedModel

__all__ = [
    "METHODS",
    "Explanation",
    "NoisePart",
    "explain_model",
    "noise_coefficients",
    "noise_of_average",
    "with_column",
]

METHODS = ("auto", "gradient", "permutation")
# The number of draws of noise: draws times targets are about _TARGETS_DRAWN.
_FEWEST_DRAWS, _MOST_DRAWS, _TARGETS_DRAWN = 4, 20, 256
# The number of permutations of every input: permutations times inputs are about _INPUTS_REPEATED.
_MOST_REPEATS, _INPUTS_REPEATED = 5, 250
# Gradients of rows are computed in blocks of this many numbers.
_CHUNK_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class Explanation:
    """How predictions of every target change with every input.

    Attributes
    ----------
    inputs : list of str
        Given targets come after the inputs of the model, with "(measured)" after their names.
    targets : list of str
    effect : ndarray of shape (inputs, targets)
        Mean change of the prediction, in units of the target, as the input grows by its standard
        deviation; NaN for an input that is not a number, and for a target that is given in all
        rows.
    size : ndarray of shape (inputs, targets)
        Root mean square of that change over the rows, at least the absolute effect. An input that
        raises some rows and lowers others has a size, even if its effect is zero.
    noise : ndarray of shape (inputs, targets)
        A size that is exceeded once in twenty times if targets are only errors of held-out rows.
        NaN if these are unknown, or if the model rests on features that are predictions of the
        targets, such as those of `TargetProcessFeatures`, which do not show noise.
    importance_noise : ndarray of shape (inputs,)
        The same for the `importance`.
    target_deviation : ndarray of shape (targets,)
        Standard deviation of every target over the training rows.
    method : {"gradient", "permutation"}

    Examples
    --------
    >>> import numpy as np
    >>> explanation = Explanation(["a", "b"], ["y"], np.array([[0.1], [-2.0]]), np.array([[0.1], [2.0]]),
    ...                     np.array([[0.2], [0.2]]), np.array([0.05, 0.05]), np.array([4.0]), "gradient")
    >>> explanation.importance, explanation.order.tolist(), explanation.beyond_noise[:, 0]
    (array([0.025, 0.5  ]), [1, 0], array([False,  True]))
    """

    inputs: list[str]
    targets: list[str]
    effect: Array
    size: Array
    noise: Array
    importance_noise: Array
    target_deviation: Array
    method: str

    @property
    def importance(self) -> Array:
        """Root mean square over targets of the size in deviations of the target, one for each input."""
        return _overall(self.size, self.target_deviation)

    @property
    def order(self) -> Index:
        """Numbers of the inputs, the most important first."""
        return np.argsort(-self.importance, kind="stable")

    @property
    def beyond_noise(self) -> NDArray[np.bool_]:
        """Whether a size is larger than that of noise, (inputs, targets)."""
        return np.asarray(self.size > self.noise)

    @property
    def important(self) -> NDArray[np.bool_]:
        """Whether the importance of an input is larger than that of noise.

        False for every input if the importance of noise is not known (NaN).
        """
        return np.asarray(self.importance > self.importance_noise)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for every input and target, the most important input first."""
        import pandas as pd

        order, p = self.order, len(self.targets)
        return pd.DataFrame(
            {
                "input": np.repeat([self.inputs[number] for number in order], p),
                "target": self.targets * len(order),
                **{
                    name: getattr(self, name)[order].ravel() for name in ("effect", "size", "noise")
                },
            }
        )


class NoisePart(NamedTuple):
    """A feature map of an average: settings of its heaviest candidate, and its shares, (1,) or (p,)."""

    feature_map: Any
    settings: FitSettings
    share: Array


def explain_model(
    model: FittedModel,
    X: Any,
    given: Array | None,
    method: str,
    inputs: Sequence[str] | None,
    targets: Sequence[str],
) -> Explanation:
    """Effects of the inputs on the predictions of a model, and the effects of noise.

    Parameters
    ----------
    model : FittedModel
    X : table of shape (n, d)
        At least two rows.
    given : ndarray of shape (n, p) or None
        Targets that are measured already, NaN where a target is to be predicted.
    method : {"auto", "gradient", "permutation"}
    inputs : sequence of str or None
        Names of the columns of X; None for x0, x1, ...
    targets : sequence of str
        Names of the targets.

    Notes
    -----
    An effect is the mean over rows of the gradient of a prediction by an input, times the standard
    deviation of that input over the rows; its size is the root mean square of the same. Noise is
    the size of effects in models, with the same features and settings, that are fitted to held-out
    errors in place of targets.
    """
    X = X if hasattr(X, "shape") else as_table(X)
    n, p = _num_samples(X), model.n_targets
    if n < 2:
        raise ValueError(f"X must have at least 2 rows, to show how inputs vary, got {n}")
    # Raises the errors of predict.
    model.learned_mean(model.features(X))
    calibration = model.calibration if model.has_errors else None
    if given is not None and calibration is None:
        raise ValueError(
            "given needs errors of held-out rows, and none were kept; fit the model again"
        )
    n_features = model.linear.coef.shape[1]
    by_gradient = method != "permutation" and has_gradient(model.feature_map, X, n_features)
    if method == "gradient" and not by_gradient:
        raise ValueError("method='gradient' needs a feature map with gradients; use 'permutation'")
    unit = _column_deviations(X)
    if np.isinf(unit).any():
        column = int(np.flatnonzero(np.isinf(unit))[0])
        raise ValueError(
            f"the deviation of column {column + 1} of X overflows; leave out rows that are far away"
        )

    def effects(feature_map: Any, coefs: Array) -> tuple[Array, Array]:
        """Effects and sizes (c, d, p) of the inputs on linear models of the features of a map."""
        if by_gradient:
            return gradient_effects(feature_map, X, coefs, mixtures, np.nan_to_num(unit))
        repeats = max(1, min(_MOST_REPEATS, _INPUTS_REPEATED // max(1, len(unit))))
        rng = np.random.default_rng(0)

        def features(rows: Any) -> Array:
            return np.asarray(rows if feature_map is None else map_features(feature_map, rows))

        return permutation_effects(features, X, coefs, mixtures, unit, repeats, rng)

    mixtures = _find_mixtures(calibration, given, (n, p))
    effect, size = (
        values[0] for values in effects(model.feature_map, model.linear.coef[None])
    )  # (d, p)
    deviation = np.sqrt(np.maximum(model.target_variance, 0.0))
    noise, importance_noise = np.full(size.shape, np.nan), np.full(len(unit), np.nan)
    # Features of cross-fitted maps are predictions, and the noise in these is not drawn here.
    hidden = not model.parts and FeatureMapTraits.of(model.feature_map).cross_fitted
    if calibration is not None and not hidden:
        rng = np.random.default_rng(0)
        n_draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _TARGETS_DRAWN // p))
        if model.parts:
            coefs = noise_of_average(model.parts, X, model.fit, calibration, n_draws, rng)
            draws = effects(model.feature_map, coefs)[1]  # (draws, d, p)
        else:
            draws = effects(
                model.fit_map, noise_coefficients(model.fit, calibration, n_draws, rng)
            )[1]
        noise, importance_noise = _noise_level(draws), _noise_level(_overall(draws, deviation))
    columns = [f"x{column}" for column in range(len(unit))] if inputs is None else list(inputs)
    if given is not None and calibration is not None:
        measured, *more = measured_effects(calibration, given, mixtures)
        columns += [f"{targets[target]} (measured)" for target in measured]
        effect, size, noise = (
            np.vstack(pair) for pair in zip((effect, size, noise), more, strict=True)
        )
        importance_noise = np.append(importance_noise, _overall(more[2], deviation))
    return Explanation(
        inputs=columns,
        targets=list(targets),
        effect=effect,
        size=size,
        noise=noise,
        importance_noise=importance_noise,
        target_deviation=deviation,
        method="gradient" if by_gradient else "permutation",
    )


def _column_deviations(X: Any) -> Array:
    """Standard deviation of every column over its numbers, NaN for a column without numbers."""
    total, count = np.zeros(1), np.zeros(1)
    for numbers in number_blocks(X):
        known = np.isfinite(numbers)
        total, count = total + np.where(known, numbers, 0.0).sum(axis=0), count + known.sum(axis=0)
    mean, squares = total / np.maximum(count, 1), np.zeros(1)
    for numbers in number_blocks(X):
        squares = squares + (np.where(np.isfinite(numbers), numbers - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count > 0, np.sqrt(squares / np.maximum(count, 1)), np.nan)


def gradient_effects(
    feature_map: Any, X: Any, coefs: Array, mixtures: list[Mixture], unit: Array
) -> tuple[Array, Array]:
    """Effects and sizes, both (c, d, p), from the gradients at every row.

    Parameters
    ----------
    feature_map : fitted transformer or None
        One that has a gradient.
    X : array or data frame of shape (n, d)
    coefs : ndarray of shape (c, p, m)
        Of c models with the same features.
    mixtures : list of Mixture
        How predictions depend on given targets.
    unit : ndarray of shape (d,)
        Standard deviations of the inputs.

    Notes
    -----
    With g the gradient of a prediction by an input, effects are unit times the mean of g over the
    rows where the target is not given, and sizes unit times its root mean square. If features are
    linear in the inputs, effects are exact, and sizes are their absolute values.

    Time that of `pull_back` for c p functions, and n c p^2 d with given targets.
    """
    c, p, m = coefs.shape
    sums, squares, counts = np.zeros((c, p, len(unit))), np.zeros((c, p, len(unit))), np.zeros(p)
    step = max(1, _CHUNK_NUMBERS // max(1, c * p * max(m, len(unit))))
    for rows, from_mean, _ in mixtures:
        mixed = not np.array_equal(from_mean, np.eye(p))
        for start in range(0, len(rows), step):
            chunk = _safe_indexing(X, rows[start : start + step])
            G = pull_back(feature_map, chunk, coefs.reshape(c * p, m)).reshape(-1, c, p, len(unit))
            if mixed:
                G = np.einsum("op,tcpd->tcod", from_mean, G, optimize=True)  # (t, c, p, d)
            sums += G.sum(axis=0)
            squares += np.einsum("tcpd,tcpd->cpd", G, G)
        counts += len(rows) * from_mean.any(axis=1)
    return _means(sums, squares, counts, unit)


def permutation_effects(
    features: Callable[[Any], Array],
    X: Any,
    coefs: Array,
    mixtures: list[Mixture],
    unit: Array,
    n_repeats: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Effects and sizes, both (c, d, p), from the change of predictions as an input is permuted.

    Parameters
    ----------
    features : callable
        From rows to features (n, m).
    X, coefs, mixtures, unit : as in `gradient_effects`
    n_repeats : int
        Permutations of every input.
    rng : numpy.random.Generator

    Notes
    -----
    A permutation changes x to x' in one column, and predictions by D. The effect is unit times the
    slope of D over x - x' through zero, sum D (x - x') / sum (x - x')^2; the size is sqrt(sum D^2 /
    2n). For a linear function both are those of its gradient, since the mean of (x - x')^2 is twice
    the variance of x.

    Time d n_repeats (n m c p), and as many feature maps of all rows.
    """
    c, p, m = coefs.shape
    table: Any = X.tocsc() if issparse(X) else as_numbers(X)
    n = np.shape(X)[0]
    before: Any = features(X)
    sums, squares, counts = np.zeros((c, p, len(unit))), np.zeros((c, p, len(unit))), np.zeros(p)
    for rows, from_mean, _ in mixtures:
        counts += len(rows) * from_mean.any(axis=1)
    for column in np.flatnonzero(unit != 0.0):
        moved, along = np.zeros((c, p)), np.zeros(p)
        numbers = as_numbers(table[:, [column]])[:, 0]
        for _ in range(n_repeats):
            order = rng.permutation(n)
            other = np.empty_like(order)
            # Every row gets the value of the next in a random order, so that every value changes.
            other[order] = np.roll(order, 1)
            after = features(with_column(X, int(column), other))
            change = np.asarray((before - after) @ coefs.reshape(c * p, m).T).reshape(n, c, p)
            steps = numbers - numbers[other]
            steps = np.where(np.isfinite(steps), steps, 0.0)
            for rows, from_mean, _ in mixtures:
                D = change[rows] @ from_mean.T  # (t, c, p)
                squares[:, :, column] += np.sum(D**2, axis=0) / (2.0 * n_repeats)
                moved += np.einsum("tcp,t->cp", D, steps[rows])
                along += np.sum(steps[rows] ** 2) * from_mean.any(axis=1)
        slope = moved / np.where(along > 0.0, along, 1.0)
        sums[:, :, column] = np.where(np.isnan(unit[column]), np.nan, slope) * counts
    size_unit = np.ones(len(unit))
    effect = _means(sums, squares, counts, unit)[0]
    return effect, _means(sums, squares, counts, size_unit)[1]


def with_column(X: Any, column: int, order: Index) -> Any:
    """A copy of a table in which the values of one column come from other rows.

    Examples
    --------
    >>> import numpy as np
    >>> with_column(np.array([[1, 2], [3, 4]]), 1, np.array([1, 0])).tolist()
    [[1, 4], [3, 2]]
    """
    if issparse(X):
        moved = X.tolil(copy=True)
        moved[:, [column]] = X.tocsr()[order][:, [column]]
        return moved.tocsr()
    if hasattr(X, "isetitem"):
        moved = X.copy()
        moved.isetitem(column, X.iloc[order, column].array)
        return moved
    if hasattr(X, "with_columns"):
        return X.with_columns(X.to_series(column)[order])
    moved = np.array(X)
    if moved.ndim == 1:
        return moved[order]
    moved[:, column] = moved[order, column]
    return moved


def _means(sums: Array, squares: Array, counts: Array, unit: Array) -> tuple[Array, Array]:
    """Means and root mean squares, (c, d, p), in units of the inputs; NaN without any row."""
    number = np.where(counts > 0.0, counts, np.nan)[:, None]
    effect, size = unit * sums / number, np.abs(unit) * np.sqrt(squares / number)
    return np.swapaxes(effect, 1, 2), np.swapaxes(size, 1, 2)


class Mixture(NamedTuple):
    """Rows with one pattern of given targets, (t,), and how their predictions depend on these.

    With f the predictions from inputs alone and y the given targets, predictions are from_mean @ f
    + from_given @ y. ``from_mean`` (p, p) has zeros in the rows of given targets; ``from_given``
    (p, p) has zeros in the rows of given targets and in the columns of the others.
    """

    rows: Index
    from_mean: Array
    from_given: Array


def _find_mixtures(
    calibration: Calibration | None, given: Array | None, shape: tuple[int, int]
) -> list[Mixture]:
    """A mixture for every pattern of given targets (n, p); ``shape`` is (n, p).

    Notes
    -----
    With D the deviations and R the correlation of errors, the other targets U depend on the given
    targets O by T = D_U R_UO R_OO^-1 D_O^-1: f_U + T (y_O - f_O).

    Time q^3 + q^2 p for a pattern of q given targets.
    """
    n, p = shape
    if given is None or calibration is None:
        return [Mixture(np.arange(n), np.eye(p), np.zeros((p, p)))]
    scale, mixtures = calibration.deviation, []
    unit = np.where(scale > 0.0, scale, 1.0)
    for rows, known in group_patterns(np.isfinite(given)):
        measured, weights = np.flatnonzero(known), np.zeros((p, p))
        if len(measured):
            # The answer to an error of one deviation in each given target.
            Z = np.full((len(measured), p), np.nan)
            Z[:, measured] = np.eye(len(measured))
            answer = calibration.correlation.condition(Z).mean  # (q, p)
            weights[:, measured] = (scale * answer / unit[measured, None]).T
        weights[measured] = 0.0
        from_mean = np.diag((~known).astype(np.float64)) - weights
        mixtures.append(Mixture(np.asarray(rows), from_mean, weights))
    return mixtures


def measured_effects(
    calibration: Calibration, given: Array, mixtures: list[Mixture]
) -> tuple[Index, Array, Array, Array]:
    """Numbers of the targets that are given in some row, (q,), and their effect, size and noise, (q, p).

    Only rows with the target given and the other not given count; NaN if there is none. Noise is
    that of unrelated errors: a correlation over N rows exceeds 2/sqrt(N), before shrinkage, once in
    twenty times.
    """
    known = np.isfinite(given)
    measured = np.flatnonzero(known.any(axis=0))
    p = given.shape[1]
    deviation = np.array([given[known[:, target], target].std() for target in measured])  # (q,)
    sums, squares, counts = (np.zeros((len(measured), p)) for _ in range(3))
    for rows, _, weights in mixtures:
        pattern = known[rows[0]] if len(rows) else np.zeros(p, dtype=bool)
        counted = np.outer(pattern[measured], ~pattern)
        sums += len(rows) * np.where(counted, weights.T[measured], 0.0)
        squares += len(rows) * np.where(counted, weights.T[measured] ** 2, 0.0)
        counts += len(rows) * counted
    counts = np.where(counts > 0.0, counts, np.nan)
    scale = calibration.deviation
    chance = 2.0 * (1.0 - calibration.shrinkage) / np.sqrt(calibration.residuals.n_rows)
    ratio = scale / np.where(scale > 0.0, scale, 1.0)[measured, None]  # (q, p)
    unit = deviation[:, None]
    return measured, unit * sums / counts, unit * np.sqrt(squares / counts), unit * chance * ratio


def noise_coefficients(
    fit: Fit, calibration: Calibration, n_draws: int, rng: np.random.Generator
) -> Array:
    """Coefficients (n_draws, p, m) of models with the features and settings of ``fit``, fitted to noise.

    Kernels are learned in closed form.

    Notes
    -----
    Let E (n, p) be errors of covariance S, independent of the inputs. In the coordinates of the
    problem, where the moments of the features are diag(scale), the moments sum_i phi_i e_i^T have
    the covariance diag(scale) kron S. So the moments are drawn, without any rows, and the model is
    fitted to them. If a share s of a target is measured, its errors are divided by sqrt(s).

    Time n_draws times that of `fit_problem`.
    """
    problem = fit.problem
    settings, root = fit.settings._replace(solver="closed-form"), np.sqrt(problem.scale)[:, None]
    coefs = np.zeros((n_draws, problem.n_outputs, problem.n_features))
    # The first draws are for the longest axes, so that the order of the axes does not matter.
    order = np.argsort(np.argsort(-problem.scale, kind="stable"))
    for draw in range(n_draws):
        B = root * _draw_errors(len(root), fit, calibration, rng)[order]  # (m', p)
        if B.any():
            coefs[draw] = fit_problem(_with_targets(problem, B), settings).linear.coef
    return coefs


def noise_of_average(
    parts: Sequence[NoisePart],
    X: Any,
    fit: Fit,
    calibration: Calibration,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Coefficients (n_draws, p, sum of m) of averages over feature maps, fitted to noise.

    They are fitted on the rows X in place of the training rows. ``fit`` is the best candidate, for
    the total weight and the missing targets of the training rows.

    Notes
    -----
    All parts are fitted to the same errors E (n, p), so that their sum varies as the average does.
    With a training weight of W, a row has the weight W / n, and errors are multiplied by
    sqrt(n / W), so that the moments have the covariance of those of the training rows.

    Time for every part that of `reduce_rows`, and n_draws times n m p and that of `fit_problem`.
    """
    weight, p = fit.problem.weight, fit.problem.n_outputs
    features = [
        np.asarray(X if part.feature_map is None else map_features(part.feature_map, X))
        for part in parts
    ]
    n = len(features[0])
    draws = [_draw_errors(n, fit, calibration, rng) * np.sqrt(n / weight) for _ in range(n_draws)]
    parts_coefs = [np.zeros((n_draws, p, Phi.shape[1])) for Phi in features]
    if not any(E.any() for E in draws):
        return np.concatenate(parts_coefs, axis=2)
    for part, Phi, coefs in zip(parts, features, parts_coefs, strict=True):
        problem, _ = reduce_rows(Phi, draws[0], np.full(n, weight / n), centred=fit.problem.centred)
        Z = (Phi - problem.mean_phi) @ problem.features  # (n, m')
        settings = part.settings._replace(solver="closed-form")
        for draw, E in enumerate(draws):
            targets = _with_targets(problem, (weight / n) * Z.T @ E)
            coefs[draw] = part.share[:, None] * fit_problem(targets, settings).linear.coef
    return np.concatenate(parts_coefs, axis=2)


def _with_targets(problem: Problem, B: Array) -> Problem:
    """The problem with other moments of features with targets, B (m', p), for a kernel in closed form.

    The outputs get a basis of the row space of B. The norms of the alignment do not matter here.
    """
    m, p = B.shape
    outputs = np.eye(p) if m >= p else np.asarray(qr(B.T, mode="economic")[0])
    targets = B @ outputs  # (m', k)
    b, ones = targets / np.sqrt(problem.scale)[:, None], outputs.sum(axis=0)
    whitened = Alignment(C=None, B=b, q=b, g=None, ones=ones, norms=(1.0, 1.0), n_outputs=p)
    return replace(problem, targets=targets, outputs=outputs, whitened=whitened, missing=None)


def _draw_errors(n: int, fit: Fit, calibration: Calibration, rng: np.random.Generator) -> Array:
    """Errors of n rows, (n, p), larger for targets with missing values."""
    measured = np.clip(fit.problem.target_weight / fit.problem.weight, np.finfo(float).tiny, None)
    unit, correlation = calibration.deviation / np.sqrt(measured), calibration.correlation  # (p,)
    shared = rng.normal(size=(n, len(correlation.factor))) @ correlation.factor
    single = rng.normal(size=(n, fit.problem.n_outputs)) * np.sqrt(correlation.unshared)
    return np.asarray((shared + single) * unit)


def _overall(sizes: Array, deviation: Array) -> Array:
    """Root mean square over targets, the last axis, of sizes in deviations of the targets.

    Targets that do not vary, and sizes that are NaN, are left out.
    """
    relative = sizes / np.where(deviation > 0.0, deviation, np.nan)
    known = np.isfinite(relative)
    squares = np.where(known, relative, 0.0) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=-1) / np.maximum(known.sum(axis=-1), 1)))


def _noise_level(draws: Array) -> Array:
    """A bound that sizes of noise (draws, ...) exceed once in twenty times: mean plus two deviations."""
    return np.asarray(draws.mean(axis=0) + 2.0 * draws.std(axis=0))
