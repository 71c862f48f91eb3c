import numpy as np
import pytest

from entangled_kernels.plotting import RunningTimeDisplay
from entangled_kernels.storage import ExperimentResults


def test_powers_are_found_and_told(results):
    display = RunningTimeDisplay.from_results(results)
    assert display.slopes_[None] == pytest.approx({"KRR": 3.0, "EKL": 2.0, "mine": 1.0})
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == [r"KRR  $\propto n^{3.0}$", r"EKL  $\propto n^{2.0}$", r"mine  $\propto n^{1.0}$"]


def test_axes_are_logarithmic_with_the_sizes_as_ticks(results):
    display = RunningTimeDisplay.from_results(results, facet="task")
    assert len(display.axes_) == 2
    for ax in display.axes_:
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["50", "200", "1000"]
    assert display.axes_[0].get_ylabel() == "time to fit (seconds)"


def test_medians_ranges_and_the_paper():
    records = [{"method": "a", "n": n, "fit_seconds": s * n} for n in (1, 10) for s in (1.0, 2.0, 9.0)]
    paper = [{"method": "a", "n": 1, "fit_seconds": 4.0}]
    ax = RunningTimeDisplay.from_results(ExperimentResults("x", "X", records, paper)).ax_
    np.testing.assert_allclose(ax.containers[0].lines[0].get_ydata(), [2.0, 20.0])
    (bars,) = ax.containers[0].lines[2]
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()], [[1.0, 9.0], [10.0, 90.0]])
    assert any(list(line.get_ydata()) == [4.0] for line in ax.get_lines())


@pytest.mark.parametrize("record", [{"n": 0, "fit_seconds": 1.0}, {"n": 1, "fit_seconds": 0.0}])
def test_errors_name_the_argument(record):
    with pytest.raises(ValueError, match="n and fit_seconds must be positive numbers"):
        RunningTimeDisplay.from_results(ExperimentResults("x", "X", [{"method": "a"} | record]))
