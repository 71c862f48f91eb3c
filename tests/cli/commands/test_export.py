import json
import shutil
import sys

import numpy as np
import pytest
from sklearn.preprocessing import KBinsDiscretizer

from entangled_kernels import EntangledKernelRidge, OperatorKernelVAR
from entangled_kernels.io import load_model, run_onnx, save_model

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


@pytest.fixture
def model(fitted, folder):
    shutil.copy(fitted, folder / "plant.model")


def test_people_are_told_what_goes_in_and_comes_out(model, run, plant):
    shown = run("export", "plant.model", "--onnx", "plant.onnx").stdout
    for words in (
        "Wrote plant.onnx.",
        "Input: X, float32 (rows, 3): inlet temp, flow, l/s, pressure",
        "Output: prediction, (rows, 2): net load, peak load (kW)",
        "Largest difference from the model on 100 rows drawn like those of training: ",
    ):
        assert words in shown
    wanted = load_model("plant.model").predict(plant[NAMES])
    np.testing.assert_allclose(
        run_onnx("plant.onnx", plant[NAMES]), wanted, atol=1e-5 * wanted.std()
    )


def test_machines_are_told_the_same(model, run, plant):
    done = run(
        "export",
        "plant.model",
        "--onnx",
        "plant.onnx",
        "--dtype",
        "float64",
        "--check",
        "plant.csv",
        "--json",
    )
    values = json.loads(done.stdout)
    assert values.pop("difference") < 1e-10
    assert values == {
        "out": "plant.onnx",
        "inputs": {"X": "float64"},
        "columns": NAMES,
        "output": "prediction",
        "targets": TARGETS,
    }


def test_text_is_encoded_inside(run, plant, folder):
    plant.assign(town=["Ulm", "Aix"] * 20).to_csv("towns.csv", index=False)
    run(
        "fit",
        "towns.csv",
        "-t",
        ",".join(f'"{name}"' for name in TARGETS),
        "-x",
        "id",
        "--encode",
        "--features",
        "linear",
        "-o",
        "t.model",
    )
    shown = run("export", "t.model", "--onnx", "t.onnx", "--check", "towns.csv").stdout
    assert "on the rows of towns.csv" in shown
    values = json.loads(run("export", "t.model", "--onnx", "again.onnx", "--json").stdout)
    assert values["inputs"] == {**dict.fromkeys(NAMES, "float32"), "town": "text"}
    assert values["difference"] < 1e-5


@pytest.mark.parametrize("option", ["--out", "-o", "--onnx"])
def test_the_file_is_named_as_by_every_command(option, model, run, folder):
    run("export", "plant.model", option, "plant.onnx")
    assert (folder / "plant.onnx").exists()


def test_a_check_advises_only_options_that_there_are(model, run, plant):
    plant.assign(pressure=np.nan).to_csv("holes.csv", index=False)
    words = run("export", "plant.model", "--out", "p.onnx", "--check", "holes.csv", code=3).stderr
    advised = {word.strip(",.;:()") for word in words.split() if word.startswith(("--", "(--"))}
    shown = run("export", "--help").stdout
    assert advised
    assert all(option in shown for option in advised)


def test_nothing_is_replaced_unasked(model, run, folder, plant):
    (folder / "plant.onnx").write_text("mine")
    assert "--force" in run("export", "plant.model", "--onnx", "plant.onnx", code=2).stderr
    assert (folder / "plant.onnx").read_text() == "mine"
    run("export", "plant.model", "--onnx", "plant.onnx", "--force")
    assert (folder / "plant.onnx").read_bytes()[:4] != b"mine"
    for output in ("plant.model", "plant.csv"):
        words = run(
            "export", "plant.model", "--onnx", output, "--check", "plant.csv", "--force", code=2
        ).stderr
        assert "is read by this command" in words


def test_a_step_that_cannot_be_exported_is_named(plant, run, folder):
    step = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    save_model(EntangledKernelRidge(step).fit(plant[NAMES], plant[TARGETS]), "q.model")
    words = run("export", "q.model", "--onnx", "q.onnx", code=4).stderr
    assert (
        "q.model: EntangledKernelRidge > feature_map_ (KBinsDiscretizer) cannot be exported"
        in words
    )
    assert not (folder / "q.onnx").exists()


def test_series_are_refused(rng, run):
    save_model(OperatorKernelVAR().fit(rng.normal(size=(30, 2))), "series.model")
    assert (
        "predicts steps, not rows"
        in run("export", "series.model", "--onnx", "s.onnx", code=4).stderr
    )


def test_wrong_options(model, run):
    assert (
        "--dtype must be one of"
        in run("export", "plant.model", "--onnx", "p.onnx", "--dtype", "half", code=2).stderr
    )
    assert (
        "no file"
        in run("export", "plant.model", "--onnx", "p.onnx", "--check", "none.csv", code=2).stderr
    )


def test_lost_digits_are_noted(plant, run):
    Y = plant[TARGETS] + [0.0, 1e6]
    save_model(EntangledKernelRidge().fit(plant[NAMES], Y), "far.model")
    assert "use --dtype float64" in run("export", "far.model", "--onnx", "far.onnx").stderr
    assert not run("export", "far.model", "--onnx", "f64.onnx", "--dtype", "float64").stderr


def test_without_onnxruntime_nothing_is_compared(model, run, monkeypatch):
    monkeypatch.setattr("entangled_kernels.cli.commands.export.find_spec", lambda name: None)
    done = run("export", "plant.model", "--onnx", "plant.onnx")
    assert "was not compared with the model" in done.stderr
    assert "Largest difference" not in done.stdout


def test_without_onnx_the_extra_is_named(model, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    words = run("export", "plant.model", "--onnx", "plant.onnx", code=6).stderr
    assert "entangled-kernels[onnx]" in words
