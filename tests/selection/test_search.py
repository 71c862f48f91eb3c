import numpy as np
import pytest
from sklearn.model_selection import KFold

from entangled_kernels.learning import Moments, SolverOptions
from entangled_kernels.selection import (
    Member,
    MomentFolds,
    RowFolds,
    Search,
    SearchSettings,
    TableSummary,
    run_search,
)
from entangled_kernels.selection import search as module
from entangled_kernels.selection.candidates import Grid

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.0, 0.5, 0.1, None, "partial_trace"),
    Member("closed-form", 0.5, 0.0, 0.1, None, "entangled"),
]
GAINS, ALPHAS = np.array([1.0, 1.2]), np.array([0.1, 1.0, 10.0])


def settings(**options):
    plain = {"members": MEMBERS, "gains": GAINS, "alphas": ALPHAS, "options": SolverOptions()}
    return SearchSettings(**(plain | options))


@pytest.fixture
def rows(make_rows, rng):
    Phi, Y = make_rows(30, 4, 3)
    return Phi, Y, rng.uniform(0.5, 2.0, size=30), list(KFold(3).split(Phi))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("alphas", [ALPHAS, None])
def test_one_search_for_rows_and_for_moments(rows, centred, alphas):
    Phi, Y, weight, splits = rows
    parts = [Moments.from_arrays(Phi[test], Y[test], weight[test]) for _, test in splits]
    own, seen = settings(alphas=alphas), []
    of_rows = run_search(
        TableSummary.from_rows(Phi, Y, weight, centred=centred),
        RowFolds(Phi, Y, weight, splits, centred=centred),
        own,
        lambda done, total: seen.append((done, total)),
    )
    total = sum(parts[1:], parts[0])
    of_moments = run_search(
        TableSummary.from_moments(total, centred=centred), MomentFolds([parts], centred=centred), own
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert of_rows.by_target
    np.testing.assert_allclose(of_moments.grid.alphas, of_rows.grid.alphas, rtol=1e-12)
    np.testing.assert_allclose(of_moments.target_errors, of_rows.target_errors, rtol=1e-8)
    np.testing.assert_allclose(of_moments.output_weights, of_rows.output_weights, rtol=1e-12)


def test_results_do_not_depend_on_the_number_of_jobs(rows):
    Phi, Y, weight, splits = rows
    table = TableSummary.from_rows(Phi, Y, weight, centred=True)
    one, two = (run_search(table, RowFolds(Phi, Y, weight, splits), settings(n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.target_errors, two.target_errors)


@pytest.mark.parametrize("scoring", ["nmse", "mse"])
def test_scores_weigh_targets_by_their_variance_or_alike(rows, scoring):
    _, Y, _, _ = rows
    Y = np.column_stack([Y, np.full(30, 0.1)])
    table = TableSummary.from_rows(np.ones((30, 1)), Y, None, centred=True)
    weights = settings(scoring=scoring).score_weights(table)
    expected = np.full(4, 0.25) if scoring == "mse" else np.append(1.0 / (3.0 * Y[:, :3].var(axis=0)), 0.0)
    np.testing.assert_allclose(weights, expected)


def test_many_targets_weigh_candidates_together():
    few, many = (TableSummary(100, 1.0, np.zeros(p), np.ones(p)) for p in (64, 65))
    assert settings().by_target(few)
    assert not settings().by_target(many)
    assert not settings(averaging=False).by_target(few)
    assert settings(alpha_per_target=True).by_target(many)


def search_of(target_errors, **options):
    grid = Grid(MEMBERS, GAINS, ALPHAS)
    p = target_errors.shape[-1]
    return Search(grid, [], target_errors, np.full(p, 1.0 / p), 1.0, **options)


def test_the_best_of_alike_candidates_is_the_most_regularised(rng):
    errors = np.ones((4, 3, 2, 3, 2))
    choice = search_of(errors).choose("best")
    assert (choice.member.shrinkage, choice.gain, choice.alpha, choice.place) == (1.0, 1.0, 10.0, 2)
    errors[:, 2, 1, 0] = 0.5
    choice = search_of(errors).choose("best")
    assert choice.member is MEMBERS[2]
    assert (choice.gain, choice.alpha, choice.error) == (1.2, 0.1, 0.5)
    assert choice.place == np.ravel_multi_index((2, 1, 0), (3, 2, 3))
    assert choice.parameters()["alpha"] == 0.1


def test_targets_that_choose_apart(rng):
    """Every member with the best gain and alpha for every target, by trying them all."""
    errors = rng.uniform(0.5, 1.0, size=(5, 3, 2, 3, 4))
    choice = search_of(errors, alpha_per_target=True).choose("best")
    mean = errors.mean(axis=0)
    least = mean.min(axis=(1, 2)).mean(axis=1)
    best = int(least.argmin())
    assert choice.member is MEMBERS[best]
    assert choice.place is None
    assert choice.error == pytest.approx(least[best])
    for target in range(4):
        gain, alpha = np.unravel_index(mean[best, :, :, target].argmin(), (2, 3))
        assert choice.gain[target] == GAINS[gain]
        assert choice.alpha[target] == ALPHAS[alpha]


def test_a_table_of_all_candidates(rng):
    errors = rng.uniform(size=(4, 3, 2, 3, 2))
    table = search_of(errors).table()
    assert len(table["mean_test_score"]) == search_of(errors).n_candidates == 18
    np.testing.assert_allclose(table["split2_test_score"], errors[2].mean(axis=-1).ravel())
    np.testing.assert_allclose(table["mean_test_score"], errors.mean(axis=(0, 4)).ravel())


@pytest.fixture
def wide(make_rows, rng):
    """More axes than searches try all members on."""
    Phi, _ = make_rows(240, 140, 1)
    Y = Phi[:, :4] @ rng.normal(size=(4, 3)) + 0.5 * rng.normal(size=(240, 3))
    table = TableSummary.from_rows(Phi, Y, None, centred=True)
    return table, RowFolds(Phi, Y, None, list(KFold(4).split(Phi)))


def test_members_far_from_the_best_are_dropped_after_the_first_split(wide, monkeypatch):
    # So near that some of the few members lie beyond.
    margin = 0.02
    monkeypatch.setattr(module, "MARGINS", (margin, margin))
    whole = settings(alphas=None)
    one, two = (run_search(*wide, settings(alphas=None, n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.target_errors, two.target_errors)
    with monkeypatch.context() as patch:
        patch.setattr(module, "RACED", 1000)
        every = run_search(*wide, whole)
    tried = np.isfinite(one.target_errors).all(axis=(0, 2, 3, 4))
    assert tried[0]
    assert not tried.all()
    np.testing.assert_array_equal(one.target_errors[0], every.target_errors[0])
    np.testing.assert_array_equal(one.target_errors[:, tried], every.target_errors[:, tried])
    assert np.isinf(one.target_errors[1:, ~tried]).all()
    least = every.errors[0].min(axis=(1, 2))
    assert least[~tried].min() > (1 + margin) * least.min()
    table = one.table()
    np.testing.assert_array_equal(np.isinf(table["mean_test_score"]), np.repeat(~tried, 2 * 34))
    assert one.choose("best").error == every.choose("best").error


def test_few_cells_leave_more_members_in_the_race(wide):
    search = run_search(*wide, settings(alphas=None))
    problem, weights = search.folds[0].problem, search.output_weights
    errors = np.ones((len(search.grid.members), 1, 1, 3))
    errors[1:] += 0.03
    left = [
        module._still_in_the_race(errors, problem, search.grid, weights, n).tolist() for n in (20, 300, 10**6)
    ]
    everyone = list(range(len(search.grid.members)))
    # One over the root of 60, 900 and 3 million cells, but no more than 5%.
    assert left == [everyone, everyone, [0]]
    errors[1:] += 0.03
    assert module._still_in_the_race(errors, problem, search.grid, weights, 20).tolist() == [0]


def test_what_was_dropped_is_never_chosen(rng):
    """Not even where a constant target has no weight, or a split counts for everything."""
    errors = rng.uniform(0.5, 1.0, size=(4, 3, 2, 3, 2))
    errors[0, 1], errors[1:, 1] = 0.01, np.inf
    for apart in (False, True):
        search = Search(
            Grid(MEMBERS, GAINS, ALPHAS), [], errors, np.array([1.0, 0.0]), 1.0, alpha_per_target=apart
        )
        for rule in ("best", "one_se"):
            assert search.choose(rule).member is not MEMBERS[1]
        assert not np.isnan(search.errors).any()
        assert not np.isnan(search.votes()).any()
    assert not np.isnan(search.table()["std_test_score"]).any()
