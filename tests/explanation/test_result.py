"""What an explanation tells."""

import numpy as np
import pytest
from entangled_kernels.explanation import Explanation, noise_level, overall


def small():
    size = np.array([[0.1, 0.2], [3.0, np.nan], [1.0, 4.0]])
    return Explanation(
        ["a", "b", "c"],
        ["y", "z"],
        -size,
        size,
        np.ones((3, 2)),
        np.full(3, 0.4),
        np.array([2.0, 5.0]),
        "gradient",
    )


def test_importance_is_in_deviations_of_the_targets():
    found = small()
    np.testing.assert_allclose(
        found.importance, np.sqrt([(0.05**2 + 0.04**2) / 2, 1.5**2, (0.25 + 0.64) / 2])
    )
    assert found.order.tolist() == [1, 2, 0]
    assert found.important.tolist() == [False, True, True]
    assert found.beyond_noise.tolist() == [[False, False], [True, False], [False, True]]


def test_targets_that_do_not_vary_are_left_out():
    np.testing.assert_allclose(overall(np.array([[2.0, 7.0]]), np.array([4.0, 0.0])), [0.5])
    assert overall(np.ones((2, 1)), np.zeros(1)).tolist() == [0.0, 0.0]


def test_noise_stays_below_its_level_most_of_the_time():
    draws = np.abs(np.random.default_rng(0).normal(size=(100_000, 1)))
    assert 0.03 < np.mean(draws > noise_level(draws)) < 0.06


def test_a_frame_has_a_row_for_every_pair():
    pytest.importorskip("pandas")
    frame = small().to_frame()
    assert frame.columns.tolist() == ["input", "target", "effect", "size", "noise"]
    assert frame["input"].tolist() == ["b", "b", "c", "c", "a", "a"]
    assert frame["effect"].tolist()[2:4] == [-1.0, -4.0]
