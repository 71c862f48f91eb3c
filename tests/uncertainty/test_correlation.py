"""Correlations of errors: estimated and shrunk, conditioned on given targets, and used to plan."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.uncertainty import (
    Correlation,
    choose_shares,
    estimate_correlation,
    group_patterns,
    information,
    plan_measurements,
)

from reference import cells as dense
from reference import correlation as slow

SEEDS = st.integers(0, 10**6)


def draw(seed, r, p):
    rng = np.random.default_rng(seed)
    return Correlation(rng.normal(size=(r, p)), rng.uniform(0.1, 1.0, size=p)), rng


def draw_errors(n, p, rho, seed=0):
    rng = np.random.default_rng(seed)
    R = np.full((p, p), rho) + (1.0 - rho) * np.eye(p)
    return rng.multivariate_normal(np.zeros(p), R, size=n), rng


def variance_left(correlation, known):
    return correlation.condition(np.where(known, 0.0, np.nan)[None]).variance[0]


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(0, 12), st.integers(1, 12))
def test_conditioning_is_that_of_the_dense_covariance(seed, r, p):
    """Whether the factor is shorter or longer than what is known, and if nothing or all is known."""
    correlation, rng = draw(seed, r, p)
    R = correlation.dense()
    np.testing.assert_allclose(np.diag(R), correlation.diagonal())
    Z = np.where(rng.random((9, p)) < 0.5, rng.normal(size=(9, p)), np.nan)
    Z[0], Z[1] = np.nan, 1.0
    found = correlation.condition(Z, with_covariance=True)
    for i in range(9):
        mean, covariance = dense.condition(R, Z[i])
        np.testing.assert_allclose(found.mean[i], mean, atol=1e-8)
        np.testing.assert_allclose(found.covariance[i], covariance, atol=1e-8)
        np.testing.assert_allclose(found.variance[i], np.diag(covariance), atol=1e-8)
    np.testing.assert_array_equal(found.mean[1], Z[1])
    assert correlation.condition(Z).covariance is None


def test_many_targets_with_a_short_factor():
    correlation, rng = draw(0, 3, 200)
    Z = np.where(np.arange(200) < 150, rng.normal(size=200), np.nan)[None]
    mean, _ = dense.condition(correlation.dense(), Z[0])
    np.testing.assert_allclose(correlation.condition(Z).mean[0], mean, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(2, 8))
def test_knowing_more_is_never_worse(seed, r, p):
    correlation, rng = draw(seed, r, p)
    order, before = rng.permutation(p), correlation.diagonal()
    for count in range(p + 1):
        known = np.isin(np.arange(p), order[:count])
        variance = variance_left(correlation, known)
        assert (variance <= before + 1e-9).all()
        assert (variance[known] == 0.0).all()
        before = variance


def test_unrelated_targets_tell_nothing():
    correlation = Correlation.identity(4)
    found = correlation.condition(np.array([[2.0, np.nan, np.nan, 1.0]]))
    np.testing.assert_array_equal(found.mean, [[2.0, 0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(found.variance, [[0.0, 1.0, 1.0, 0.0]])
    assert correlation.n_outputs == 4


@pytest.mark.parametrize("shape", [(40, 5), (6, 12)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shares", [(0.7, 0.0), (0.3, 0.5), (0.0, 0.9)])
def test_estimate_is_the_mean_of_two_correlations_and_the_identity(shape, weighted, shares):
    Z, rng = draw_errors(*shape, 0.6)
    weight = rng.uniform(0.5, 2.0, size=shape[0]) if weighted else np.ones(shape[0])
    found = estimate_correlation(Z, weight, np.array(shares))
    np.testing.assert_allclose(found.dense(), slow.mean_correlation(Z, weight, shares), atol=1e-10)
    assert len(found.factor) <= shape[1]


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 12), st.integers(1, 8), st.booleans())
def test_every_estimate_is_a_positive_definite_correlation(seed, n, p, holes):
    """With missing values, constant targets, one target, and more targets than rows."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    Z[:, rng.random(p) < 0.2] = 0.0
    if holes:
        Z[rng.random((n, p)) < 0.4] = np.nan
    shares = rng.dirichlet(np.ones(3))[:2] * 0.99
    found = estimate_correlation(Z, rng.uniform(0.5, 2.0, size=n), shares).dense()
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert np.linalg.eigvalsh(found).min() >= 0.99 * (1.0 - shares.sum())
    constant = ~np.nan_to_num(Z).any(axis=0)
    assert not found[np.ix_(constant, ~constant)].any()


