import numpy as np
import pytest
from entangled_kernels.selection.weights import (
    ROUNDING,
    bootstrap_weights,
    bootstrap_winners,
    choose,
    one_standard_error,
    split_draws,
)


def test_first_among_equals():
    errors = np.array([[2.0, 1.00005, 1.0], [2.0, 1.00005, 1.0]])
    assert choose(errors) == 1
    assert choose(errors, 0.0) == 2
    assert choose(errors, 1.0) == 0


def test_standard_error_is_of_the_best():
    errors = np.array([[5.0, 1.0], [5.0, 2.0], [5.0, 3.0]])
    assert one_standard_error(errors) == pytest.approx(1.0 / np.sqrt(3))
    assert one_standard_error(errors[:1]) == 0.0


def test_weights_are_shared_where_errors_cannot_tell(rng):
    clear = np.array([[1.0, 2.0, 3.0]] * 10)
    np.testing.assert_array_equal(bootstrap_weights(clear), [1, 0, 0])
    noise = rng.normal(1.0, 0.1, size=(10, 4))
    weights = bootstrap_weights(noise)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).sum() >= 2
    np.testing.assert_array_equal(weights, bootstrap_weights(noise))


def test_weights_are_the_chances_of_being_best():
    """With two candidates and two splits the chance is known: the share of the first split is uniform."""
    errors = np.array([[0.0, 1.0], [3.0, 0.0]])
    # Best is the first candidate when 3 (1 - u) < u, that is u > 3/4.
    assert bootstrap_weights(errors)[0] == pytest.approx(0.25, abs=0.05)


def test_repeats_count_once(rng):
    errors = rng.normal(1.0, 0.3, size=(5, 3))
    once, again = bootstrap_weights(errors), bootstrap_weights(np.tile(errors, (8, 1)), 8.0)
    np.testing.assert_allclose(once, again, atol=0.08)


def test_equals_go_to_the_first():
    np.testing.assert_array_equal(bootstrap_weights(np.ones((6, 3))), [1, 0, 0])


def test_rounding_does_not_share_out_the_weights(rng):
    """Candidates that are the same but for rounding count as the first of them."""
    errors = np.repeat(rng.uniform(1.0, 2.0, size=(20, 1)), 3, axis=1)
    errors *= 1.0 + 1e-13 * rng.normal(size=errors.shape)
    np.testing.assert_array_equal(bootstrap_weights(errors), [1.0, 0.0, 0.0])


def test_candidates_that_cannot_win_change_nothing(rng):
    """Those that are worse than another on every split may come and go."""
    errors = rng.uniform(1.0, 2.0, size=(20, 30))
    worse = errors + rng.uniform(0.1, 1.0, size=errors.shape)
    alone, beside = bootstrap_weights(errors), bootstrap_weights(np.hstack([errors, worse]))
    np.testing.assert_array_equal(beside[:30], alone)
    assert np.count_nonzero(alone) > 3
    # Without leaving any out.
    draws = np.random.default_rng(0).gamma(1.0, size=(500, 20)) @ errors
    np.testing.assert_allclose(alone, np.bincount(draws.argmin(axis=1), minlength=30) / 500)


def test_an_infinite_error_rules_a_candidate_out(rng):
    errors = rng.uniform(1.0, 2.0, size=(6, 5))
    dropped = np.insert(errors, 2, np.append(0.1, np.full(5, np.inf)), axis=1)
    np.testing.assert_array_equal(bootstrap_weights(dropped), np.insert(bootstrap_weights(errors), 2, 0.0))


@pytest.mark.parametrize("n_candidates", [7, 256, 257, 3000])
@pytest.mark.parametrize("dropped", [0, 3])
@pytest.mark.parametrize(("n_splits", "n_repeats"), [(20, 4.0), (5, 1.0), (1, 1.0)])
def test_winners_are_those_of_every_draw(rng, n_candidates, dropped, n_splits, n_repeats):
    """Candidates side by side are alike, as those of neighbouring alphas are, and three voters disagree."""
    slow, fast = (rng.normal(size=(n_splits, n, 3)) for n in (1, n_candidates))
    errors = 1.0 + np.cumsum(0.01 * fast, axis=1) ** 2 + 0.1 * slow**2
    errors[n_splits // 2 :, :dropped] = np.inf
    found = bootstrap_winners(errors, n_repeats)
    for voter in range(3):
        means = split_draws(n_splits, n_repeats) @ errors[:, dropped:, voter]
        least = means <= (1.0 + ROUNDING) * means.min(axis=1, keepdims=True)
        np.testing.assert_array_equal(found[:, voter], least.argmax(axis=1) + dropped)
    assert len(np.unique(found)) > 2 or n_splits == 1
