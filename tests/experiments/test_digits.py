"""Digit tasks: both protocols run, the kernel is entangled, and projections separate the tasks."""

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
