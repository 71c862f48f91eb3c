import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.uncertainty import Correlation, information, plan_measurements


def draw(seed, p):
    rng = np.random.default_rng(seed)
    return Correlation(rng.normal(size=(2, p)), rng.uniform(0.1, 1.0, size=p)), rng


def remaining(correlation, known, importance):
    """Sum of the variances that are left, by conditioning."""
    Z = np.where(known, 0.0, np.nan)[None]
    return float(importance @ correlation.condition(Z).variance[0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_information_is_the_share_of_variance_removed(seed, p):
    correlation, _ = draw(seed, p)
    found = information(correlation)
    for a in range(p):
        known = np.arange(p) == a
        left = correlation.condition(np.where(known, 0.0, np.nan)[None]).variance[0]
        np.testing.assert_allclose(found[a], 1.0 - left / correlation.diagonal(), atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_a_plan_takes_the_best_next_measurement(seed, p):
    correlation, rng = draw(seed, p)
    importance, cost = rng.uniform(0.5, 2.0, size=p), rng.uniform(0.5, 2.0, size=p)
    known = rng.random(p) < 0.3
    plan = plan_measurements(correlation, known, importance, cost)
    assert sorted(plan.order) == np.flatnonzero(~known).tolist()
    total = remaining(correlation, known, importance)
    for target, reduction in zip(plan.order, plan.reduction, strict=True):
        before = remaining(correlation, known, importance)
        gains = {}
        for other in np.flatnonzero(~known):
            more = known | (np.arange(p) == other)
            gains[other] = before - remaining(correlation, more, importance)
        np.testing.assert_allclose(reduction * total, gains[target], atol=1e-7)
        best = max(gains[other] / cost[other] for other in gains)
        assert gains[target] / cost[target] >= best - 1e-7
        known = known | (np.arange(p) == target)
    if len(plan.order):
        np.testing.assert_allclose(plan.reduction.sum(), 1.0, atol=1e-6)


def test_nothing_left_to_measure():
    correlation, _ = draw(0, 3)
    plan = plan_measurements(correlation, np.ones(3, dtype=bool), np.ones(3), np.ones(3))
    assert plan.order.shape == plan.reduction.shape == (0,)
