from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from entangled_kernels.estimators import notices
from entangled_kernels.learning import FitSettings, fit_problem, reduce_rows


@pytest.fixture
def problem(make_rows):
    return reduce_rows(*make_rows(20, 3, 2), None, centred=True)[0]


def test_a_solver_that_stalled(problem, recwarn):
    fit = fit_problem(problem, FitSettings(solver="ascent", max_iter=3))
    notices.warn_if_stalled(fit)
    assert not recwarn.list
    with pytest.warns(ConvergenceWarning, match=r"solver='ascent' could not raise .* tol=1e-06"):
        notices.warn_if_stalled(replace(fit, stop_reason="stalled"))


def test_steps_that_take_long(problem, monkeypatch, recwarn):
    notices.warn_of_size(problem, "ascent", None)
    assert not recwarn.list
    monkeypatch.setattr(notices, "LARGE_STEP", 10)
    with pytest.warns(UserWarning, match="multiplies matrices of 6 x 6"):
        notices.warn_of_size(problem, "ascent", None)
    with pytest.warns(UserWarning, match="multiplies matrices of 6 x 2"):
        notices.warn_of_size(problem, "ascent", 2)


def test_progress_is_printed_now_and_then(problem, capsys):
    settings = FitSettings(solver="ascent", init="random", max_iter=25, tol=0.0)
    fit_problem(problem, settings, notices.print_progress(25))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == ["10/25", "20/25", "25/25"]
    assert np.isfinite(float(lines[0].split()[4]))
