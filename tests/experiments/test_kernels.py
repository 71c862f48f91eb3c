"""Pictures of kernels: each witness is in its class and in no smaller one."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.illustrations import (
    draw_class_blocks,
    draw_matrices,
    examine,
    witnesses,
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


def test_the_experiment_runs_and_is_drawn(run_and_draw):
    results, figures = run_and_draw("kernels", "fair")
    assert figures == ["kernels-separable", "kernels-blocks", "kernels-classes"]
    (table,) = EXPERIMENTS["kernels"].tables(results)
    assert [row[0] for row in table.rows] == list(witnesses())
    K, T, G = (results.arrays[name] for name in ("scalar", "output", "separable"))
    np.testing.assert_allclose(G, np.kron(K, T))


@pytest.mark.parametrize(
    ("name", "psd", "separable", "entangled"),
    [
        ("separable", True, True, False),
        ("sum of separable", True, False, False),
        ("transformable", True, False, True),
        ("entangled", True, False, True),
        ("partial trace", False, False, None),
    ],
)
def test_witnesses(name, psd, separable, entangled):
    record = examine(witnesses()[name])
    assert record["psd"] is psd
    assert (record["schmidt_rank"] == 1) is separable
    assert record["entangled"] is entangled
