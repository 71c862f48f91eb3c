import json
import sys

import numpy as np
from sklearn.preprocessing import KBinsDiscretizer

from entangled_kernels import EntangledKernelRidge, OperatorKernelVAR
from entangled_kernels.io import run_onnx, save_model

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]
EXPORT = "export plant.model --out plant.onnx"


def test_people_are_told_what_goes_in_and_comes_out(model, run, plant):
    shown = run(EXPORT).stdout
    for words in (
        "Wrote plant.onnx.",
        "Input: X, float32 (rows, 3): inlet temp, flow, l/s, pressure",
        "Output: prediction, (rows, 2): net load, peak load (kW)",
        "Largest difference from the model on 100 simulated rows: ",
    ):
        assert words in shown
    wanted = model.predict(plant[NAMES])
    found = run_onnx("plant.onnx", plant[NAMES])
    np.testing.assert_allclose(found, wanted, atol=1e-5 * wanted.std())


def test_machines_are_told_the_same(model, run, plant):
    options = "--dtype float64 --check plant.csv --json"
    values = json.loads(run(f"export plant.model --onnx plant.onnx {options}").stdout)
    assert values.pop("difference") < 1e-10
    assert values == {
        "out": "plant.onnx",
        "inputs": {"X": "float64"},
        "columns": NAMES,
        "output": "prediction",
        "targets": TARGETS,
    }


def test_text_is_encoded_inside(run, plant):
    plant.assign(town=["Ulm", "Aix"] * 20).to_csv("towns.csv", index=False)
    run(f"fit towns.csv -t '{','.join(TARGETS)}' -x id --encode -f linear -o t.model")
    values = json.loads(run("export t.model -o t.onnx --check towns.csv --json").stdout)
    assert values["inputs"] == {**dict.fromkeys(NAMES, "float32"), "town": "text"}
    assert values["difference"] < 1e-5


def test_a_check_advises_only_options_that_there_are(model, run, plant):
    plant.loc[3, "pressure"] = np.nan
    plant.to_csv("holes.csv", index=False)
    words = run(f"{EXPORT} --check holes.csv", code=3).stderr
    assert "row 4, column 'pressure': the cell is empty" in words
    advised = {word.strip(",.;:()") for word in words.split() if word.startswith(("--", "(--"))}
    assert advised == {"--missing"}
    run(f"{EXPORT} --check holes.csv --missing drop")


def test_nothing_is_replaced_unasked(model, run, folder, plant):
    (folder / "plant.onnx").write_text("mine")
    assert "--force" in run(EXPORT, code=2).stderr
    assert (folder / "plant.onnx").read_text() == "mine"
    run(f"{EXPORT} --force")
    assert (folder / "plant.onnx").read_bytes()[:4] != b"mine"
    for output in ("plant.model", "plant.csv"):
        command = f"export plant.model --out {output} --check plant.csv --force"
        assert "is read by this command" in run(command, code=2).stderr


def test_models_that_cannot_be_exported(plant, run, folder, rng):
    step = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    save_model(EntangledKernelRidge(step).fit(plant[NAMES], plant[TARGETS]), "q.model")
    words = run("export q.model --onnx q.onnx", code=4).stderr
    assert "q.model: EntangledKernelRidge > feature_map_ (KBinsDiscretizer) cannot be" in words
    save_model(OperatorKernelVAR().fit(rng.normal(size=(30, 2))), "series.model")
    words = run("export series.model --onnx q.onnx", code=4).stderr
    assert "predicts steps, not rows" in words
    assert not (folder / "q.onnx").exists()


def test_wrong_options(model, run):
    assert "--dtype must be one of" in run(f"{EXPORT} --dtype half", code=2).stderr
    assert "no file" in run(f"{EXPORT} --check none.csv", code=2).stderr


def test_lost_digits_are_noted(plant, run):
    Y = plant[TARGETS] + [0.0, 1e6]
    save_model(EntangledKernelRidge().fit(plant[NAMES], Y), "far.model")
    assert "use --dtype float64" in run("export far.model --onnx far.onnx").stderr
    assert not run("export far.model --onnx f64.onnx --dtype float64").stderr


def test_packages_that_are_missing(model, run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("entangled_kernels.cli.commands.export.find_spec", lambda name: None)
        done = run(EXPORT)
        assert "was not compared with the model" in done.stderr
        assert "Largest difference" not in done.stdout
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "entangled-kernels[onnx]" in run(f"{EXPORT} --force", code=6).stderr
