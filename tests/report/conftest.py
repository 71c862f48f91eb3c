"""A page with everything that a page can hold, some of it awkward."""

import pytest
from matplotlib.figure import Figure

from entangled_kernels.report import Report

METHODS = ["KRR", "OKL", "EKL", "ptrEKL"]


def _small_figure(title="A line"):
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0, 1, 2], [1, 3, 2])
    ax.set_title(title)
    return figure


def _make_page():
    page = Report(
        "Concrete <slump> & friends", lead="Seven ingredients, three properties.", footer="Made by a test."
    )
    page.section("What was found")
    page.verdict("Entangled: PPT fails (eigenvalue -0.1), which proves it.", kind="entangled")
    page.verdict("Separable: one scalar kernel times one output matrix.", kind="separable")
    page.verdict("Nothing is proven either way")
    page.text("A first paragraph with <b>no</b> markup & 'quotes'.\n\nA second one.")
    page.points(["one thing", "another <thing>"])
    page.section("Comparison")
    page.table(
        ["n", *METHODS, *METHODS],
        [
            [n, *((0.9 / k - n / 1e4, 0.012) for k in (1, 2, 3, 2.5)), *(0.8 / k for k in range(1, 5))]
            for n in (12, 20, 40)
        ],
        caption="nMSE beside the paper's figures",
        best="min",
        best_among=[1, 2, 3, 4],
        note="Mean and standard error of ten splits.",
    )
    page.figure(_small_figure(), caption="How it <went>.", alt='A line that rises, then "falls".')
    wide = Figure(figsize=(9, 3), layout="constrained")
    wide.add_subplot().plot([1, 2])
    page.figure(wide, caption="A wide one.", alt="A rising line.")
    page.section("Comparison")
    page.table(
        ["target", "mean"], [["slump (cm)", 18.05], [f"{'a-very-long-name-' * 8}", None]], caption="More"
    )
    page.section("How to repeat it")
    page.facts(
        {"seed": 0, "quick": False, "file": "/data/" + "x" * 150 + ".csv", "methods": METHODS, "out": None}
    )
    page.code("entangled-kernels compare table.csv --targets 'a,b' " + "--option value " * 12)
    page.code("second --command")
    return page


@pytest.fixture(scope="session")
def small_figure():
    return _small_figure


@pytest.fixture(scope="session")
def make_page():
    return _make_page


@pytest.fixture(scope="session")
def page():
    return _make_page()


@pytest.fixture(scope="session")
def html(page):
    return page.html()
