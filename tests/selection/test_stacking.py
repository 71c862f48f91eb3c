import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from entangled_kernels.selection.stacking import (
    FAR,
    candidate_weights,
    choose_candidate,
    model_shares,
    outlier_factors,
    simplex_shares,
)


@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 1.0]))
def test_shares_minimise_the_penalised_form_on_the_simplex(K, seed, penalty):
    A, even = np.random.default_rng(seed).normal(size=(8, K)), np.full(K, 1.0 / K)
    G = A.T @ A

    def loss(w):
        return w @ G @ w + penalty * np.diag(G).min() * np.sum((w - even) ** 2)

    found = simplex_shares(G, penalty)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    whole = {"type": "eq", "fun": lambda w: w.sum() - 1.0}
    slow = minimize(loss, even, bounds=[(0, 1)] * K, constraints=[whole], options={"ftol": 1e-12})
    assert loss(found) <= slow.fun * (1.0 + 1e-6) + 1e-12


def test_models_that_are_alike_share_evenly_and_perfect_ones_take_all():
    np.testing.assert_allclose(simplex_shares(np.ones((3, 3)), 0.1), np.full(3, 1.0 / 3.0))
    np.testing.assert_array_equal(simplex_shares(np.diag([0.0, 1.0, 0.0]), 0.1), [0.5, 0.0, 0.5])


def errors_of(rng, K, n, q):
    scale = np.linspace(1.0, 2.0, K)[:, None, None]
    return rng.normal(size=(K, n, q)) * scale, rng.uniform(0.5, 1.0, size=n)


@pytest.mark.parametrize("by_target", [True, False])
def test_missing_targets_do_not_count(rng, by_target):
    errors, weight = errors_of(rng, 3, 20, 3)
    errors[:, :, 2] = np.nan
    shares = model_shares(errors, weight, by_target=by_target)
    assert shares.shape == (3, 3 if by_target else 1)
    present = model_shares(errors[..., :2], weight, by_target=by_target)
    np.testing.assert_allclose(shares[:, : present.shape[1]], present, rtol=1e-9)


@pytest.mark.parametrize("by_target", [True, False])
def test_weights_are_repeated_errors(rng, by_target):
    errors, _ = errors_of(rng, 3, 20, 2)
    counts = rng.integers(0, 3, size=20)
    shares = model_shares(errors, counts * 1.0, by_target=by_target)
    repeated = np.repeat(errors, counts, axis=1)
    expected = model_shares(repeated, np.ones(counts.sum()), by_target=by_target)
    np.testing.assert_allclose(shares, expected, rtol=1e-6, atol=1e-9)


def test_an_outlier_does_not_decide(rng):
    """One model is better on ordinary rows, the other is slightly better on an outlier."""
    noise = rng.normal(size=60)
    errors = np.stack([0.5 * noise, noise])[:, :, None]
    ordinary = model_shares(errors, np.ones(60), by_target=False)[0, 0]
    errors[:, 0, 0] = [100.0, 98.0]
    assert model_shares(errors, np.ones(60), by_target=False)[0, 0] > ordinary - 0.1


def test_outliers_are_scaled_to_so_many_deviations(rng):
    typical = np.abs(rng.normal(size=(2, 2001)))
    typical[0, 7] = 1e6
    factors = outlier_factors(typical, np.ones_like(typical))
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
    assert choose_candidate(errors[:, ::-1]) == 0
    assert choose_candidate(errors) == 1
    assert choose_candidate(np.array([[0.58, 0.5], [0.72, 0.7]]), one_se=True) == 0
