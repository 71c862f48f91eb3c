import errno
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge
from entangled_kernels.io import load_model, read_table, save_model, write_table

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


def ends(predicted):
    """Lower and upper ends of the intervals."""
    return [
        predicted[[f"{name}_{end}" for name in TARGETS]].to_numpy() for end in ("lower", "upper")
    ]


@pytest.fixture
def model(fitted, folder):
    shutil.copy(fitted, folder / "plant.model")
    return load_model("plant.model")


def test_predictions_are_the_models(plant, model, run):
    shown = run("predict", "plant.model", "plant.csv", "--out", "p.csv").stdout
    assert "Wrote 40 rows of 2 targets to p.csv." in shown
    assert "The table holds the targets too" in shown
    predicted = read_table("p.csv")
    assert list(predicted.columns) == TARGETS
    assert np.array_equal(predicted.to_numpy(), model.predict(plant[NAMES]))


def test_missing_and_text_cells_are_named(plant, model, run):
    plant.loc[4, "pressure"] = np.nan
    plant.to_csv("plant.csv", index=False)
    result = run("predict", "plant.model", "plant.csv", "--out", "p.csv", code=3)
    assert "row 5, column 'pressure': the cell is empty" in result.stderr
    plant.astype({"pressure": object}).fillna("none").to_csv("plant.csv", index=False)
    result = run("predict", "plant.model", "plant.csv", "--out", "p.csv", code=3)
    assert "row 5, column 'pressure': 'none' is no number" in result.stderr


def test_intervals_are_those_of_the_model(plant, model, run):
    run("predict", "plant.model", "plant.csv", "--out", "p.csv", "--intervals", 0.9)
    predicted = read_table("p.csv")
    assert list(predicted.columns)[:3] == ["net load", "net load_lower", "net load_upper"]
    lower, upper = ends(predicted)
    expected = model.predict_interval(plant[NAMES], 0.9)
    np.testing.assert_array_equal(lower, expected[0])
    np.testing.assert_array_equal(upper, expected[1])
    np.testing.assert_array_equal(predicted[TARGETS], model.predict(plant[NAMES]))
    inside = (plant[TARGETS].to_numpy() >= lower) & (plant[TARGETS].to_numpy() <= upper)
    assert inside.mean() > 0.7


def test_joint_intervals(plant, model, run):
    run("predict", "plant.model", "plant.csv", "--out", "p.csv", "--intervals", 0.9, "--joint")
    expected = model.predict_interval(plant[NAMES], 0.9, joint=True)
    for found, end in zip(ends(read_table("p.csv")), expected, strict=True):
        np.testing.assert_array_equal(found, end)
    result = run("predict", "plant.model", "plant.csv", "--out", "q.csv", "--joint", code=2)
    assert "--joint needs --intervals, such as --intervals 0.9" in result.stderr


def test_measured_targets_are_used(plant, model, run):
    plant.loc[5:, "net load"] = np.nan
    plant.loc[:20, "peak load (kW)"] = np.nan
    plant.to_csv("plant.csv", index=False)
    options = ("--out", "p.csv", "--measured", "--intervals", 0.8)
    shown = run("predict", "plant.model", "plant.csv", *options).stdout
    assert "Given in the table, and written as they are: 24 values." in shown
    assert "error on its rows" not in shown
    predicted, given = read_table("p.csv"), plant[TARGETS]
    known = given.notna().to_numpy()
    np.testing.assert_array_equal(predicted[TARGETS].to_numpy()[known], given.to_numpy()[known])
    np.testing.assert_array_equal(predicted[TARGETS], model.predict(plant[NAMES], given=given))
    for found, end in zip(
        ends(predicted), model.predict_interval(plant[NAMES], 0.8, given=given), strict=True
    ):
        np.testing.assert_array_equal(found, end)
        np.testing.assert_array_equal(found[known], given.to_numpy()[known])
    assert not np.allclose(predicted[TARGETS], model.predict(plant[NAMES]))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_measured_targets_in_batches(plant, model, run, folder, kind):
    plant.loc[::2, "net load"] = np.nan
    (folder / "parts").mkdir()
    for number in range(2):
        write_table(plant[20 * number : 20 * number + 20], f"parts/{number}.{kind}")
    write_table(plant, "all.parquet")
    options = ("--measured", "--intervals", 0.8, "--joint", "--keep", "id", "--json")
    once = json.loads(
        run("predict", "plant.model", "all.parquet", *options, "--out", "p.parquet").stdout
    )
    parts = json.loads(
        run("predict", "plant.model", "parts", *options, "--out", "q.parquet").stdout
    )
    assert once | {"out": None} == parts | {"out": None}
    pd.testing.assert_frame_equal(read_table("p.parquet"), read_table("q.parquet"))
    for number in range(2):
        write_table(plant[NAMES][20 * number : 20 * number + 20], f"parts/{number}.{kind}")
    result = run("predict", "plant.model", "parts", "--measured", "--out", "r.parquet", code=3)
    assert "--measured needs a column that is a target" in result.stderr


