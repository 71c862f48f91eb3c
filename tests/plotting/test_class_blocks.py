import numpy as np
import pytest

from entangled_kernels.plotting import ClassBlocksDisplay


def test_blocks_of_the_first_samples_of_every_pair_of_classes():
    gram = np.arange(20.0 * 20.0).reshape(20, 20)
    labels = np.array([0] * 4 + [1] * 6)
    display = ClassBlocksDisplay(gram, labels, n_outputs=2, n_samples=3).plot()
    assert [ax.get_title() for ax in display.axes_] == ["class 0", "0 with 1", "class 1"]
    shown = display.axes_[1].get_images()[0].get_array()
    np.testing.assert_array_equal(shown, gram[:6, 8:14])
    assert len(display.axes_[1].get_lines()) == 4


def test_a_matrix_of_another_size_is_refused():
    with pytest.raises(ValueError, match="gram must have shape"):
        ClassBlocksDisplay(np.eye(3), [0, 1], n_outputs=2)
