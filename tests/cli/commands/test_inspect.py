import json
import shutil

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge, OperatorValuedKernelRidge, OutputKernelRidge
from entangled_kernels.cli.pages.model_page import _error_digits as error_digits
from entangled_kernels.cli.target_relations import output_relations, sharing_in_words, strongest_pairs
from entangled_kernels.kernels import SeparableKernel
from entangled_kernels.storage import save_model

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


@pytest.fixture
def model(fitted, folder):
    shutil.copy(fitted, folder / "plant.model")


def test_people_are_told_what_the_model_is(model, run):
    shown = run("inspect", "plant.model").stdout
    for words in (
        "plant.model: EntangledKernelRidgeCV, saved by entangled-kernels",
        "Fitted to 40 rows of plant.csv.",
        "Inputs: inlet temp, flow, l/s, pressure",
        "Targets: net load, peak load (kW)",
        "Settings: StandardScaler; ",
        "Cross-validated nMSE",
        "Who shares what:",
    ):
        assert words in shown


def test_machines_are_told_the_same(model, run):
    values = json.loads(run("inspect", "plant.model", "--json").stdout)
    assert values["targets"] == TARGETS
    assert values["verdict"]
    assert values["entangled"] in (True, False, None)
    assert values["sharing"]


def test_an_entangled_model_is_called_so(plant, run):
    model = EntangledKernelRidge(shrinkage=0.1, alignment_mix=1.0).fit(plant[NAMES], plant[TARGETS])
    save_model(model, "e.model")
    values = json.loads(run("inspect", "e.model", "--json").stdout)
    assert values["entangled"] is True
    assert values["verdict"].startswith("Entangled: PPT fails")
    assert values["entanglement"]["negativity"] == pytest.approx(model.kernel_.entanglement().negativity)
    assert "fails" in run("inspect", "e.model").stdout


@pytest.mark.parametrize("kind", ["output", "given"])
def test_models_of_other_classes(plant, run, kind):
    frame, Y = plant[NAMES], plant[TARGETS]
    models = {
        "output": OutputKernelRidge(kernel="rbf").fit(frame, Y),
        "given": OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(2))).fit(
            frame.to_numpy(), Y.to_numpy()
        ),
    }
    save_model(models[kind], "other.model")
    shown = run("inspect", "other.model", "--report", "page.html").stdout
    assert {"output": "Separable: one scalar kernel", "given": "Not tested: the kernel was given"}[
        kind
    ] in shown


def test_large_kernels_are_not_tested(plant, run, monkeypatch):
    monkeypatch.setattr("entangled_kernels.cli.entanglement.LARGEST", 5)
    save_model(EntangledKernelRidge().fit(plant[NAMES], plant[TARGETS]), "m.model")
    assert "Not tested: features times targets are 6" in run("inspect", "m.model").stdout


def test_the_page_has_it_all(model, run, folder):
    run("inspect", "plant.model", "--report", "page.html")
    page = (folder / "page.html").read_text()
    for words in ("Who shares what", "Entanglement", "How the settings were chosen", "peak load (kW)"):
        assert words in page
    assert "entangled-kernels inspect plant.model --report page.html" in page
    assert "entangled-kernels fit" in page
    assert page.count("<img") >= 2
    assert "exists already" in run("inspect", "plant.model", "--report", "page.html", code=2).stderr
    run("inspect", "plant.model", "--report", "page.html", "--force")


def test_a_damaged_model(folder, run):
    (folder / "m").write_text("no model")
    assert "not a model file" in run("inspect", "m", code=4).stderr


def test_relations_are_correlations_of_the_kernel(rng):
    X = rng.normal(size=(30, 4)) + 3.0
    Y = X @ rng.normal(size=(4, 3))
    model = EntangledKernelRidge(shrinkage=0.3).fit(X, Y)
    centred = X - X.mean(axis=0)
    mean = model.kernel_.diag(centred).mean(axis=0)
    expected = mean / np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
    assert np.allclose(output_relations(model, X), expected)
    assert np.allclose(output_relations(EntangledKernelRidge(shrinkage=1.0).fit(X, Y), X), np.eye(3))


def test_words_for_what_is_shared():
    settings = {"shrinkage": 0.5, "prediction": "entangled"}
    correlations = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, -0.05], [0.0, -0.05, 1.0]])
    assert strongest_pairs(correlations, ["a", "b", "c"])[0] == ("a", "b", 0.9)
    words = sharing_in_words(settings, correlations, ["a", "b", "c"])
    assert words == [
        "'a' and 'b' strongly move together (correlation +0.90 in the kernel).",
        "'c' keeps to itself.",
    ]
    assert "move against each other" in sharing_in_words(settings, -correlations, ["a", "b", "c"])[0]
    assert "hardly relates" in sharing_in_words(settings, np.eye(3), ["a", "b", "c"])[0]
    assert "one target" in sharing_in_words(settings, np.eye(1), ["a"])[0]
    assert "Plain kernel ridge" in sharing_in_words(settings | {"shrinkage": 1.0}, None, ["a", "b"])[0]
    assert (
        "partial trace" in sharing_in_words(settings | {"prediction": "partial_trace"}, None, ["a", "b"])[0]
    )
    many = np.full((5, 5), 0.6) + 0.4 * np.eye(5)
    assert sharing_in_words(settings, many, list("abcde"))[-1].startswith("5 further pairs")


def test_small_errors_are_told_apart_on_the_page():
    assert [error_digits(least) for least in (1.2, 0.1, 0.012, 0.000976, 1e-30)] == [3, 3, 4, 6, 9]
