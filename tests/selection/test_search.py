import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from tests.reference import dense

from entangled_kernels import ForestFeatures
from entangled_kernels.learning import FitSettings, Moments, RowSample
from entangled_kernels.selection import (
    SearchSettings,
    TargetUnits,
    scale_weights,
    search_moments,
    search_rows,
    weight_unit,
)

pytestmark = pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas:UserWarning")

KERNELS = [FitSettings(shrinkage=1.0), FitSettings(shrinkage=0.5)]
ALPHAS = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
MAPS = {0: StandardScaler(), 1: PolynomialFeatures(2, include_bias=False)}


def settings(**options):
    return SearchSettings(**({"kernels": KERNELS, "alphas": ALPHAS} | options))


def predict(selected, X):
    Phi = X if selected.feature_map is None else selected.feature_map.transform(X)
    return selected.linear.predict(Phi)


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
    found = search_rows(
        X, Y, None, {0: StandardScaler()}, splits, settings(scoring=scoring)
    ).cv_results
    unit = Y.var(axis=0) if scoring == "nmse" else 1.0
    for place, (shrinkage, alpha) in enumerate(
        zip(found["param_shrinkage"], found["param_alpha"], strict=True)
    ):
        member = KERNELS[int(shrinkage < 1.0)]
        for number, (train, test) in enumerate(splits):
            values = refitted(X, Y, member, alpha, train, test)
            expected = np.mean(np.mean((Y[test] - values) ** 2, axis=0) / unit)
            assert found[f"split{number}_test_score"][place] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_one_candidate_is_kept_and_scored_by_other_splits(make_rows, rule):
    X, Y = make_rows(24, 3, 2)
    splits = list(KFold(4).split(X))
    found = search_rows(X, Y, None, {0: StandardScaler()}, splits, settings(selection=rule))
    np.testing.assert_array_equal(found.linear.coef, found.best.fit.linear.coef)
    errors = np.stack([found.cv_results[f"split{i}_test_score"] for i in range(4)])
    assert found.best.error == pytest.approx(errors.mean(axis=0)[found.best.index])
    assert found.weights is None
    if rule == "best":
        for split, (train, test) in enumerate(splits):
            place = np.delete(errors, split, axis=0).mean(axis=0).argmin()
            member = KERNELS[place // len(ALPHAS)]
            values = refitted(X, Y, member, ALPHAS[place % len(ALPHAS)], train, test)
            rows = np.isin(found.residuals.row, test)
            residuals = found.residuals.values[rows]
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
        np.testing.assert_allclose(other.weights, first.weights, atol=1e-6)
        assert other.score.score == pytest.approx(first.score.score)


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
    own = settings(fit_intercept=centred)
    parts = [Moments.from_arrays(X[test], Y[test], weight[test]) for _, test in splits]
    cells = np.broadcast_to(weight[:, None], Y.shape)
    sample = RowSample(X, Y, cells, part, np.arange(40, dtype=np.uint64))
    found = search_moments(parts, sample, None, own)
    # Columns as they are need not be fitted in folds.
    rows = search_rows(X, Y, weight, {0: None}, splits, own)
    np.testing.assert_allclose(found.linear.coef, rows.linear.coef, rtol=1e-6, atol=1e-9)
    assert found.score.score == pytest.approx(rows.score.score, rel=1e-6)
    assert found.kernel_ridge_score.score == pytest.approx(rows.kernel_ridge_score.score, rel=1e-6)
    later = search_moments(parts, sample, None, own, ordered=True)
    assert later.n_splits == 3
    blocks = search_rows(X, Y, weight, {0: None}, splits, own, most_numbers=40)
    np.testing.assert_allclose(blocks.linear.coef, rows.linear.coef, rtol=1e-6, atol=1e-9)


def test_wide_targets_weigh_candidates_together(make_rows):
    X, Y = make_rows(20, 3, 50)
    found = search_rows(X, Y, None, MAPS, list(KFold(4).split(X)), settings())
    assert found.weights.shape == (20,)
    assert found.target_scores is None
    assert found.residuals.values.shape == (20, 50)
    squares = np.mean(found.residuals.values**2, axis=0)
    assert found.score.score == pytest.approx(np.mean(squares / Y.var(axis=0)))


def test_jobs_repeats_reports_and_units(make_rows):
    X, Y = make_rows(20, 3, 2)
    splits, seen = list(RepeatedKFold(n_splits=4, n_repeats=2, random_state=0).split(X)), []
    one, two = (
        search_rows(
            X, Y, None, MAPS, splits, settings(n_jobs=n), report=lambda *step: seen.append(step)
        )
        for n in (1, 2)
    )
    assert seen == 2 * [(place, 16) for place in range(1, 17)]
    np.testing.assert_array_equal(predict(one, X), predict(two, X))
    assert len(one.residuals.row) == 40
    assert one.residuals.weight.sum() == pytest.approx(20.0)
    units = TargetUnits(np.exp(Y), np.exp)
    row, residuals = one.residuals.row, one.residuals.values
    squares = (np.exp(Y)[row] - np.exp(Y[row] - residuals)) ** 2
    found = search_rows(X, Y, None, MAPS, splits, settings(), units=units).score
    assert found.score == pytest.approx(np.mean(squares.mean(axis=0) / np.exp(Y).var(axis=0)))


def test_a_constant_target_is_left_alone(make_rows):
    X, Y = make_rows(24, 3, 2)
    wider = np.column_stack([Y, np.full(24, 0.1)])
    splits = list(KFold(4).split(X))
    found, own = (
        search_rows(X, targets, None, MAPS, splits, settings(kernels=KERNELS[:1]))
        for targets in (wider, Y)
    )
    np.testing.assert_allclose(predict(found, X)[:, 2], 0.1)
    assert found.score.score == pytest.approx(own.score.score, rel=1e-6)
    assert np.isnan(found.target_scores[:, 2]).all()
