"""Verdicts on simulated results: how often a mean of the same distribution agrees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from entangled_kernels.experiments.agreement import (
    AGREES,
    HIGHER,
    LOWER,
    MIN_PARTITIONS,
    TOO_FEW,
    judge,
    predicted_means,
)

LAWS = {
    "normal": lambda rng, size: rng.normal(1.0, 0.2, size),
    "skewed": lambda rng, size: rng.gamma(4.0, 0.25, size),
}


def words(law, count, n_ours, shift, n_papers, seed=0):
    """Verdicts on papers drawn from our own law, moved by so many deviations."""
    rng = np.random.default_rng(seed)
    deviation = LAWS[law](rng, 20000).std()
    verdicts = []
    for _ in range(n_papers):
        ours, paper = LAWS[law](rng, n_ours), LAWS[law](rng, count).mean() + shift * deviation
        verdicts.append(judge(ours, paper, count, rng).word)
    return np.array(verdicts)


@pytest.mark.parametrize(("law", "count"), [("normal", 3), ("normal", 10), ("skewed", 5)])
def test_a_paper_of_the_same_distribution_agrees(law, count):
    share = np.mean(words(law, count, 50, 0.0, 2000) == AGREES)
    assert 0.93 <= share <= 0.97


@pytest.mark.parametrize("shift", [-2.0, 2.0])
@pytest.mark.parametrize("count", [3, 10])
def test_a_paper_that_is_off_by_two_deviations_does_not_agree(count, shift):
    verdicts = words("normal", count, 50, shift, 300)
    assert np.mean(verdicts == (LOWER if shift < 0 else HIGHER)) >= 0.85 + 0.014 * min(count, 8)
    assert not np.any(verdicts == (HIGHER if shift < 0 else LOWER))


def test_predicted_means_have_the_variance_of_a_prediction():
    values = np.random.default_rng(1).normal(size=30)
    for count in (1, 4, 12):
        means = predicted_means(values, count, np.random.default_rng(2), 200_000)
        stretch = 30 / 29 * (t.ppf(0.975, 29) / norm.ppf(0.975)) ** 2
        expected = stretch * values.var() * (1 / count + (1 - 1 / count) / 31)
        assert means.mean() == pytest.approx(values.mean(), abs=4 * np.sqrt(expected / 200_000))
        assert means.var() == pytest.approx(expected, rel=0.02)


@given(
    st.integers(0, 2**32 - 1),
    st.floats(-5.0, 5.0),
    st.floats(0.01, 100.0),
    st.integers(1, 10),
)
def test_verdicts_do_not_depend_on_the_unit(seed, paper, scale, count):
    values = np.random.default_rng(seed).normal(size=MIN_PARTITIONS)
    first = judge(values, paper, count, np.random.default_rng(0))
    other = judge(scale * values, scale * paper, count, np.random.default_rng(0))
    assert first.word == other.word
    assert first.percentile == pytest.approx(other.percentile)
    assert first.in_errors == pytest.approx(other.in_errors, rel=1e-6, abs=1e-9)
    mirrored = judge(-values, -paper, count, np.random.default_rng(0))
    assert mirrored.percentile == pytest.approx(100.0 - first.percentile)


@given(st.integers(0, 2**32 - 1), st.floats(-2.0, 2.0), st.floats(0.0, 1.0))
def test_of_all_means_that_print_alike_the_closest_is_judged(seed, paper, unit):
    values = np.random.default_rng(seed).normal(size=30)
    exact = judge(values, paper, 5, np.random.default_rng(0))
    rounded = judge(values, paper, 5, np.random.default_rng(0), unit=unit)
    assert abs(rounded.percentile - 50.0) <= abs(exact.percentile - 50.0) + 1e-9
    assert rounded.difference == exact.difference


def test_standard_error_of_the_difference():
    values = np.tile([0.0, 2.0], 25)
    verdict = judge(values, 2.0, 4, np.random.default_rng(0), deviation=0.6)
    assert (verdict.ours, verdict.difference) == (1.0, 1.0)
    assert verdict.in_errors == pytest.approx(1.0 / np.sqrt(values.var(ddof=1) / 50 + 0.36 / 4))


def test_few_partitions_have_no_verdict_and_equal_values_agree():
    few = judge([0.1, 0.2], 5.0, 3, np.random.default_rng(0))
    assert few.word == TOO_FEW
    assert np.isnan(few.percentile)
    same = judge(np.zeros(40), 0.0, 3, np.random.default_rng(0))
    assert (same.word, same.percentile) == (AGREES, 50.0)
    assert np.isnan(same.in_errors)
