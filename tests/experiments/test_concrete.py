"""Concrete slump: both protocols run, and errors and times are drawn."""

import pytest

from entangled_kernels.experiments import PROTOCOLS, concrete


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("concrete", protocol)
    assert figures == ["concrete-nmse", "concrete-times"]
    assert {record["n"] for record in results.records} == {6, 8}
    assert {record["split"] for record in results.records} == {0, 1, 2}


def test_the_papers_figures_belong_to_settings_that_are_run():
    assert concrete.PAPER
    assert all(record["n"] in concrete.TRAIN_SIZES for record in concrete.PAPER)
