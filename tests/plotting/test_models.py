"""Displays of a learned kernel: its path, its spectrum, the search, and held-out predictions."""

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.kernels import KrausKernel
from entangled_kernels.linalg import partial_transpose_eigenvalues, separable_kraus
from entangled_kernels.plotting import (
    AlignmentPathDisplay,
    EntanglementSpectrumDisplay,
    HeldOutDisplay,
    SelectionDisplay,
)
from entangled_kernels.uncertainty import HeldOut


def test_draws_the_history_below_the_maximum(model):
    display = AlignmentPathDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.ax_.get_lines()[0].get_ydata(), model.alignment_history_)
    assert display.maximum >= model.alignment_history_.max() - 1e-12
    words = " ".join(text.get_text() for text in display.ax_.texts)
    assert f"{display.maximum:.3f}" in words
    assert model.stop_reason_ in words


def test_a_closed_form_is_a_point(make_rows):
    model = EntangledKernelRidge().fit(*make_rows(20, 4, 3))
    display = AlignmentPathDisplay.from_estimator(model)
    assert len(display.history) == 1
    assert "in closed form" in display.ax_.texts[-1].get_text()


@pytest.mark.parametrize("history", [[], [[0.1, 0.2]]])
def test_errors_of_a_path_name_the_argument(history):
    with pytest.raises(ValueError, match="history must have shape"):
        AlignmentPathDisplay(history)


def test_spectrum_is_that_of_the_dense_matrix(model):
    kernel = model.kernel_
    display = EntanglementSpectrumDisplay.from_estimator(model)
    D = kernel.choi / np.trace(kernel.choi)
    dense = partial_transpose_eigenvalues(D, (kernel.n_features, kernel.n_outputs))
    nonzero = np.abs(dense) > 1e-10
    drawn = np.concatenate([line.get_ydata() for line in display.axes_[0].get_lines()[1:]])
    np.testing.assert_allclose(np.sort(drawn), dense[nonzero], atol=1e-12)
    negative = display.axes_[0].get_lines()[-1]
    assert negative.get_marker() == "v"
    assert -negative.get_ydata().sum() == pytest.approx(kernel.negativity())
    assert "entangled" in display.axes_[0].get_title()


def test_bars_are_shares_of_the_schmidt_values(model):
    display = EntanglementSpectrumDisplay.from_estimator(model)
    heights = np.array([bar.get_height() for bar in display.axes_[1].patches])
    values = model.kernel_.schmidt_values()
    np.testing.assert_allclose(heights, (values**2 / np.sum(values**2))[: len(heights)])
    assert heights[0] == pytest.approx(model.kernel_.entanglement().separable_share)


def test_a_separable_kernel_has_one_bar_and_nothing_negative():
    kernel = KrausKernel(separable_kraus(np.array([[2.0, 1.0], [1.0, 2.0]]), 3))
    display = EntanglementSpectrumDisplay.from_kernel(kernel)
    assert display.eigenvalues.min() >= -1e-12
    assert len(display.axes_[1].patches) == 1
    assert display.axes_[0].get_title() == "Partial transpose: separable"
    assert not any(
        "negative" in text.get_text() for text in display.axes_[0].get_legend().get_texts()
    )


def test_errors_of_a_spectrum_name_the_argument():
    with pytest.raises(ValueError, match="must not be empty or zero"):
        EntanglementSpectrumDisplay([], [1.0])
    with pytest.raises(ValueError, match="must not be empty or zero"):
        EntanglementSpectrumDisplay([1.0], [0.0])


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


def test_errors_of_a_search_name_the_argument():
    with pytest.raises(ValueError, match=r"errors must have shape \(1, 2\), shrinkages by alphas"):
        SelectionDisplay([0.1, 1.0], [0.0], [[1.0]])
    with pytest.raises(ValueError, match="at least one finite number"):
        SelectionDisplay([0.1], [0.0], [[np.nan]])


def made(n):
    measured = np.random.default_rng(0).normal(size=(n, 2))
    predicted = measured + 0.1
    predicted[0, 1] += 5.0
    measured[1, 1] = np.nan
    return HeldOut(measured, predicted, predicted - 1.0, predicted + 1.0)


def test_rows_inside_and_outside_of_their_intervals_look_apart():
    display = HeldOutDisplay(made(20), 1, "zinc").plot()
    inside, outside, diagonal = display.ax_.lines
    assert (len(inside.get_xdata()), len(outside.get_xdata())) == (18, 1)
    assert display.ax_.get_title() == "zinc"
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert 1 not in display.rows_


def test_without_rows_there_is_nothing_to_draw():
    empty = HeldOut(*(np.full((3, 1), np.nan) for _ in range(4)))
    assert len(HeldOutDisplay(empty).plot().rows_) == 0
