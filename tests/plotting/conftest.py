"""Small fitted models that the displays draw, and a page with everything that a page can hold."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.io import ExperimentResults
from entangled_kernels.plotting import Report


@pytest.fixture(scope="session")
def digits():
    """Images of the digits 0 to 2, fifteen to learn from and thirty others: X, labels and targets of each."""
    X, labels = load_digits(n_class=3, return_X_y=True)
    X, labels = X[:45] / 16.0, labels[:45]
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    return X[:15], labels[:15], Y[:15], X[15:], labels[15:], Y[15:]


@pytest.fixture(scope="session")
def model(digits):
    features = Nystroem(gamma=0.05, n_components=12, random_state=0)
    estimator = EntangledKernelRidge(
        features, solver="ascent", rank=2, shrinkage=0.0, solver_params={"max_iter": 30}
    )
    return estimator.fit(digits[0], digits[2])


@pytest.fixture(scope="session")
def search(digits):
    with warnings.catch_warnings():
        # An end of a short grid may be the best.
        warnings.simplefilter("ignore", UserWarning)
        return EntangledKernelRidgeCV(
            Nystroem(gamma=0.05, n_components=12, random_state=0),
            alphas=[0.001, 0.01, 0.1, 1.0],
            cv=3,
            random_state=0,
            param_grid={"shrinkage": (0.0, 0.5, 1.0)},
        ).fit(digits[0], digits[2])


@pytest.fixture(scope="session")
def results():
    rng = np.random.default_rng(0)
    power = {"KRR": 3, "EKL": 2, "mine": 1}
    records = [
        {
            "method": method,
            "n": n,
            "task": task,
            "split": split,
            "nmse": (0.2 + 0.05 * task) * (50 / n) ** 0.3 * (1 + 0.05 * rng.normal()),
            "ni": 0.1 * rng.normal(),
            "fit_seconds": 1e-6 * n ** power[method],
        }
        for method in power
        for n in (1000, 50, 200)
        for task in (1, 2)
        for split in range(4)
    ]
    paper = [{"method": "EKL", "n": n, "task": 1, "nmse": 0.2} for n in (50, 400)]
    return ExperimentResults("robot", "Robot arm", records, paper)


METHODS = ["KRR", "OKL", "EKL", "ptrEKL"]


def _small_figure(title="A line"):
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0, 1, 2], [1, 3, 2])
    ax.set_title(title)
    return figure


def _make_page():
    page = Report(
        "Concrete <slump> & friends",
        lead="Seven ingredients, three properties.",
        footer="Made by a test.",
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
            [
                n,
                *((0.9 / k - n / 1e4, 0.012) for k in (1, 2, 3, 2.5)),
                *(0.8 / k for k in range(1, 5)),
            ]
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
        ["target", "mean"],
        [["slump (cm)", 18.05], [f"{'a-very-long-name-' * 8}", None]],
        caption="More",
    )
    page.section("How to repeat it")
    page.facts(
        {
            "seed": 0,
            "quick": False,
            "file": "/data/" + "x" * 150 + ".csv",
            "methods": METHODS,
            "out": None,
        }
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
