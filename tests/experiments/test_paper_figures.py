import numpy as np

from entangled_kernels.experiments.illustrations import (
    REGIONS,
    draw_class_blocks,
    draw_kernel_classes,
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


def inside(point, region):
    (x, y), width, height = REGIONS[region][:3]
    return ((point[0] - x) / width * 2) ** 2 + ((point[1] - y) / height * 2) ** 2 < 1


def test_names_and_witnesses_are_written():
    figure = draw_kernel_classes({name: f"of {name}" for name in REGIONS})
    words = {text.get_text() for text in figure.axes[0].texts}
    assert words == {*REGIONS, *(f"of {name}" for name in REGIONS)}


def test_witnesses_stand_in_their_class_and_in_no_smaller_one():
    inner = {"partial trace": set(REGIONS) - {"partial trace"}, "sum of separable": {"separable"}}
    for name, (_, _, _, place, _) in REGIONS.items():
        assert inside(place, name)
        assert inside(place, "partial trace")
        assert not any(inside(place, other) for other in inner.get(name, ()))
