from dataclasses import replace

import numpy as np
import pytest
from entangled_kernels.selection.errors import member_factors

from entangled_kernels.learning import FitSettings, SolverOptions, fit_problem, reduce_rows
from entangled_kernels.selection import Member, Search, average_candidates, decide, refit
from entangled_kernels.selection.candidates import Grid

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.0, 0.5, 0.1, None, "partial_trace"),
    Member("closed-form", 0.5, 0.0, 0.1, None, "entangled"),
]
ALPHAS = np.array([0.1, 1.0, 10.0])


def search_of(target_errors, **options):
    grid = Grid(MEMBERS, ALPHAS)
    p = target_errors.shape[-1]
    return Search(grid, [], target_errors, np.full(p, 1.0 / p), 1.0, **options)


@pytest.fixture
def rows(make_rows):
    return make_rows(30, 4, 3)


@pytest.mark.parametrize("p", [1, 3])
def test_weights_of_searches_add_up_to_one(rng, p):
    searches = [search_of(rng.uniform(0.9, 1.0, size=(6, 3, 3, p))) for _ in range(2)]
    weights = decide(searches, "average").weights
    assert all(own.shape == (3, 3, p) for own in weights)
    np.testing.assert_allclose(sum(own.sum(axis=(0, 1)) for own in weights), np.ones(p))


def test_a_search_that_knows_its_noise_has_a_ballot_for_its_process(rng):
    errors = rng.uniform(0.9, 1.0, size=(6, 3, 3, 1))
    searches = [search_of(errors), search_of(errors, noise=1.0), search_of(errors, noise=0.5)]
    decision = decide(searches, "average")
    assert [ballot.search for ballot in decision.ballots] == [0, 1, 2, 1]
    # Kernel ridge is the first member, and the noise the second alpha.
    expected = np.zeros((3, 3, 1))
    expected[0, 1] = 1.0
    for without in (None, 3):
        np.testing.assert_array_equal(decision.ballots[3].weights(without), expected)
    # It counts for nothing until shares are known.
    np.testing.assert_array_equal(decision.shares[:, 0], [1 / 3, 1 / 3, 1 / 3, 0.0])
    shared = replace(decision, shares=np.array([[0.5], [0.0], [0.0], [0.5]]))
    assert shared.used() == sorted({0, 1, decision.place})
    np.testing.assert_array_equal(shared.weights[1], 0.5 * expected)


@pytest.mark.parametrize("by_target", [True, False])
def test_an_average_is_the_weighted_mean_of_its_candidates(rows, rng, by_target):
    Phi, Y = rows
    searches = [search_of(np.ones((1, 3, 3, 1))) for _ in range(2)]
    weights = [rng.uniform(size=(3, 3, 3 if by_target else 1)) for _ in searches]
    total = sum(own.sum(axis=(0, 1)) for own in weights)
    weights = [own / total for own in weights]
    maps = [Phi, Phi[:, :2] ** 2]
    problems = {i: reduce_rows(own, Y, None, centred=True)[0] for i, own in enumerate(maps)}
    model = average_candidates(searches, weights, problems, SolverOptions())
    expected = np.zeros_like(Y)
    for place, own in enumerate(maps):
        problem = problems[place]
        for number, (_, factor) in enumerate(member_factors(problem, MEMBERS, SolverOptions())):
            for a, coef in enumerate(factor.coefficients(ALPHAS)):
                value = problem.mean_y + (own - problem.mean_phi) @ problem.expand_coef(coef).T
                expected += weights[place][number, a] * value
    np.testing.assert_allclose(model.predict(np.hstack(maps)), expected, rtol=1e-9)


def test_the_best_of_all_feature_maps_is_chosen(rng):
    worse, better = (rng.uniform(low, low + 0.5, size=(4, 3, 3, 2)) for low in (1.0, 0.1))
    searches = [search_of(worse), search_of(better), search_of(worse + 1.0)]
    decision = decide(searches, "best")
    assert decision.place == 1
    assert decision.used() == [1]
    assert decision.weights is None
    assert decision.flat_weights() is None
    assert decision.choice.error == pytest.approx(decision.table["mean_test_score"].min())
    assert decision.index == decision.table["mean_test_score"].argmin()
    assert decision.table["param_feature_map"][decision.index] == 1
    assert decision.target_scores.shape == (3 * 9, 2)
    average = replace(decide(searches, "average"), shares=np.array([[0.0], [1.0], [0.0]]))
    assert average.used() == [1]
    assert average.flat_weights().shape == (3 * 9, 2)
    assert not average.flat_weights()[:9].any()


def test_what_was_decided_is_fitted_on_all_rows(rows, rng):
    Phi, Y = rows
    problem = reduce_rows(Phi, Y, None, centred=True)[0]
    searches = [search_of(rng.uniform(size=(4, 3, 3, 1)))]
    for rule in ("best", "average"):
        decision = decide(searches, rule)
        settings = FitSettings(**decision.choice.parameters())
        fit, linear = refit(searches, decision, [problem], settings, SolverOptions())
        np.testing.assert_array_equal(fit.linear.coef, fit_problem(problem, settings).linear.coef)
        if rule == "best":
            assert linear is fit.linear
        else:
            expected = average_candidates(searches, decision.weights, {0: problem}, SolverOptions())
            np.testing.assert_array_equal(linear.coef, expected.coef)
            np.testing.assert_array_equal(linear.intercept, expected.intercept)
