import re

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.commands.inspect import find_out
from entangled_kernels.cli.models import entanglement_of
from entangled_kernels.cli.pages import write_model_page
from entangled_kernels.io import SavedModel, open_model, read_table

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


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
        "telling": ["Measuring 'a' removes 61% of the uncertainty of 'b'."],
        "information": [[1.0, 0.61], [0.61, 1.0]],
        "entangled": None,
        "verdict": "Not tested: too large.",
        "entanglement": None,
    }


def test_what_the_page_says(plant, folder, findings):
    model = EntangledKernelRidge().fit(plant[NAMES], plant[TARGETS])
    saved = SavedModel(model, {"command": "entangled-kernels fit 'my plant.csv'"}, {})
    write_model_page(saved, findings, "entangled-kernels inspect my.model", folder / "my page.html")
    page = (folder / "my page.html").read_text()
    for words in (
        "Predicts 2 targets from 1 input.",
        "1 row of plant.csv",
        "50.0% less error",
        "&lt;b&gt;",
        r"in\u001b[2J",
        "Explains 99% of the variance of held-out rows.",
        "Measuring &#39;a&#39; removes 61%",
        "Share of the uncertainty of the column",
        "Not tested:",
        "entangled-kernels fit &#39;my plant.csv&#39;",
        "entangled-kernels inspect my.model",
    ):
        assert words in page
    assert "\x1b" not in page
    assert "<b>" not in page.replace("<b>Table", "").replace("<b>Figure", "")


ART = (
    "nMSE", "R2", "RMSE", "alpha", "shrinkage", "kernel ridge", "partial trace", "importance",
    "importance by chance", "out of fold", "interval", "held-out", "uncertainty", "alignment mix",
    "target alpha", "PPT", "negativity", "Schmidt", "realignment", "separable share",
    "lowest eigenvalue", "entangled", "separable",
)  # fmt: skip
QUANTUM = ("PPT", "negativity", "Schmidt", "realignment")


@pytest.fixture(scope="module")
def whole_page(fitted):
    path = fitted.with_name("page.html")
    rows = read_table(fitted.with_name("plant.csv"))
    entangled = EntangledKernelRidge(shrinkage=0.1, alignment_mix=1.0)
    facts = entanglement_of(entangled.fit(rows[NAMES], rows[TARGETS]))
    saved = open_model(fitted)
    write_model_page(saved, find_out(saved, fitted) | facts, "command", path)
    return path.read_text()


def test_every_term_of_art_is_explained(whole_page):
    said = re.sub(r"<[^>]*>|<dl.*?</dl>", " ", whole_page.partition("<main")[2], flags=re.S)
    used = [term for term in ART if re.search(rf"\b{term}\b", said, re.IGNORECASE)]
    assert {"nMSE", "RMSE", "importance", "PPT", "interval"} <= set(used)
    assert [term for term in used if f"<dt>{term}</dt>" not in whole_page] == []


def test_words_of_quantum_theory_are_folded_away(whole_page):
    opened = re.sub(r"<details>.*?</details>", "", whole_page, flags=re.S)
    assert [word for word in QUANTUM if word in opened] == []
    assert all(word.lower() in whole_page.lower() for word in QUANTUM)


def test_the_verdict_comes_first_and_every_target_has_a_picture(whole_page):
    assert re.search(
        r"<h2[^>]*>How well it predicts</h2>\s*<div class=\"verdict plain\">", whole_page
    )
    assert whole_page.index("How well it predicts</h2>") < whole_page.index("What it is</h2>")
    for target in TARGETS:
        assert f'alt="Predictions of {target} over measurements"' in whole_page
