import errno
import json
import os

import numpy as np
import pandas as pd
import pytest

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge
from entangled_kernels.io import read_table, save_model, write_table

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]
PREDICT = "predict plant.model plant.csv --out p.csv"


def ends(predicted):
    """Lower and upper ends of the intervals."""
    return [
        predicted[[f"{name}_{end}" for name in TARGETS]].to_numpy() for end in ("lower", "upper")
    ]


def test_predictions_are_the_models(plant, model, run):
    shown = run(PREDICT).stdout
    assert "Wrote 40 rows of 2 targets to p.csv." in shown
    assert "The table holds the targets too" in shown
    predicted = read_table("p.csv")
    assert list(predicted.columns) == TARGETS
    assert np.array_equal(predicted.to_numpy(), model.predict(plant[NAMES]))


def test_missing_and_text_cells_are_named(plant, model, run):
    plant.loc[4, "pressure"] = np.nan
    plant.to_csv("plant.csv", index=False)
    assert "row 5, column 'pressure': the cell is empty" in run(PREDICT, code=3).stderr
    plant.astype({"pressure": object}).fillna("none").to_csv("plant.csv", index=False)
    assert "row 5, column 'pressure': 'none' is no number" in run(PREDICT, code=3).stderr


@pytest.mark.parametrize("joint", [False, True])
def test_intervals_are_those_of_the_model(plant, model, run, joint):
    run(f"{PREDICT} --intervals 0.9 {'--joint' * joint}")
    predicted = read_table("p.csv")
    assert list(predicted.columns)[:3] == ["net load", "net load_lower", "net load_upper"]
    lower, upper = ends(predicted)
    np.testing.assert_array_equal(
        [lower, upper], model.predict_interval(plant[NAMES], 0.9, joint=joint)
    )
    np.testing.assert_array_equal(predicted[TARGETS], model.predict(plant[NAMES]))
    inside = (plant[TARGETS].to_numpy() >= lower) & (plant[TARGETS].to_numpy() <= upper)
    assert inside.mean() > 0.7


def test_measured_targets_are_used(plant, model, run):
    plant.loc[5:, "net load"] = np.nan
    plant.loc[:20, "peak load (kW)"] = np.nan
    plant.to_csv("plant.csv", index=False)
    shown = run(f"{PREDICT} --measured --intervals 0.8").stdout
    assert "Given in the table, and written unchanged: 24 values." in shown
    assert run(f"{PREDICT} --given --intervals 0.8 --force").stdout == shown
    assert "error on its rows" not in shown
    predicted, given = read_table("p.csv"), plant[TARGETS]
    known = given.notna().to_numpy()
    np.testing.assert_array_equal(predicted[TARGETS].to_numpy()[known], given.to_numpy()[known])
    np.testing.assert_array_equal(predicted[TARGETS], model.predict(plant[NAMES], given=given))
    expected = model.predict_interval(plant[NAMES], 0.8, given=given)
    np.testing.assert_array_equal(ends(predicted), expected)
    assert not np.allclose(predicted[TARGETS], model.predict(plant[NAMES]))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_measured_targets_in_batches(plant, model, run, folder, kind):
    plant.loc[::2, "net load"] = np.nan
    (folder / "parts").mkdir()
    for number in range(2):
        write_table(plant[20 * number : 20 * number + 20], f"parts/{number}.{kind}")
    write_table(plant, "all.parquet")
    options = "--measured --intervals 0.8 --joint --keep id --json"
    once, parts = (
        json.loads(run(f"predict plant.model {table} {options} --out {out}").stdout)
        for table, out in (("all.parquet", "p.parquet"), ("parts", "q.parquet"))
    )
    assert once | {"out": None} == parts | {"out": None}
    pd.testing.assert_frame_equal(read_table("p.parquet"), read_table("q.parquet"))
    for number in range(2):
        write_table(plant[NAMES][20 * number : 20 * number + 20], f"parts/{number}.{kind}")
    error = run("predict plant.model parts --measured --out r.parquet", code=3).stderr
    assert "--measured needs a column that is a target" in error