def test_many_targets_keep_a_short_factor():
    Z, rng = draw_errors(6, 600, 0.6)
    found = estimate_correlation(Z, np.ones(6), choose_shares(Z, np.ones(6), rng))
    assert len(found.factor) <= 6


def test_missing_values_count_the_pairs_that_have_both():
    Z, rng = draw_errors(4000, 3, 0.8)
    holes = np.where(rng.random(Z.shape) < 0.5, np.nan, Z)
    for shares in ((0.995, 0.0), (0.0, 0.995)):
        found = estimate_correlation(holes, np.ones(4000), np.array(shares)).dense()
        np.testing.assert_allclose(found, np.corrcoef(Z.T), atol=0.05)
    # Targets that were never measured together are taken as unrelated, and the matrix stays psd.
    apart = np.where(
        np.arange(100)[:, None] % 2 == np.array([0, 1, 1]), draw_errors(100, 3, 0.9)[0], np.nan
    )
    found = estimate_correlation(apart, np.ones(100), np.array([0.5, 0.4])).dense()
    assert abs(found[0, 1]) < 1e-9
    assert np.linalg.eigvalsh(found).min() > 0.0


def draw_patterns(p, seed):
    """The targets that `choose_shares` takes as given, with a generator of the same seed."""
    rng = np.random.default_rng(seed)
    halves = [rng.permutation(p)[: p // 2].tolist() for _ in range(8)]
    rest = [[o for o in range(p) if o not in half] for half in halves]
    return [*halves, *rest, *([o] for o in rng.permutation(p)[:8])]


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.integers(5, 20), st.integers(2, 4), st.sampled_from([0.3, 0.8, 0.99]))
def test_shares_by_their_definition(seed, n, p, rho):
    Z, rng = draw_errors(n, p, rho, seed)
    Z[0] *= 10.0
    weight = rng.uniform(0.5, 2.0, size=n)
    found = choose_shares(Z, weight, np.random.default_rng(seed))
    expected = slow.choose_shares(Z, weight, draw_patterns(p, seed))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    # Neither the unit of the weights nor the sign of a target matters.
    for other in ((Z, 8.0 * weight), (Z * np.where(np.arange(p) == 0, -1.0, 1.0), weight)):
        again = choose_shares(*other, np.random.default_rng(seed))
        np.testing.assert_allclose(again, found, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("rho", "low", "high"), [(0.0, 0.0, 0.1), (0.9, 0.6, 1.0)])
@pytest.mark.parametrize("holes", [False, True])
def test_unrelated_targets_are_not_used_and_related_ones_are(rho, low, high, holes):
    chosen = []
    for seed in range(5):
        Z, rng = draw_errors(60, 4, rho, seed)
        if holes:
            Z[rng.random(Z.shape) < 0.2] = np.nan
        chosen.append(choose_shares(Z, np.ones(60), rng).sum())
    assert low <= np.median(chosen) <= high


def conditional_error(Z_train, Z_test, rng):
    """Error of single targets given all others, over that without, with the shares that are chosen."""
    shares = choose_shares(Z_train, np.ones(len(Z_train)), rng)
    correlation = estimate_correlation(Z_train, np.ones(len(Z_train)), shares)
    errors, p = [], Z_train.shape[1]
    for target in range(p):
        known = np.where(np.arange(p) == target, np.nan, Z_test)
        errors.append(np.mean((Z_test - correlation.condition(known).mean)[:, target] ** 2))
    return np.mean(errors) / np.mean(Z_test**2)


def test_strongly_related_targets_do_not_hurt():
    """Sixteen targets, few rows, and relations of the held-out rows that new rows have in part."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        factor = rng.normal(size=(3, 16))
        Z = rng.normal(size=(30, 3)) @ factor + 0.3 * rng.normal(size=(30, 16))
        new = rng.normal(size=(400, 3)) @ (factor * rng.choice([0.0, 1.0], size=(3, 1)))
        new += rng.normal(size=(400, 16))
        unit = np.sqrt(np.mean(Z**2, axis=0))
        ratios.append(conditional_error(Z / unit, new / unit, rng))
    assert np.mean(ratios) < 1.0


def test_errors_with_heavy_tails_neither_hide_a_relation_nor_make_one():
    found = {}
    for rho in (0.0, 0.9):
        for seed in range(8):
            Z, rng = draw_errors(440, 4, rho, seed)
            Z /= np.sqrt(rng.chisquare(1.5, size=(440, 1)) / 1.5)
            Z = Z / np.sqrt(np.mean(Z[:40] ** 2, axis=0))
            # New errors without the few that are far out, which would decide alone.
            near = np.abs(Z[40:]).max(axis=1) < 1.0
            found.setdefault(rho, []).append(conditional_error(Z[:40], Z[40:][near], rng))
    assert max(found[0.0]) < 1.1
    assert np.mean(found[0.0]) < 1.02
    assert np.mean(found[0.9]) < 0.4
    assert max(found[0.9]) < 0.9


@pytest.mark.slow
def test_shares_with_many_targets_and_rows_and_with_too_few():
    Z, rng = draw_errors(320, 70, 0.9)
    assert choose_shares(Z, np.ones(320), rng).sum() >= 0.7
    for n, p in ((30, 1), (3, 4)):
        Z, rng = draw_errors(n, p, 0.9)
        assert not choose_shares(Z, np.ones(n), rng).any()
    assert not choose_shares(np.zeros((20, 3)), np.ones(20), rng).any()


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(0, 30), st.integers(0, 20))
def test_every_row_is_in_the_group_of_its_pattern(seed, n, p):
    known = np.random.default_rng(seed).random((n, p)) < 0.5
    groups = list(group_patterns(known))
    assert sorted(row for rows, _ in groups for row in rows) == list(range(n))
    assert all((known[rows] == pattern).all() for rows, pattern in groups)
    assert len(groups) == (len(np.unique(known, axis=0)) if p else min(n, 1))


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(2, 6))
def test_information_is_the_share_of_variance_removed(seed, p):
    correlation, _ = draw(seed, 2, p)
    found = information(correlation)
    for a in range(p):
        left = variance_left(correlation, np.arange(p) == a)
        np.testing.assert_allclose(found[a], 1.0 - left / correlation.diagonal(), atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(2, 6))
def test_a_plan_takes_the_best_next_measurement(seed, p):
    correlation, rng = draw(seed, 2, p)
    importance, cost = rng.uniform(0.5, 2.0, size=p), rng.uniform(0.5, 2.0, size=p)
    known = rng.random(p) < 0.3
    plan = plan_measurements(correlation, known, importance, cost)
    assert sorted(plan.order) == np.flatnonzero(~known).tolist()
    total = importance @ variance_left(correlation, known)
    for target, reduction in zip(plan.order, plan.reduction, strict=True):
        before = importance @ variance_left(correlation, known)
        gains = {
            other: before - importance @ variance_left(correlation, known | (np.arange(p) == other))
            for other in np.flatnonzero(~known)
        }
        np.testing.assert_allclose(reduction * total, gains[target], atol=1e-7)
        assert (
            gains[target] / cost[target]
            >= max(gains[other] / cost[other] for other in gains) - 1e-7
        )
        known = known | (np.arange(p) == target)
    if len(plan.order):
        np.testing.assert_allclose(plan.reduction.sum(), 1.0, atol=1e-6)
