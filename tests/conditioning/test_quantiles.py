import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.uncertainty import HALF_OWN, score_quantile, target_quantiles


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 60), st.sampled_from([0.5, 0.7, 0.8]))
def test_the_new_row_is_one_more(seed, n, coverage):
    """Split conformal prediction: the ceil((n + 1) coverage)-th smallest score."""
    scores = np.random.default_rng(seed).normal(size=n)
    rank = int(np.ceil((n + 1) * coverage - 1e-9))
    expected = np.sort(scores)[rank - 1]
    assert score_quantile(scores, np.ones(n), n, coverage) == expected
    # Copies of a row share its weight.
    doubled = score_quantile(np.repeat(scores, 2), np.full(2 * n, 0.5), n, coverage)
    assert doubled == expected


def test_coverage_on_average():
    rng = np.random.default_rng(0)
    covered = [rng.normal() <= score_quantile(rng.normal(size=20), np.ones(20), 20, 0.8) for _ in range(4000)]
    # The 17th of 21 equally likely places.
    assert abs(np.mean(covered) - 17 / 21) < 0.02


def test_more_than_the_rows_can_show():
    scores = np.arange(1.0, 11.0)
    with pytest.warns(UserWarning, match="10 rows cannot show what covers 0.99 of new ones, only 0.909"):
        assert score_quantile(scores, np.ones(10), 10, 0.99) > 10.0


def test_targets_pool_their_scores_where_rows_are_few():
    rng = np.random.default_rng(1)
    for n, low, high in ((20, 0.0, 0.6), (5000, 0.95, 1.01)):
        scores = np.abs(rng.normal(size=(n, 2))) * [1.0, 3.0]
        small, large = target_quantiles(scores, np.ones(n), n, 0.8)
        own = [score_quantile(scores[:, o], np.ones(n), n, 0.8) for o in range(2)]
        # Between the pooled quantile and the target's own.
        assert low <= (large - small) / (own[1] - own[0]) <= high


def test_a_target_that_was_not_measured_takes_the_pooled_quantile():
    scores = np.column_stack([np.arange(1.0, 21.0), np.full(20, np.nan)])
    quantiles = target_quantiles(scores, np.ones(20), 20, 0.8)
    np.testing.assert_array_equal(quantiles, [17.0, 17.0])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 40), st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.7]))
def test_targets_mix_their_own_scores_with_all(seed, n, p, coverage):
    """The mass of every score, target by target, as it is defined."""
    rng = np.random.default_rng(seed)
    scores, weight = np.round(np.abs(rng.normal(size=(n, p))), 1), rng.uniform(0.5, 2.0, size=n)
    scores[rng.random((n, p)) < 0.3] = np.nan
    scores[0] = 1.0
    share, known = n / (n + HALF_OWN), np.isfinite(scores)
    mass = known * weight[:, None]
    for target, found in enumerate(target_quantiles(scores, weight, n, coverage)):
        mixed = (1.0 - share) * mass / mass.sum()
        mixed[:, target] += share * mass[:, target] / mass[:, target].sum()
        assert found == score_quantile(scores[known], mixed[known], n, coverage)
