import re

import numpy as np
import pytest

from entangled_kernels.cli.pages import write_demo_page
from entangled_kernels.cli.results import measured_in_words
from entangled_kernels.experiments.partly_measured import METHODS, OURS
from entangled_kernels.io import ExperimentResults

ERRORS = {OURS: (0.4, 0.3), "ridge": (0.5, 0.2), "PLS": (0.6, 0.5), "extra-trees": (0.45, 0.4)}
OWN = {
    "coverage": 0.91,
    "joint_coverage": 0.88,
    "width": 1.25,
    "left": 0.35,
    "left_suggested": 0.21,
}


@pytest.fixture
def results():
    records = [
        {"method": method, "known": known, "split": split, "nmse": error + 0.01 * (2 * split - 1)}
        | {"fits": 1 if known == 0 else 3 * (method != OURS), "fit_seconds": 0.25}
        | (OWN if method == OURS else {})
        for method, errors in ERRORS.items()
        for known, error in enumerate(errors)
        for split in range(2)
    ]
    information = np.array([[1.0, 0.61, 0.1], [0.61, 1.0, 0.2], [0.1, 0.2, 1.0]])
    meta = {"methods": METHODS, "targets": ["zinc", "<b>", "tin"], "train_rows": 40, "repeats": 2}
    meta |= {"coverage": 0.9, "versions": {"numpy": "2"}}
    arrays = {"information": information, "removed": information / 2}
    return ExperimentResults("wine", "Wine: three of them", records, meta=meta, arrays=arrays)


def test_whoever_is_best_is_named(results):
    assert measured_in_words(results) == [
        "Error with 0 to 1 of 3 targets measured: 0.400, 0.300. Measuring 1 takes 25% off the "
        "error of the others.",
        "With 0 measured: 11.1% less error than the best of the other methods, extra-trees (0.450).",
        "With 1 measured: 50.0% more error than the best of the other methods, ridge (0.200).",
        "91% of the 90% intervals contain the true value; joint intervals contain all targets of a "
        "row in 88% of rows.",
    ]
    for record in results.records:
        if record["method"] == "extra-trees":
            record["nmse"] -= 0.05
    assert "With 0 measured: the same error as the best" in measured_in_words(results)[1]


def test_what_the_page_says(results, folder):
    path = write_demo_page([results], "entangled-kernels demo", folder / "demo")
    page = path.read_text()
    assert path == folder / "demo" / "index.html"
    assert page.count("<img") == 2
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    for words in (
        "ridge: RidgeCV, an alpha for each target",
        "178 wines",
        "50.0% more error than the best of the other methods, ridge",
        "0.300 ± 0.014",
        "0.910 ± 0.000",
        "zinc &lt;b&gt; 61 30",
        "How to repeat it entangled-kernels demo",
    ):
        assert words in text
    # One fit for all sets, or one for none and three for one measured.
    assert f"{OURS} 1 0.50" in text
    assert "PLS 4 0.50" in text
