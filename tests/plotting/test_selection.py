import numpy as np
import pytest

from entangled_kernels.plotting import SelectionDisplay


def test_surface_is_the_least_error_of_each_pair(search):
    display = SelectionDisplay.from_estimator(search)
    table = search.cv_results_
    assert display.errors.shape == (3, 4)
    for row, shrinkage in enumerate([0.0, 0.5, 1.0]):
        for column, alpha in enumerate([0.001, 0.01, 0.1, 1.0]):
            pair = (table["param_shrinkage"] == shrinkage) & (table["param_alpha"] == alpha)
            assert display.errors[row, column] == table["mean_test_score"][pair].min()
    drawn = display.ax_.collections[0].get_array()
    np.testing.assert_array_equal(np.asarray(drawn).reshape(3, 4), display.errors)


def test_choice_is_marked(search):
    display = SelectionDisplay.from_estimator(search)
    best = search.best_params_
    assert display.chosen == [(best["alpha"], best["shrinkage"])]
    (star,) = display.ax_.get_lines()
    assert star.get_marker() == "*"
    assert 10 ** star.get_xdata()[0] == pytest.approx(best["alpha"])
    assert [0.0, 0.5, 1.0][int(star.get_ydata()[0])] == best["shrinkage"]


def test_holes_and_equal_errors_can_be_drawn():
    display = SelectionDisplay([0.1, 1.0], [0.0, 1.0], [[0.5, np.nan], [0.5, 0.5]]).plot()
    display.figure_.canvas.draw()
    drawn = np.ma.concatenate([np.ma.ravel(mesh.get_array()) for mesh in display.ax_.collections])
    assert np.ma.count(np.ma.masked_invalid(drawn)) == 3


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"errors must have shape \(1, 2\), shrinkages by alphas"):
        SelectionDisplay([0.1, 1.0], [0.0], [[1.0]])
    with pytest.raises(ValueError, match="at least one finite number"):
        SelectionDisplay([0.1], [0.0], [[np.nan]])
