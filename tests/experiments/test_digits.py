"""Digit tasks: both protocols run, the kernel is entangled, and projections separate the tasks."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS, PROTOCOLS, Setup, digits


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    _, figures = run_and_draw("digits", protocol)
    assert figures == ["digits-kernel", "digits-projections", "digits-entanglement"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_digits_are_entangled_and_their_projections_separate(protocol):
    results = EXPERIMENTS["digits"].run(Setup(protocol, quick=True))
    assert results.meta["entangled"] is True
    assert results.meta["ppt"] is False
    assert results.arrays["partial_transpose_eigenvalues"].min() < -0.01
    assert results.arrays["gram"].shape == (160, 160)
    assert results.arrays["Z_train"].shape == (40, 4, digits.RANK)
    tasks = {row["task"]: row["mean"] for row in results.summary("accuracy", by=("task",))}
    assert set(tasks) == {"all", "is 0", "is 1", "is 2", "is 3"}
    assert min(tasks.values()) > 0.85


def test_separation_weighs_both_sides_alike():
    """A line that calls everything positive is right about half, however rare the negative side is."""
    y = np.array([1.0] * 9 + [-1.0])
    Z = np.zeros((10, 2))
    Z[-1] = 1.0
    assert digits._separation(Z, y, Z, y) == 1.0
    assert digits._separation(Z, y, np.full((10, 2), -0.1), y) == 0.5
