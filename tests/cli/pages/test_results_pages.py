"""Pages of results: what a comparison, experiments and the demonstration say."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from entangled_kernels import experiments
from entangled_kernels.cli.pages import add_results, write_comparison_page, write_experiment_page
from entangled_kernels.cli.tables import TrainingTable
from entangled_kernels.experiments.protocol import PageTable
from entangled_kernels.io import ExperimentResults
from entangled_kernels.plotting import Report


def make(paper=()):
    records = [
        {"method": method, "n": 10, "split": split, "nmse": nmse + 0.1 * split}
        for method, nmse in (("KRR", 0.5), ("EKL", 0.4))
        for split in (0, 1)
    ]
    return ExperimentResults("r", "Slump", records, paper=list(paper))


def test_figures_of_the_paper_are_marked():
    page = Report("T")
    add_results(page, make([{"method": "EKL", "n": 10, "nmse": 0.3}]), {"slump-nmse": Figure()})
    html = page.html()
    assert "EKL (paper)" in html
    assert "0.3000" in html
    assert "quote the published figures" in html
    assert "open marks are the paper&#39;s" in html


RECORDS = [
    {"method": method, "n": n, "split": split, "nmse": nmse / n, "ni": 0.1, "fit_seconds": 0.01 * n}
    for method, nmse in (("KRR", 5.0), ("EKL", 4.0))
    for n in (10, 20)
    for split in (0, 1)
]


def test_what_the_page_of_a_comparison_says(plant, folder):
    data = TrainingTable(
        ["pressure"], ["net\u202eload"], [], plant[["pressure"]], plant[["net load"]], None, []
    )
    meta = {"methods": {"KRR": "kernel ridge"}, "versions": {"numpy": "2"}, "seed": 7, "inputs": 1}
    found = ExperimentResults("comparison", "Methods on plant.csv", RECORDS, meta=meta)
    write_comparison_page(
        found, Path("plant.csv"), data, "entangled-kernels compare", folder / "p.html"
    )
    page = (folder / "p.html").read_text()
    for words in (
        "1 target from 1 input, 40 rows.",
        "KRR: kernel ridge",
        "<dt>inputs</dt><dd>pressure</dd>",
        r"net\u202eload",
        '<h2 id="s-results">Results</h2>',
        "entangled-kernels compare",
    ):
        assert words in page
    assert "\u202e" not in page
    assert page.count("<img") == 2
    assert page.index("Best with 20 training rows") < page.index("What was run</h2>")
    assert "<dt>KRR</dt>" in page


class Fake:
    """What a page asks of an experiment."""

    title, about = "An experiment", "About it."

    @staticmethod
    def figures(results):
        return {f"{results.name}-nmse": Figure()}

    @staticmethod
    def tables(results):
        return [PageTable(["size", "power"], [["large", 2.0]], "Powers of growth", digits=1)]


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"one": Fake, "two": Fake})


def made(name, **meta):
    records = [
        {"method": method, "n": 10, "nmse": nmse} for method, nmse in (("KRR", 0.5), ("EKL", 0.4))
    ]
    return ExperimentResults(name, f"Title of {name}", records, meta=meta)


def test_one_experiment(folder):
    runs = {"fair": {"one": made("one", seed=3)}}
    write_experiment_page(runs, {}, "entangled-kernels reproduce", folder)
    page = (folder / "index.html").read_text()
    for words in (
        "<title>An experiment</title>",
        ">Results</h2>",
        "About it.",
        "EKL has 20.0% less error",
    ):
        assert words in page
    assert "Powers of growth" in page
    assert "Left out" not in page
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "one-nmse.svg"]
