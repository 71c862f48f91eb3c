from dataclasses import replace

import numpy as np
import pytest
from entangled_kernels.selection.errors import candidate_errors
from entangled_kernels.selection.observed_fold import ObservedFold
from sklearn.model_selection import KFold

from entangled_kernels.learning import SolverOptions
from entangled_kernels.selection.candidates import GRID, Grid, grid_members
from entangled_kernels.selection.folds import RowFolds

MEMBERS = grid_members(
    {**GRID, "shrinkage": (0.0, 0.5, 1.0), "alignment_mix": (0.5, 1.0), "target_alpha": (0.1,)}, max_iter=5
)
CANDIDATES = Grid(MEMBERS, np.logspace(-3, 2, 6))


@pytest.fixture
def fold(make_rows):
    X, Y = make_rows(20, 4, 3)
    (split, *_) = KFold(4).split(X)
    made = next(RowFolds(X, Y, None, [split]).folds(np.full(3, 1 / 3)))
    return made, Y[split[1]]


def test_complete_cells_give_the_errors_of_moments(fold):
    made, Y = fold
    observed = ObservedFold.of(made, Y, np.ones_like(Y), np.full(3, 1 / 3))
    for by_target in (False, True):
        found = candidate_errors(observed, CANDIDATES, SolverOptions(), by_target=by_target)
        expected = candidate_errors(made, CANDIDATES, SolverOptions(), by_target=by_target)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)


def test_errors_are_means_over_measured_cells(fold):
    made, Y = fold
    weight = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 1.0], [0.5, 0.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 1.0]])
    holes = np.where(weight > 0, Y, np.nan)
    observed = ObservedFold.of(made, holes, weight, np.array([0.5, 0.25, 0.25]))
    coef = np.random.default_rng(0).normal(size=(2, *made.problem.targets.shape))
    found = observed.target_errors(coef)
    for a in range(2):
        values = made.predictions(coef[a] @ made.basis.T, np.ones(1))
        for o in (0, 2):
            mean = np.average((Y - values)[:, o] ** 2, weights=weight[:, o])
            np.testing.assert_allclose(found[a, o] / made.weight, mean)
    # A target without any measured cell does not count.
    assert np.isnan(found[..., 1]).all()
    expected = (0.5 * found[..., 0] + 0.25 * found[..., 2]) / 0.75
    np.testing.assert_allclose(observed.error(coef), expected)


def test_what_only_errors_need_is_dropped(fold):
    made, Y = fold
    observed = ObservedFold.of(made, Y, np.ones_like(Y), np.full(3, 1 / 3))
    slim = observed.for_predictions()
    assert slim.targets.size == slim.cell_weight.size == slim.C.size == 0
    coef = np.ones((len(made.problem.scale), 3))
    np.testing.assert_array_equal(slim.predictions(coef, np.ones(1)), made.predictions(coef, np.ones(1)))
    with pytest.raises(ValueError, match="without its held-out rows"):
        ObservedFold.of(replace(made, rows=None), Y, np.ones_like(Y), np.ones(3))


def test_targets_that_are_not_judged_have_no_prediction(fold):
    made, Y = fold
    weight = np.ones_like(Y)
    weight[:, 1] = 0.0
    observed = ObservedFold.of(made, Y, weight, np.full(3, 1 / 3)).for_predictions()
    coef = np.ones((len(made.problem.scale), 3))
    expected = made.predictions(coef, np.ones(1))
    found = observed.predictions(coef, np.ones(1))
    np.testing.assert_array_equal(found[:, [0, 2]], expected[:, [0, 2]])
    assert np.isnan(found[:, 1]).all()
