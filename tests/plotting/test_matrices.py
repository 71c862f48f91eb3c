import numpy as np
import pytest

from entangled_kernels.plotting import MatricesDisplay


def test_panels_with_lines_between_blocks():
    display = MatricesDisplay({"T": np.eye(2), "G": np.eye(6)}, {"G": 2}, "Both").plot()
    assert [ax.get_title() for ax in display.axes_] == ["T", "G"]
    assert [len(ax.get_lines()) for ax in display.axes_] == [0, 4]
    assert display.axes_[1].get_xlabel() == "6 by 6"
    assert display.figure_.get_suptitle() == "Both"


def test_zeros_can_be_drawn_and_other_arrays_cannot():
    assert len(MatricesDisplay({"0": np.zeros((2, 2))}).plot().axes_) == 1
    with pytest.raises(ValueError, match="two axes"):
        MatricesDisplay({"x": np.zeros(3)})
