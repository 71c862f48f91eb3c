"""Digit tasks: both protocols run, the kernel is entangled, and projections separate the tasks."""

import numpy as np
import pytest

from entangled_kernels.experiments import PROTOCOLS, digits


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("digits", protocol)
    assert figures == ["digits-kernel", "digits-zooms", "digits-projections", "digits-entanglement"]
    assert results.meta["entangled"] is True
    assert results.meta["ppt"] is False
    assert results.arrays["partial_transpose_eigenvalues"].min() < -0.01
    assert results.arrays["gram"].shape == (400, 400)
    assert results.arrays["Z_train"].shape == (100, 4, digits.RANK)
    tasks = {row["task"]: row["mean"] for row in results.summary("separation", by=("task",))}
    assert set(tasks) == {"is 0", "is 1", "is 2", "is 3"}
    assert min(tasks.values()) > 0.85
    assert {record.get("rank") for record in results.records} == {*digits.RANKS, None}


def test_always_no_is_right_three_times_in_four():
    rows = digits._rows(0)
    for name in ("labels", "labels_test"):
        assert np.bincount(rows[name]).tolist() == [25] * 4
    answers = digits._answers("always no", -np.ones((100, 4)), rows, 0)
    assert [record["accuracy"] for record in answers] == [0.25, 0.75, 0.75, 0.75, 0.75]
    assert all(record["balanced_accuracy"] == 0.5 for record in answers[1:])


def test_separation_weighs_both_sides_alike():
    """A line that calls everything positive is right about half, however rare the negative side is."""
    y = np.array([1.0] * 9 + [-1.0])
    Z = np.zeros((10, 2))
    Z[-1] = 1.0
    assert digits._separation(Z, y, Z, y) == 1.0
    assert digits._separation(Z, y, np.full((10, 2), -0.1), y) == 0.5
