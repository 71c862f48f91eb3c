import numpy as np

from entangled_kernels.experiments.illustrations import (
    draw_class_blocks,
    draw_matrices,
)


def test_blocks_of_the_first_samples_of_every_pair_of_classes():
    gram = np.arange(20.0 * 20.0).reshape(20, 20)
    axes = draw_class_blocks(gram, [0] * 4 + [1] * 6, n_outputs=2).axes
    assert [ax.get_title() for ax in axes[:3]] == ["class 0", "0 with 1", "class 1"]
    np.testing.assert_array_equal(axes[1].get_images()[0].get_array(), gram[:6, 8:14])
    assert len(axes[1].get_lines()) == 4


def test_matrices_with_lines_between_blocks():
    figure = draw_matrices({"T": np.zeros((2, 2)), "G": np.eye(6)}, {"G": 2}, "Both")
    assert [ax.get_title() for ax in figure.axes] == ["T", "G"]
    assert [len(ax.get_lines()) for ax in figure.axes] == [0, 4]
    assert figure.axes[1].get_xlabel() == "6 by 6"
    assert figure.get_suptitle() == "Both"
