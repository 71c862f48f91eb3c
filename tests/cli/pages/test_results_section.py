from matplotlib.figure import Figure

from entangled_kernels.cli.pages.results_section import add_results, add_run, write_with_command
from entangled_kernels.report import Report
from entangled_kernels.storage import ExperimentResults


def make(paper=()):
    records = [
        {"method": method, "n": 10, "split": split, "nmse": nmse + 0.1 * split}
        for method, nmse in (("KRR", 0.5), ("EKL", 0.4))
        for split in (0, 1)
    ]
    return ExperimentResults("r", "Slump", records, paper=list(paper))


def test_tables_and_figures():
    page = Report("T")
    add_results(page, make(), {"slump-nmse": Figure(), "slump-odd": Figure()})
    html = page.html()
    assert "Slump: nMSE" in html
    assert "Mean ± standard deviation over partitions." in html
    assert "(paper)" not in html
    assert "Error over training rows, means with intervals." in html
    assert "slump-odd." in html
    assert html.count("★</span>") == 1


def test_figures_of_the_paper_are_marked():
    page = Report("T")
    add_results(page, make([{"method": "EKL", "n": 10, "nmse": 0.3}]), {"slump-nmse": Figure()})
    html = page.html()
    assert "EKL (paper)" in html
    assert "0.3000" in html
    assert "quote the published figures" in html
    assert "open marks are the paper&#x27;s" in html


def test_how_results_were_made_and_are_made_again(folder):
    meta = {"seed": 3, "methods": {"KRR": "kernel ridge"}, "versions": {"numpy": "2.1"}, "verdict": "none"}
    results = ExperimentResults("r", "Slump", [], meta=meta)
    page = Report("T")
    add_run(page, results, table="plant.csv")
    path = write_with_command(page, "entangled-kernels demo", results, folder / "page.html")
    html = path.read_text()
    for words in (
        "<dt>seed</dt><dd>3</dd>",
        "plant.csv",
        "KRR: kernel ridge",
        "kernels demo",
        "<dd>2.1</dd>",
    ):
        assert words in html
    assert "<dt>verdict</dt>" not in html
