import numpy as np
import pytest
from entangled_kernels.selection.errors import candidate_errors
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning import SolverOptions
from entangled_kernels.learning.missing import fill_rows
from entangled_kernels.selection import BlankFolds, RefittedFolds
from entangled_kernels.selection.candidates import Grid, Member

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.5, 0.5, 0.1, None, "entangled"),
]
GRID = Grid(MEMBERS, np.array([0.1, 1.0, 10.0]))


@pytest.fixture
def holes(make_rows, rng):
    X, Y = make_rows(30, 4, 3)
    weight = (rng.random(Y.shape) > 0.4).astype(float)
    weight[:3] = 1.0
    return X, np.where(weight > 0, Y, np.nan), weight


@pytest.mark.parametrize("feature_map", [None, StandardScaler()])
def test_errors_are_those_of_refitting_on_filled_rows(holes, feature_map):
    """Blanks are filled in from the training rows alone, and measured cells are counted."""
    X, Y, weight = holes
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    source = BlankFolds(X, Y, weight, splits, feature_map=feature_map, shrinkage=0.5)
    for (train, test), make in zip(splits, source.folds(np.full(3, 1 / 3)), strict=True):
        train, test = (index[weight[index].any(axis=1)] for index in (train, test))
        found = candidate_errors(make(), GRID, SolverOptions(), by_target=True)
        Phi = X if feature_map is None else StandardScaler().fit(X[train]).transform(X)
        filled, _ = fill_rows(Phi[train], Y[train], weight[train], centred=True, shrinkage=0.5)
        for m, member in enumerate(MEMBERS):
            for a, alpha in enumerate(GRID.alphas):
                model = EntangledKernelRidge(**member.parameters(), alpha=alpha)
                values = model.fit(Phi[train], filled).predict(Phi[test])
                errors = np.nanmean((Y[test] - values) ** 2, axis=0)
                np.testing.assert_allclose(found[m, a], errors, rtol=1e-6)


def test_complete_rows_are_as_without_blanks(make_rows):
    X, Y = make_rows(24, 3, 2)
    splits = list(KFold(3).split(X))
    weights = np.full(2, 0.5)
    blank = BlankFolds(X, Y, np.ones_like(Y), splits, feature_map=StandardScaler())
    plain = RefittedFolds(X, Y, None, splits, feature_map=StandardScaler())
    for left, right in zip(blank.folds(weights), plain.folds(weights), strict=True):
        errors = [candidate_errors(make(), GRID, SolverOptions()) for make in (left, right)]
        np.testing.assert_allclose(*errors, rtol=1e-7)


def test_a_fold_needs_measured_targets_in_both_parts(holes):
    X, Y, weight = holes
    weight[:10] = 0.0
    source = BlankFolds(X, Y, weight, [(np.arange(10, 30), np.arange(10))])
    with pytest.raises(ValueError, match="measured targets in both of its parts"):
        next(source.folds(np.ones(3)))()


def test_a_target_without_a_training_cell_is_not_judged(holes):
    X, Y, weight = holes
    weight[10:, 2] = 0.0
    source = BlankFolds(X, Y, weight, [(np.arange(10, 30), np.arange(10))])
    errors = candidate_errors(next(source.folds(np.ones(3)))(), GRID, SolverOptions(), by_target=True)
    assert np.isnan(errors[..., 2]).all()
    assert np.isfinite(errors[..., :2]).all()