@pytest.mark.parametrize("level", [0, 1, 90])
def test_intervals_must_be_a_share(plant, model, run, level):
    result = run(
        "predict", "plant.model", "plant.csv", "--out", "p.csv", "--intervals", level, code=2
    )
    assert f"must be between 0 and 1, got {level}" in result.stderr


def test_columns_may_be_kept(plant, model, run):
    run("predict", "plant.model", "plant.csv", "--out", "p.csv", "--keep", "id,net load")
    predicted = read_table("p.csv")
    assert list(predicted.columns) == ["id", "net load", "net load predicted", "peak load (kW)"]
    assert list(predicted["id"]) == list(plant["id"])
    assert (
        "no column 'idd'"
        in run(
            "predict", "plant.model", "plant.csv", "--out", "q.csv", "--keep", "idd", code=3
        ).stderr
    )


def test_a_full_disk_loses_nothing(plant, model, run, folder, monkeypatch):
    (folder / "p.csv").write_text("precious")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("predict", "plant.model", "plant.csv", "--out", "p.csv", "--force", code=5)
    assert "the disk is full" in result.stderr
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
    result = run("predict", "plant.model", "plant.csv", "--out", "p.csv", code=4)
    assert "is damaged" in result.stderr or "not a model file" in result.stderr
    assert not os.path.exists("p.csv")


def test_text_is_encoded_as_it_was(plant, run):
    plant["town"] = ["Ulm", "Aix"] * 20
    plant["net load"] += plant["town"] == "Ulm"
    plant.drop(columns="id").to_csv("plant.csv", index=False)
    run("fit", "plant.csv", "-t", ",".join(TARGETS), "-f", "linear", "--encode", "-o", "town.model")
    result = run("predict", "town.model", "plant.csv", "--out", "p.csv")
    assert result.stderr == ""
    plant.assign(town="Ems").to_csv("new.csv", index=False)
    result = run("predict", "town.model", "new.csv", "--out", "q.csv")
    assert "note: column 'town' holds 'Ems', unknown to the model" in result.stderr
    plant.assign(town=np.where(plant.index == 3, None, plant["town"])).to_csv(
        "new.csv", index=False
    )
    assert "row 1, column 'town': the cell is empty" in _without_towns(plant, run)
    plant.assign(town=np.where(plant.index == 3, None, plant["town"])).to_csv(
        "new.csv", index=False
    )
    result = run("predict", "town.model", "new.csv", "--out", "r.csv", code=3)
    assert "row 4, column 'town': the cell is empty" in result.stderr


def _without_towns(plant, run):
    plant.assign(town=None).to_csv("new.csv", index=False)
    return run("predict", "town.model", "new.csv", "--out", "r.csv", code=3).stderr


