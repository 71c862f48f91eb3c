import numpy as np
import pytest

from entangled_kernels.learning import Moments, reduce_moments
from entangled_kernels.learning.cell_moments import CellMoments
from entangled_kernels.learning.completion import (
    FILL_ALPHA,
    complete_moments,
    reduce_cell_rows,
    reduce_cells,
)

from reference import cells as dense


def draw(seed, n=16, m=4, p=3):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m)) + 2.0
    weight = (rng.random((n, p)) > 0.4).astype(float)
    weight[:2] = 1.0
    return Phi, Phi[:, :2] @ rng.normal(size=(2, p)) + rng.normal(size=(n, p)), weight


@pytest.mark.parametrize("centred", [True, False])
def test_blanks_are_predictions_of_each_targets_own_rows(centred):
    Phi, Y, weight = draw(0)
    filled = dense.filled_targets(Phi, Y, weight, FILL_ALPHA, fit_intercept=centred)
    expected = Moments.from_arrays(Phi, filled)
    found = complete_moments(CellMoments.from_arrays(Phi, Y, weight), centred=centred)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-10)
    np.testing.assert_allclose(found.C, expected.C, atol=1e-9)
    np.testing.assert_allclose(found.B, expected.B, atol=1e-9)
    np.testing.assert_allclose(np.diag(found.V), np.diag(expected.V), rtol=1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_nothing_is_filled_in_where_nothing_is_blank(centred):
    Phi, Y, _ = draw(1)
    whole = Moments.from_arrays(Phi, Y)
    found = complete_moments(CellMoments.of_complete(whole), centred=centred)
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(found.scatter, whole.scatter, atol=1e-9)


@pytest.mark.parametrize("shape", [(16, 4, 3), (9, 14, 3)])
@pytest.mark.parametrize("centred", [True, False])
def test_rows_and_moments_give_one_problem(shape, centred):
    Phi, Y, weight = draw(2, *shape)
    problem, cells, kept = reduce_cell_rows(Phi, Y, weight, centred=centred)
    whole = CellMoments.from_arrays(Phi, Y, weight)
    other, _ = reduce_cells(whole, centred=centred)
    assert (kept is None) == (shape[1] > shape[0])
    completed = reduce_moments(complete_moments(whole, centred=centred), centred=centred)
    np.testing.assert_allclose(np.sort(problem.scale), np.sort(completed.scale), rtol=1e-8)
    np.testing.assert_allclose(np.sort(other.scale), np.sort(completed.scale), rtol=1e-8)
    # The cells are those of the features in the coordinates of the problem.
    expected = CellMoments.from_arrays(Phi @ problem.features, Y, weight)
    for (_, left), (_, right) in zip(cells.groups, expected.groups, strict=True):
        np.testing.assert_allclose(left.scatter, right.scatter, atol=1e-9)
        np.testing.assert_allclose(left.mean, right.mean, atol=1e-9)


def test_features_that_do_not_vary():
    Phi, Y, weight = draw(3)
    found = complete_moments(CellMoments.from_arrays(np.ones_like(Phi), Y, weight), centred=True)
    np.testing.assert_allclose(found.mean_y, np.nansum(Y * weight, axis=0) / weight.sum(axis=0))
    assert not found.B.any()