def test_options_that_cannot_be(plant, model, run):
    for level in (0, 1, 90):
        error = run(f"{PREDICT} --intervals {level}", code=2).stderr
        assert f"must be between 0 and 1, got {level}" in error
    assert "--joint needs --intervals" in run(f"{PREDICT} --joint", code=2).stderr


def test_columns_may_be_kept(plant, model, run):
    run(f"{PREDICT} --keep 'id,net load'")
    predicted = read_table("p.csv")
    assert list(predicted.columns) == ["id", "net load", "net load predicted", "peak load (kW)"]
    assert list(predicted["id"]) == list(plant["id"])
    assert "no column 'idd'" in run(f"{PREDICT} --keep idd --force", code=3).stderr


def test_a_full_disk_loses_nothing(plant, model, run, folder, monkeypatch):
    (folder / "p.csv").write_text("precious")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "the disk is full" in run(f"{PREDICT} --force", code=5).stderr
    assert (folder / "p.csv").read_text() == "precious"
    assert sorted(os.listdir()) == ["p.csv", "plant.csv", "plant.model"]


@pytest.mark.parametrize("damage", ["cut", "flip", "png", "empty", "table"])
def test_damaged_models_are_refused(plant, model, run, folder, damage):
    path = folder / "plant.model"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    contents = {
        "cut": bytes(content[: len(content) // 3]),
        "flip": bytes(content),
        "png": b"\x89PNG\r\n\x1a\n",
        "empty": b"",
        "table": (folder / "plant.csv").read_bytes(),
    }
    path.write_bytes(contents[damage])
    error = run(PREDICT, code=4).stderr
    assert "is damaged" in error or "not a model file" in error
    assert "model" in run("inspect plant.model", code=4).stderr
    assert not os.path.exists("p.csv")


def test_targets_that_are_not_known_everywhere_are_no_error(plant, model, run):
    plant.loc[3, "net load"] = np.nan
    plant.assign(**{"peak load (kW)": "unknown"}).to_csv("plant.csv", index=False)
    values = json.loads(run(f"{PREDICT} --json").stdout)
    true, found = plant["net load"].drop(index=3), read_table("p.csv")["net load"].drop(index=3)
    error = np.mean((true - found) ** 2) / true.var(ddof=0)
    assert values["nmse"] == {"net load": pytest.approx(error)}
    plant.assign(**dict.fromkeys(TARGETS, "unknown")).to_csv("plant.csv", index=False)
    assert json.loads(run(f"{PREDICT} --json --force").stdout)["nmse"] is None


def test_models_saved_from_python(plant, run):
    frame = plant[NAMES]
    save_model(EntangledKernelRidge().fit(frame, plant[TARGETS]), "named.model")
    run("predict named.model plant.csv --out p.csv")
    assert list(read_table("p.csv").columns) == TARGETS
    save_model(OutputKernelRidge().fit(frame, plant[TARGETS].to_numpy()), "output.model")
    run("predict output.model plant.csv --out q.csv")
    assert list(read_table("q.csv").columns) == ["output0", "output1"]
    for option in ("--intervals 0.9", "--measured"):
        error = run(f"predict output.model plant.csv --out r.csv {option}", code=2).stderr
        need = f"{option.split()[0]} needs an entangled kernel model, got OutputKernelRidge"
        assert need in error
    nameless = EntangledKernelRidge().fit(frame.to_numpy(), plant["net load"].to_numpy())
    save_model(nameless, "nameless.model")
    error = run("predict nameless.model plant.csv --out r.csv", code=4).stderr
    assert "does not know the names of its inputs" in error


def test_rows_far_out_are_counted_and_told(plant, model, run):
    far = plant.copy()
    far.loc[:2, NAMES] *= 1e12
    far.to_csv("far.csv", index=False)
    notes = run("predict plant.model far.csv --out p.csv --novelty").stderr
    assert "3 of 40 rows are far from the training rows (novelty above 1)" in notes
    novelty = read_table("p.csv")["novelty"]
    np.testing.assert_allclose(novelty, model.novelty(far[NAMES]))
    assert (novelty > 1.0).tolist() == [True] * 3 + [False] * 37
    assert json.loads(run(f"{PREDICT} --json --force").stdout)["far_rows"] == 0
    assert list(read_table("p.csv").columns) == TARGETS
