import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from entangled_kernels.selection.stacking import (
    FAR,
    HeldOutErrors,
    candidate_weights,
    choose,
    draw_in,
    simplex_shares,
)


@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 1.0]))
def test_shares_are_the_least_of_the_pulled_form_on_the_simplex(K, seed, pull):
    A, even = np.random.default_rng(seed).normal(size=(8, K)), np.full(K, 1.0 / K)
    G = A.T @ A

    def loss(w):
        return w @ G @ w + pull * np.diag(G).min() * np.sum((w - even) ** 2)

    found = simplex_shares(G, pull)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    whole = {"type": "eq", "fun": lambda w: w.sum() - 1.0}
    slow = minimize(loss, even, bounds=[(0, 1)] * K, constraints=[whole], options={"ftol": 1e-12})
    assert loss(found) <= slow.fun * (1.0 + 1e-6) + 1e-12


def test_models_that_are_alike_share_evenly_and_perfect_ones_take_all():
    np.testing.assert_allclose(simplex_shares(np.ones((3, 3)), 0.1), np.full(3, 1.0 / 3.0))
    np.testing.assert_array_equal(simplex_shares(np.diag([0.0, 1.0, 0.0]), 0.1), [0.5, 0.0, 0.5])


def errors_of(rng, K, n, q, by_target):
    values = rng.normal(size=(K, 2 * n, q)) * np.linspace(1.0, 2.0, K)[:, None, None]
    return HeldOutErrors(
        values, rng.uniform(0.5, 1.0, size=2 * n), np.tile(np.arange(n), 2), by_target
    )


@pytest.mark.parametrize("by_target", [True, False])
def test_rows_without_a_say_have_none(rng, by_target):
    errors = errors_of(rng, 3, 12, 2, by_target)
    without = np.array([1, 5])
    kept = ~np.isin(errors.row, without)
    fewer = HeldOutErrors(errors.values[:, kept], errors.weight[kept], errors.row[kept], by_target)
    assert fewer.shares().shape == (3, 2 if by_target else 1)
    changed = errors.values.copy()
    changed[:, ~kept] *= 100.0
    loud = HeldOutErrors(changed, errors.weight, errors.row, by_target)
    np.testing.assert_allclose(loud.shares(without), fewer.shares(), rtol=1e-9)
    assert not np.allclose(loud.shares(), fewer.shares())


@pytest.mark.parametrize("by_target", [True, False])
def test_missing_targets_have_no_say(rng, by_target):
    errors = errors_of(rng, 3, 10, 3, by_target)
    values = errors.values.copy()
    values[:, :, 2] = np.nan
    missing = HeldOutErrors(values, errors.weight, errors.row, by_target)
    own = HeldOutErrors(values[..., :2], errors.weight, errors.row, by_target)
    np.testing.assert_allclose(
        missing.shares()[:, : own.shares().shape[1]], own.shares(), rtol=1e-9
    )


def test_a_row_that_all_models_miss_does_not_decide(rng):
    """One model is better on every ordinary row, the other by a little on a row that both miss by far."""
    noise = rng.normal(size=60)
    values = np.stack([0.5 * noise, noise])[:, :, None]
    ordinary = HeldOutErrors(values, np.ones(60), np.arange(60), False).shares()[0, 0]
    values[:, 0, 0] = [100.0, 98.0]
    assert HeldOutErrors(values, np.ones(60), np.arange(60), False).shares()[0, 0] > ordinary - 0.1


def test_far_rows_are_drawn_in_to_so_many_deviations(rng):
    typical = np.abs(rng.normal(size=(2, 2001)))
    typical[0, 7] = 1e6
    factors = draw_in(typical, np.ones_like(typical))
    assert factors[0, 7] * 1e6 == pytest.approx(FAR, rel=0.1)
    assert np.all(factors[1] == 1.0)


def test_candidates_weigh_by_the_likelihood_of_their_errors(rng):
    errors = rng.uniform(1.0, 2.0, size=(4, 2, 3, 2))
    together, mean = candidate_weights(errors, 5.0, by_target=False), errors.mean(axis=0)
    likelihood = mean.sum(axis=-1) ** -2.5
    np.testing.assert_allclose(together[..., 0], likelihood / likelihood.sum())
    apart = candidate_weights(errors, 5.0, by_target=True)
    likelihood = (2.0 * mean + 2.0 * mean.sum(axis=-1, keepdims=True)) ** -2.5
    np.testing.assert_allclose(apart, likelihood / likelihood.sum(axis=(0, 1)))
    # Of many rows the best takes all; an error that is not finite rules out.
    errors[:, 0, 0] = np.inf
    assert np.count_nonzero(candidate_weights(errors, 1e6, by_target=False)) == 1
    assert candidate_weights(errors, 1.0, by_target=True)[0, 0].sum() == 0.0


def test_of_candidates_as_good_as_the_best_the_first_is_chosen():
    errors = np.array([[1.0, 0.5, 0.50001], [1.2, 0.7, 0.7]])
    assert choose(errors[:, ::-1]) == 0
    assert choose(errors) == 1
    assert choose(np.array([[0.58, 0.5], [0.72, 0.7]]), one_se=True) == 0
