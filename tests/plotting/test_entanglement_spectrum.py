import numpy as np
import pytest

from entangled_kernels.kernels import KrausKernel
from entangled_kernels.linalg import partial_transpose_eigenvalues, separable_kraus
from entangled_kernels.plotting import EntanglementSpectrumDisplay


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
    assert not any("negative" in text.get_text() for text in display.axes_[0].get_legend().get_texts())


def test_long_spectra_are_cut(rng):
    display = EntanglementSpectrumDisplay(rng.normal(size=300), rng.random(60)).plot()
    assert len(display.axes_[1].patches) == 24
    assert "the first 24 of 60" in display.axes_[1].get_xlabel()


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="must not be empty or zero"):
        EntanglementSpectrumDisplay([], [1.0])
    with pytest.raises(ValueError, match="must not be empty or zero"):
        EntanglementSpectrumDisplay([1.0], [0.0])
