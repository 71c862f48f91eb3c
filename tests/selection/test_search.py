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
from entangled_kernels.selection.candidates import Grid

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.0, 0.5, 0.1, None, "partial_trace"),
    Member("closed-form", 0.5, 0.0, 0.1, None, "entangled"),
]
ALPHAS = np.array([0.1, 1.0, 10.0])


def settings(**options):
    plain = {"members": MEMBERS, "alphas": ALPHAS, "options": SolverOptions()}
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


def search_of(target_errors):
    p = target_errors.shape[-1]
    return Search(Grid(MEMBERS, ALPHAS), [], target_errors, np.full(p, 1.0 / p), 1.0)


def test_the_best_of_alike_candidates_is_the_most_regularised():
    errors = np.ones((4, 3, 3, 2))
    choice = search_of(errors).choose("best")
    assert (choice.member.shrinkage, choice.alpha, choice.place) == (1.0, 10.0, 2)
    errors[:, 2, 0] = 0.5
    choice = search_of(errors).choose("best")
    assert choice.member is MEMBERS[2]
    assert (choice.alpha, choice.error, choice.place) == (0.1, 0.5, 6)
    assert choice.parameters() == MEMBERS[2].parameters() | {"alpha": 0.1}


def test_a_table_of_all_candidates(rng):
    errors = rng.uniform(size=(4, 3, 3, 2))
    table = search_of(errors).table()
    assert len(table["mean_test_score"]) == search_of(errors).n_candidates == 9
    np.testing.assert_allclose(table["split2_test_score"], errors[2].mean(axis=-1).ravel())
    np.testing.assert_allclose(table["mean_test_score"], errors.mean(axis=(0, 3)).ravel())
