from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.features import EvidenceFeatures
from entangled_kernels.learning import SolverOptions
from entangled_kernels.selection import (
    HeldOutPredictions,
    Member,
    RefittedFolds,
    RowFolds,
    SearchSettings,
    TableSummary,
    decide,
    predict_held_out,
    run_search,
)

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.5, 0.5, 0.1, None, "entangled"),
]


def search_of(feature_map, X, Y, weight, splits, *, centred=True, averaging=True):
    table = TableSummary.from_rows(X, Y, weight, centred=centred)
    settings = SearchSettings(MEMBERS, np.array([0.1, 1.0, 10.0]), SolverOptions(), averaging=averaging)
    if feature_map is None:
        return run_search(table, RowFolds(X, Y, weight, splits, centred), settings)
    return run_search(table, RefittedFolds(X, Y, weight, splits, centred, feature_map=feature_map), settings)


def member_predictions(feature_map, member, alpha, X, Y, weight, split, centred):
    """A candidate fitted to the training rows of a split, and its predictions of the others."""
    train, test = split
    model = EntangledKernelRidge(feature_map, fit_intercept=centred, **member.parameters(), alpha=alpha)
    return model.fit(X[train], Y[train], None if weight is None else weight[train]).predict(X[test])


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(20, 4, 3), (12, 20, 3), (12, 3, 20)])
def test_averages_are_those_of_candidates_fitted_in_each_fold(make_rows, rng, centred, shape):
    """The weights of a split come from the draws in which it hardly counts."""
    X, Y = make_rows(*shape)
    weight = rng.uniform(0.5, 2.0, size=len(Y))
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    maps = [None, StandardScaler()]
    searches = [search_of(own, X, Y, weight, splits, centred=centred) for own in maps]
    decision = decide(searches, "average")
    found = predict_held_out(searches, decision, "average", SolverOptions())
    assert sorted(found.index) == list(range(len(Y)))
    for number, split in enumerate(splits):
        rows = found.split == number
        np.testing.assert_array_equal(found.index[rows], split[1])
        for place, ballot in enumerate(decision.ballots):
            weights, grid = ballot.weights(without=number), searches[place].grid
            expected = np.zeros((len(split[1]), shape[2]))
            for m, a in np.argwhere(weights.any(axis=2)):
                settings = grid.members[m], grid.alphas[a]
                own = member_predictions(maps[place], *settings, X, Y, weight, split, centred)
                expected += weights[m, a] * own
            np.testing.assert_allclose(found.values[place, rows], expected, atol=1e-7 * np.abs(Y).max())
    assert (found.relative_variance > 1.0).all()


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_one_candidate_is_chosen_by_the_other_splits(make_rows, rule):
    X, Y = make_rows(24, 4, 2)
    splits = list(KFold(4).split(X))
    search = search_of(None, X, Y, None, splits, averaging=False)
    decision = decide([search], rule)
    found = predict_held_out([search], decision, rule, SolverOptions())
    for number, split in enumerate(splits):
        others = replace(search, target_errors=np.delete(search.target_errors, number, axis=0))
        choice = decide([others], rule).choice
        expected = member_predictions(None, choice.member, choice.alpha, X, Y, None, split, True)
        np.testing.assert_allclose(found.values[0, np.isin(found.index, split[1])], expected, atol=1e-8)
        # As that of new rows is.
        held, model = split[1], EntangledKernelRidge(**decision.choice.parameters())
        spread = model.fit(X[split[0]], Y[split[0]])._fit.relative_variance(X[held])
        np.testing.assert_allclose(found.relative_variance[np.isin(found.index, held)], spread, rtol=1e-8)


def test_rows_that_not_all_searches_have_are_left_out(make_rows):
    """Of features that take much memory only a sample of the rows is kept."""
    X, Y = make_rows(24, 3, 2)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    searches = [search_of(own, X, Y, None, splits) for own in (None, StandardScaler())]
    whole = predict_held_out(searches, decide(searches, "average"), "average", SolverOptions())
    kept = [fold.rows.index[::-2] for fold in searches[1].folds]
    folds = [fold.only(index) for fold, index in zip(searches[1].folds, kept, strict=True)]
    some = [searches[0], replace(searches[1], folds=folds)]
    found = predict_held_out(some, decide(some, "average"), "average", SolverOptions())
    assert set(found.index) == set(np.concatenate(kept))
    places = [int(np.flatnonzero(whole.index == row)[0]) for row in found.index]
    np.testing.assert_allclose(found.values, whole.values[:, places], rtol=1e-12)
    np.testing.assert_allclose(found.relative_variance, whole.relative_variance[places], rtol=1e-12)


def test_of_many_rows_some_are_predicted(make_rows, monkeypatch):
    monkeypatch.setattr("entangled_kernels.selection.out_of_fold.sample_size", lambda width: 12)
    X, Y = make_rows(40, 3, 2)
    search = search_of(None, X, Y, None, list(KFold(4).split(X)))
    found = predict_held_out([search], decide([search], "average"), "average", SolverOptions())
    np.testing.assert_array_equal(np.bincount(found.index // 10), [3, 3, 3, 3])


def test_no_rows_no_predictions(make_rows):
    X, Y = make_rows(24, 4, 2)
    search = search_of(None, X, Y, None, list(KFold(3).split(X)))
    bare = replace(search, folds=[replace(fold, rows=None) for fold in search.folds])
    assert predict_held_out([bare], decide([bare], "average"), "average", SolverOptions()) is None
    with pytest.raises(ValueError, match="without its held-out rows"):
        bare.folds[0].predictions(np.zeros((4, 2)), np.ones(1))


def test_residuals_of_copies_share_the_weight_of_their_row():
    found = HeldOutPredictions(np.array([0, 2, 1, 0]), np.zeros((4, 2)), np.ones(4))
    Y = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 6.0]])
    residuals = found.residuals(Y, np.array([2.0, 0.0, 1.0]))
    np.testing.assert_array_equal(residuals.row, [0, 2, 0])
    np.testing.assert_array_equal(residuals.weight, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(residuals.values, [[1.0, np.nan], [5.0, 6.0], [1.0, np.nan]])
    cells = np.array([[2.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(found.residuals(Y, cells).values[2], [3.0, np.nan])


def test_errors_of_the_model_that_is_kept_are_honest(make_rows):
    """Held-out residuals are about as large as those of fresh rows, not as those of training rows."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(540, 5))
        Y = np.sin(X @ rng.normal(size=(5, 3))) + 0.5 * rng.normal(size=(540, 3))
        model = EntangledKernelRidgeCV(EvidenceFeatures(random_state=0), random_state=0).fit(X[:40], Y[:40])
        fresh = np.mean((Y[40:] - model.predict(X[40:])) ** 2)
        ratios.append(np.mean(model._fit.residuals.values**2) / fresh)
    assert 0.85 < np.exp(np.mean(np.log(ratios))) < 1.25
