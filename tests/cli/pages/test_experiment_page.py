import pytest
from matplotlib.figure import Figure

from entangled_kernels import experiments
from entangled_kernels.cli.pages.experiment_page import add_experiment, write_experiment_page
from entangled_kernels.report import Report
from entangled_kernels.storage import ExperimentResults


class Fake:
    """What a page asks of an experiment."""

    title, about = "An experiment", "About it."

    @staticmethod
    def figures(results):
        return {f"{results.name}-nmse": Figure()}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"one": Fake, "two": Fake})


def made(name, **meta):
    records = [{"method": method, "n": 10, "nmse": nmse} for method, nmse in (("KRR", 0.5), ("EKL", 0.4))]
    return ExperimentResults(name, f"Title of {name}", records, meta=meta)


def test_one_experiment(folder):
    write_experiment_page({"one": made("one", seed=3)}, {}, "fair", "entangled-kernels reproduce", folder)
    page = (folder / "index.html").read_text()
    for words in ("<title>An experiment</title>", ">Results</h2>", "About it.", "EKL has 20.0% less error"):
        assert words in page
    assert "Left out" not in page
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "one-nmse.svg"]


def test_several_experiments(folder):
    done = {"one": made("one"), "two": made("two")}
    write_experiment_page(done, {"three": "no data"}, "fair", "entangled-kernels reproduce all", folder)
    page = (folder / "index.html").read_text()
    for words in ("Title of one", "Title of two", "Left out", "three: no data", "run again</title>"):
        assert words in page


def test_a_verdict_takes_the_place_of_the_finding(folder):
    page = Report("T")
    add_experiment(page, "H", "one", made("one", verdict="Entangled: PPT fails", entangled=True), folder)
    html = page.html()
    assert "<strong>Entangled:</strong> PPT fails" in html
    assert "Against kernel ridge" not in html
