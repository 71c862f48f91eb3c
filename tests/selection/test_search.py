import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from tests.reference import dense

from entangled_kernels import ForestFeatures
from entangled_kernels.learning import FitSettings, Moments, RowSample
from entangled_kernels.model import fit_target_scale
from entangled_kernels.parameters import weight_unit
from entangled_kernels.selection import (
    SearchSettings,
    scale_weights,
    search_moments,
    search_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas:UserWarning")

KERNELS = [FitSettings(shrinkage=1.0), FitSettings(shrinkage=0.5)]
ALPHAS = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
MAPS = {0: StandardScaler(), 1: PolynomialFeatures(2, include_bias=False)}


def settings(**options):
    return SearchSettings(**({"kernels": KERNELS, "alphas": ALPHAS} | options))


def predict(selected, X):
    return selected.model.predict(X)[0]


def refitted(X, Y, member, alpha, train, test):
    """The held-out rows by a dense fit on standardised columns of the training rows."""
    scaler = StandardScaler().fit(X[train])
    Phi, Z = scaler.transform(X[train]), scaler.transform(X[test])
    D = dense.closed_form(
        Phi, Y[train], member.alignment_mix, member.target_alpha, member.shrinkage
    )
    return dense.ridge_predict(Phi, Y[train], D, alpha, Z)


@pytest.mark.parametrize("scoring", ["nmse", "mse"])
def test_errors_are_those_of_refits_in_every_split(make_rows, scoring):
    X, Y = make_rows(24, 3, 2)
    splits = list(KFold(3).split(X))
    results = search_rows(
        X, Y, None, {0: StandardScaler()}, splits, settings(scoring=scoring)
    ).results.table
    unit = Y.var(axis=0) if scoring == "nmse" else 1.0
    for candidate, (shrinkage, alpha) in enumerate(
        zip(results["param_shrinkage"], results["param_alpha"], strict=True)
    ):
        member = KERNELS[int(shrinkage < 1.0)]
        for number, (train, test) in enumerate(splits):
            values = refitted(X, Y, member, alpha, train, test)
            expected = np.mean(np.mean((Y[test] - values) ** 2, axis=0) / unit)
            assert results[f"split{number}_test_score"][candidate] == pytest.approx(
                expected, rel=1e-6
            )


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_one_candidate_is_kept_and_scored_by_other_splits(make_rows, rule):
    X, Y = make_rows(24, 3, 2)
    splits = list(KFold(4).split(X))
    selected = search_rows(X, Y, None, {0: StandardScaler()}, splits, settings(selection=rule))
    model = selected.model
    np.testing.assert_array_equal(model.linear.coef, selected.best.model.linear.coef)
    errors = np.stack([selected.results.table[f"split{i}_test_score"] for i in range(4)])
    assert selected.results.best_error == pytest.approx(
        errors.mean(axis=0)[selected.results.best_index]
    )
    assert selected.results.weights is None
    if rule == "best":
        for split, (train, test) in enumerate(splits):
            best = np.delete(errors, split, axis=0).mean(axis=0).argmin()
            member = KERNELS[best // len(ALPHAS)]
            values = refitted(X, Y, member, ALPHAS[best % len(ALPHAS)], train, test)
            residuals = model.residuals.values[np.isin(model.residuals.row, test)]
            np.testing.assert_allclose(residuals, Y[test] - values, rtol=1e-4, atol=1e-6)


def test_results_do_not_depend_on_the_scale_of_weights(make_rows, rng):
    """Even for trees, in which a rounding decides between equally good splits."""
    X, Y = make_rows(30, 3, 2)
    weight = rng.uniform(0.5, 2.0, size=30)[:, None] * (rng.random(Y.shape) < 0.8)
    Y = np.where(weight > 0.0, Y, np.nan)
    maps, splits = {0: ForestFeatures(random_state=0, n_estimators=20)}, list(KFold(5).split(X))
    first, *others = (
        search_rows(X, Y, scale * weight, maps, splits, settings(alphas=None))
        for scale in (1.0, 1e-6, 1e6)
    )
    for other in others:
        np.testing.assert_allclose(predict(other, X), predict(first, X), rtol=1e-6)
        np.testing.assert_allclose(other.results.weights, first.results.weights, atol=1e-6)
        assert other.results.score.score == pytest.approx(first.results.score.score)


def test_whole_weights_are_numbers_of_equal_rows():
    assert weight_unit(np.array([3.0, 0.0, 6.0])) == 3.0
    np.testing.assert_array_equal(scale_weights(np.array([3.0, 0.0, 6.0])), [1.0, 0.0, 2.0])
    assert weight_unit(np.array([[1.0, 0.0], [0.5, 2.0]])) == 1.0
    assert weight_unit(np.array([1.0, 1.5])) == 1.25


@pytest.mark.parametrize("centred", [True, False])
def test_moments_of_parts_give_what_the_rows_give(make_rows, rng, centred):
    X, Y = make_rows(40, 3, 2)
    weight = rng.uniform(0.5, 2.0, size=40)
    part = np.arange(40) % 4
    splits = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(4)]
    options = settings(fit_intercept=centred)
    parts = [Moments.from_arrays(X[test], Y[test], weight[test]) for _, test in splits]
    weights = np.broadcast_to(weight[:, None], Y.shape)
    sample = RowSample(X, Y, weights, part, np.arange(40, dtype=np.uint64))
    streamed = search_moments(parts, sample, None, options)
    # Columns as they are need not be fitted in folds.
    rows = search_rows(X, Y, weight, {0: None}, splits, options)
    expected = pytest.approx(rows.model.linear.coef, rel=1e-6, abs=1e-9)
    assert streamed.model.linear.coef == expected
    assert streamed.results.score.score == pytest.approx(rows.results.score.score, rel=1e-6)
    assert streamed.results.kernel_ridge_score.score == pytest.approx(
        rows.results.kernel_ridge_score.score, rel=1e-6
    )
    assert search_moments(parts, sample, None, options, ordered=True).results.n_splits == 3
    blocks = search_rows(X, Y, weight, {0: None}, splits, options, most_numbers=40)
    assert blocks.model.linear.coef == expected


def test_wide_targets_weigh_candidates_together(make_rows):
    X, Y = make_rows(20, 3, 50)
    selected = search_rows(X, Y, None, MAPS, list(KFold(4).split(X)), settings())
    assert selected.results.weights.shape == (20,)
    assert selected.results.target_scores is None
    assert selected.model.residuals.values.shape == (20, 50)
    squares = np.mean(selected.model.residuals.values**2, axis=0)
    assert selected.results.score.score == pytest.approx(np.mean(squares / Y.var(axis=0)))


def test_jobs_repeats_reports_and_units(make_rows):
    X, Y = make_rows(20, 3, 2)
    splits, seen = list(RepeatedKFold(n_splits=4, n_repeats=2, random_state=0).split(X)), []
    one, two = (
        search_rows(
            X, Y, None, MAPS, splits, settings(n_jobs=n), report=lambda *step: seen.append(step)
        )
        for n in (1, 2)
    )
    assert seen == 2 * [(step, 16) for step in range(1, 17)]
    np.testing.assert_array_equal(predict(one, X), predict(two, X))
    assert len(one.model.residuals.row) == 40
    assert one.model.residuals.weight.sum() == pytest.approx(20.0)
    log = fit_target_scale("log", np.exp(Y), None, ["a", "b"])
    row, residuals = one.model.residuals.row, one.model.residuals.values
    squares = (np.exp(Y)[row] - np.exp(Y[row] - residuals)) ** 2
    score = search_rows(X, Y, None, MAPS, splits, settings(), scale=log).results.score
    assert score.score == pytest.approx(np.mean(squares.mean(axis=0) / np.exp(Y).var(axis=0)))


def test_a_constant_target_is_left_alone(make_rows):
    X, Y = make_rows(24, 3, 2)
    wider = np.column_stack([Y, np.full(24, 0.1)])
    splits = list(KFold(4).split(X))
    selected, without = (
        search_rows(X, targets, None, MAPS, splits, settings(kernels=KERNELS[:1]))
        for targets in (wider, Y)
    )
    np.testing.assert_allclose(predict(selected, X)[:, 2], 0.1)
    assert selected.results.score.score == pytest.approx(without.results.score.score, rel=1e-6)
    assert np.isnan(selected.results.target_scores[:, 2]).all()
