import subprocess
import sys

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge
from entangled_kernels.plotting import (
    AlignmentPathDisplay,
    ComparisonDisplay,
    EntanglementSpectrumDisplay,
    GramDisplay,
    ProjectionDisplay,
    RunningTimeDisplay,
    SelectionDisplay,
)
from entangled_kernels.plotting.display import looks


def draw_all(model, search, digits, results):
    """One display of every class."""
    X_train, labels, Y_train, X_test, _, Y_test = digits
    return [
        GramDisplay.from_estimator(model, X_train, labels),
        ProjectionDisplay.from_estimator(model, X_train, Y_train, X_test, Y_test),
        AlignmentPathDisplay.from_estimator(model),
        EntanglementSpectrumDisplay.from_estimator(model),
        SelectionDisplay.from_estimator(search),
        ComparisonDisplay.from_results(results),
        RunningTimeDisplay.from_results(results),
    ]


def test_every_display_has_a_title_names_its_axes_and_can_be_saved(
    model, search, digits, results, tmp_path
):
    before = dict(mpl.rcParams)
    for display in draw_all(model, search, digits, results):
        name = type(display).__name__
        axes = display.axes_ if hasattr(display, "axes_") else [display.ax_]
        assert isinstance(display.figure_, Figure), name
        assert axes[0].get_title() or display.figure_.get_suptitle(), name
        assert axes[0].get_xlabel(), name
        display.figure_.savefig(tmp_path / f"{name}.png")
    assert dict(mpl.rcParams) == before


def test_notebooks_show_a_display(model):
    display = AlignmentPathDisplay.from_estimator(model)
    assert display._repr_png_().startswith(b"\x89PNG")
    assert AlignmentPathDisplay([0.1])._repr_png_() is None


def test_drawing_opens_no_figure_of_pyplot():
    code = (
        "import sys\n"
        "from entangled_kernels.plotting import AlignmentPathDisplay, GramDisplay\n"
        "assert 'matplotlib' not in sys.modules\n"
        "AlignmentPathDisplay([0.1, 0.2]).plot()\n"
        "GramDisplay([[1.0]], 1).plot()\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_axes_and_figures_of_others_are_drawn_in(model, digits, results):
    figure = Figure(figsize=(8, 8), layout="constrained")
    left, right = figure.subfigures(1, 2)
    display = GramDisplay.from_estimator(model, digits[0], figure=left)
    assert display.figure_ is figure
    assert list(left.axes[:4]) != []
    ax = right.add_subplot()
    path = AlignmentPathDisplay.from_estimator(model, ax=ax)
    assert (path.ax_, path.figure_) == (ax, figure)
    comparison = ComparisonDisplay.from_results(results, ax=Figure().add_subplot())
    assert comparison.ax_.get_legend() is not None


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "entangled-kernels\[plot\]"'):
        AlignmentPathDisplay([0.1]).plot()


@pytest.mark.parametrize(
    "display", [AlignmentPathDisplay, EntanglementSpectrumDisplay, SelectionDisplay]
)
def test_models_must_be_fitted(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(EntangledKernelRidge())


def test_models_that_cannot_be_drawn_are_named(make_rows):
    X, Y = make_rows(20, 3, 2)
    search = GridSearchCV(EntangledKernelRidge(), {"alpha": [1.0]}, cv=2, refit=False).fit(X, Y)
    with pytest.raises(
        ValueError, match="model is a search without a fitted model to draw; fit it"
    ):
        GramDisplay.from_estimator(search, X)
    with pytest.raises(
        TypeError, match=r"model must be an EntangledKernelRidge, .* got OutputKernelRidge"
    ):
        GramDisplay.from_estimator(OutputKernelRidge().fit(X, Y), X)
    pipeline = make_pipeline(StandardScaler(), EntangledKernelRidge()).fit(X, Y)
    with pytest.raises(TypeError, match=r"got Pipeline; give its last step, model\[-1\]"):
        GramDisplay.from_estimator(pipeline, X)
    with pytest.raises(
        TypeError, match="model must be a fitted EntangledKernelRidgeCV, got Pipeline"
    ):
        SelectionDisplay.from_estimator(pipeline)


METHODS = ["KRR", "OKL", "EKL", "ptrEKL", "selected", "PLS", "extra-trees"]


def test_colour_marker_and_line_each_tell_methods_apart():
    chosen = looks(METHODS).values()
    for field in ("color", "marker", "line"):
        assert len({getattr(look, field) for look in chosen}) == len(METHODS), field
