import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.model import Explanation
from entangled_kernels.plotting import ExplanationDisplay


def made(d, p):
    size = np.arange(1.0, 1.0 + d * p).reshape(d, p)
    return Explanation(
        [f"in{j}" for j in range(d)],
        [f"out{o}" for o in range(p)],
        -size,
        size,
        np.ones((d, p)),
        np.full(d, 2.0),
        np.full(p, 2.0),
        "gradient",
    )


def test_bars_are_the_importance_in_order(make_rows):
    X, Y = make_rows(30, 4, 2)
    display = ExplanationDisplay.from_estimator(EntangledKernelRidge().fit(X, Y), X)
    found, order = display.explanation, display.order_
    np.testing.assert_allclose(
        [bar.get_width() for bar in display.bar_ax_.patches], found.importance[order]
    )
    assert [label.get_text() for label in display.bar_ax_.get_yticklabels()] == [
        found.inputs[j] for j in order
    ]
    drawn = np.asarray(display.matrix_ax_.get_images()[0].get_array())
    np.testing.assert_allclose(drawn, found.effect[order] / found.target_deviation)
    (noise,) = display.bar_ax_.lines
    np.testing.assert_allclose(noise.get_xdata(), found.importance_noise[order])


def test_of_many_inputs_and_targets_the_first_are_drawn():
    display = ExplanationDisplay(made(20, 30)).plot()
    assert len(display.bar_ax_.patches) == 12
    assert "12 of 20 inputs" in display.bar_ax_.get_title()
    assert display.matrix_ax_.get_images()[0].get_array().shape == (12, 24)
    assert not display.matrix_ax_.texts


def test_a_target_that_is_measured_everywhere_is_left_blank():
    explanation = made(3, 2)
    explanation.effect[:, 0] = np.nan
    display = ExplanationDisplay(explanation).plot()
    assert len(display.matrix_ax_.texts) == 3
    explanation.effect[:] = np.nan
    ExplanationDisplay(explanation).plot()


def test_a_model_without_explanations_is_refused(make_rows):
    X, Y = make_rows(10, 2, 1)
    model = make_pipeline(StandardScaler(), EntangledKernelRidge()).fit(X, Y)
    with pytest.raises(TypeError, match="give its last step"):
        ExplanationDisplay.from_estimator(model, X)