def test_targets_that_are_not_known_everywhere_are_no_error(plant, model, run):
    plant.loc[3, "net load"] = np.nan
    plant.assign(**{"peak load (kW)": "unknown"}).to_csv("plant.csv", index=False)
    values = json.loads(
        run("predict", "plant.model", "plant.csv", "--out", "p.csv", "--json").stdout
    )
    assert list(values["nmse"]) == ["net load"]
    true, found = plant["net load"].drop(index=3), read_table("p.csv")["net load"].drop(index=3)
    assert values["nmse"]["net load"] == pytest.approx(
        np.mean((true - found) ** 2) / true.var(ddof=0)
    )
    plant.loc[:, "net load"] = np.nan
    plant.assign(**{"peak load (kW)": "unknown"}).to_csv("plant.csv", index=False)
    assert (
        json.loads(run("predict", "plant.model", "plant.csv", "--out", "q.csv", "--json").stdout)[
            "nmse"
        ]
        is None
    )


def test_models_saved_from_python(plant, run):
    frame = plant[NAMES]
    save_model(EntangledKernelRidge().fit(frame, plant[TARGETS]), "named.model")
    run("predict", "named.model", "plant.csv", "--out", "p.csv")
    assert list(read_table("p.csv").columns) == TARGETS
    save_model(OutputKernelRidge().fit(frame, plant[TARGETS].to_numpy()), "output.model")
    run("predict", "output.model", "plant.csv", "--out", "q.csv")
    assert list(read_table("q.csv").columns) == ["output0", "output1"]
    result = run(
        "predict", "output.model", "plant.csv", "--out", "r.csv", "--intervals", 0.9, code=2
    )
    assert "--intervals needs an entangled kernel model, got OutputKernelRidge" in result.stderr
    result = run("predict", "output.model", "plant.csv", "--out", "r.csv", "--measured", code=2)
    assert "--measured needs an entangled kernel model, got OutputKernelRidge" in result.stderr
    save_model(
        EntangledKernelRidge().fit(frame.to_numpy(), plant["net load"].to_numpy()), "nameless.model"
    )
    result = run("predict", "nameless.model", "plant.csv", "--out", "r.csv", code=4)
    assert "does not know the names of its inputs" in result.stderr


def test_rows_far_out_are_counted_and_told(plant, model, run):
    far = plant.copy()
    far.loc[:2, NAMES] *= 1e12
    far.to_csv("far.csv", index=False)
    result = run("predict", "plant.model", "far.csv", "--out", "p.csv", "--novelty")
    assert (
        "3 of 40 rows are far from what the model was fitted on (novelty above 1)" in result.stderr
    )
    novelty = read_table("p.csv")["novelty"]
    np.testing.assert_allclose(novelty, model.novelty(far[NAMES]))
    assert (novelty > 1.0).tolist() == [True] * 3 + [False] * 37
    values = json.loads(
        run("predict", "plant.model", "plant.csv", "--out", "q.csv", "--json").stdout
    )
    assert values["far_rows"] == 0
    assert list(read_table("q.csv").columns) == TARGETS


def test_an_average_over_several_maps_fills_blank_inputs(plant, run):
    """The default model of `fit --missing median` averages maps; each of them fills blanks."""
    blank = plant.copy()
    blank.loc[[3, 7], "pressure"] = np.nan
    blank.to_csv("blanks.csv", index=False)
    names = [part for target in TARGETS for part in ("--targets", target)]
    run("fit", "blanks.csv", *names, "--missing", "median", "--out", "b.model", "--exclude", "id")
    assert len(load_model("b.model").feature_map_.transformer_list) > 1
    run("predict", "b.model", "blanks.csv", "--out", "p.csv", "--intervals", 0.9)
    assert read_table("p.csv").notna().all(axis=None)
    blank.drop(columns=TARGETS[1]).to_csv("half.csv", index=False)
    run("predict", "b.model", "half.csv", "--measured", "--out", "q.csv")
    assert read_table("q.csv").notna().all(axis=None)
    run("plan", "b.model", "half.csv", "--out", "plan.csv")
    assert len(read_table("plan.csv"))
