import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.pages.model_page import _error_digits, write_model_page
from entangled_kernels.storage import SavedModel

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


def test_small_errors_are_told_apart_on_the_page():
    assert [_error_digits(least) for least in (1.2, 0.1, 0.012, 0.000976, 1e-30)] == [3, 3, 4, 6, 9]


@pytest.fixture
def findings():
    return {
        "model": "plant.model",
        "class": "EntangledKernelRidge",
        "settings": "A; kernel ridge",
        "inputs": ["in\x1b[2J"],
        "targets": TARGETS,
        "rows": 1,
        "table": "plant.csv",
        "software": {"numpy": np.__version__},
        "nmse": 0.01,
        "kernel_ridge_nmse": 0.02,
        "target_scores": [{"target": "<b>", "nmse": 0.01, "kernel_ridge_nmse": 0.02}],
        "sharing": ["'a' and 'b' move together."],
        "relations": [[1.0, 0.5], [0.5, 1.0]],
        "telling": ["Measuring 'a' removes 61% of the uncertainty of 'b'."],
        "weights": [],
        "influence": None,
        "information": [[1.0, 0.61], [0.61, 1.0]],
        "entangled": None,
        "verdict": "Not tested: too large.",
        "entanglement": None,
    }


def test_what_the_page_says(plant, folder, findings):
    model = EntangledKernelRidge().fit(plant[NAMES], plant[TARGETS])
    saved = SavedModel(model, {"command": "entangled-kernels fit 'my plant.csv'"}, {})
    write_model_page(saved, findings, folder / "my page.html")
    page = (folder / "my page.html").read_text()
    for words in (
        "Predicts 2 targets from 1 input.",
        "1 row of plant.csv",
        "50.0% less error",
        "&lt;b&gt;",
        r"in\u001b[2J",
        "0.50",
        "Measuring &#x27;a&#x27; removes 61%",
        "Share of the uncertainty of a column",
        "Not tested:",
        "entangled-kernels fit &#x27;my plant.csv&#x27;",
        "my page.html&#x27;",
    ):
        assert words in page
    assert "\x1b" not in page
    assert "<b>" not in page.replace("<b>Table", "").replace("<b>Figure", "")


def test_a_table_of_zeros_is_left_out(plant, folder, findings):
    model = EntangledKernelRidge().fit(plant[NAMES], plant[TARGETS])
    for correlation, shown in ((0.02, True), (-0.004, False)):
        findings["relations"] = [[1.0, correlation], [correlation, 1.0]]
        write_model_page(SavedModel(model, {}, {}), findings, folder / "page.html")
        assert ("Correlation of the targets" in (folder / "page.html").read_text()) is shown


def test_nothing_is_said_of_what_is_not_known(plant, folder, findings):
    model = EntangledKernelRidge().fit(plant[NAMES], plant[["net load"]])
    findings |= {"inputs": [], "targets": ["y"], "rows": None, "target_scores": [], "relations": []}
    findings |= {"telling": ["Not known."], "information": []}
    write_model_page(SavedModel(model, {}, {}), findings, folder / "page.html")
    page = (folder / "page.html").read_text()
    assert "Predicts 1 target from inputs without names." in page
    assert "not recorded" in page
    assert "How well it predicts" not in page
    assert "Not known." in page
    assert "Share of the uncertainty" not in page


def test_weights_and_influences_are_tables(plant, folder, findings):
    model = EntangledKernelRidge().fit(plant[NAMES], plant[TARGETS])
    findings |= {"weights": [("colour", 0.75)], "influence": np.array([[0.125, 0.5], [0.0, 0.25]])}
    write_model_page(SavedModel(model, {}, {}), findings, folder / "page.html")
    page = (folder / "page.html").read_text()
    for words in ("Weight of every kernel", "colour", "0.750", "Influence on the next step", "0.125"):
        assert words in page
