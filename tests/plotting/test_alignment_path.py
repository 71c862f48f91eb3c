import numpy as np
import pytest
from sklearn.base import clone

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.plotting import AlignmentPathDisplay


def test_draws_the_history_below_the_maximum(model):
    display = AlignmentPathDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.ax_.get_lines()[0].get_ydata(), model.alignment_history_)
    assert display.maximum >= model.alignment_history_.max() - 1e-12
    words = " ".join(text.get_text() for text in display.ax_.texts)
    assert f"{display.maximum:.3f}" in words
    assert model.stop_reason_ in words


def test_maximum_is_what_a_solver_run_to_the_end_reaches(model, digits):
    converged = (
        clone(model)
        .set_params(solver="lbfgs", solver_params={"max_iter": 2000, "tol": 1e-5})
        .fit(digits[0], digits[2])
    )
    display = AlignmentPathDisplay.from_estimator(model)
    assert converged.alignment_history_[-1] == pytest.approx(display.maximum, abs=1e-4)


def test_a_closed_form_is_a_point(make_rows):
    model = EntangledKernelRidge().fit(*make_rows(20, 4, 3))
    display = AlignmentPathDisplay.from_estimator(model)
    assert len(display.history) == 1
    assert "in closed form" in display.ax_.texts[-1].get_text()


@pytest.mark.parametrize("history", [[], [[0.1, 0.2]]])
def test_errors_name_the_argument(history):
    with pytest.raises(ValueError, match="history must have shape"):
        AlignmentPathDisplay(history)
