"""The page of a comparison."""

from pathlib import Path

from entangled_kernels.cli.pages import write_comparison_page
from entangled_kernels.cli.tables import TrainingTable
from entangled_kernels.io import ExperimentResults

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
