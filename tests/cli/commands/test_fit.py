import errno
import json
import os
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.cli.application import app
from entangled_kernels.cli.files import in_batches
from entangled_kernels.io import load_model, open_model, read_table, write_table

INPUTS = 'inlet temp,"flow, l/s",pressure'
NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = "net load,peak load (kW)"
FIT = ("fit", "plant.csv", "--targets", TARGETS, "--inputs", INPUTS, "--out", "plant.model")
LINEAR = ("--features", "linear")


@pytest.mark.thorough
@pytest.mark.usefixtures("plant")
def test_a_csv_becomes_a_model(run):
    shown = run(*FIT).stdout
    assert "plant.csv: 40 rows, 3 inputs, 2 targets." in shown
    assert "Chosen: " in shown
    assert "kernel ridge" in shown
    assert "peak load (kW)" in shown
    saved = open_model("plant.model")
    assert isinstance(saved.model, EntangledKernelRidgeCV)
    assert saved.info["inputs"] == ["inlet temp", "flow, l/s", "pressure"]
    assert saved.info["targets"] == ["net load", "peak load (kW)"]
    assert saved.info["nmse"] == saved.model.cv_score_
    assert saved.info["kernel_ridge_nmse"] == saved.model.kernel_ridge_score_
    assert os.listdir() == ["plant.csv", "plant.model"] or sorted(os.listdir()) == [
        "plant.csv",
        "plant.model",
    ]


@pytest.mark.parametrize("features", ["linear", "rbf", "fourier"])
def test_features_by_name(plant, run, features):
    result = json.loads(run(*FIT, "--features", features, "--json").stdout)
    names = {
        "linear": "StandardScaler",
        "rbf": "EvidenceFeatures",
        "fourier": "StandardScaler + RBFSampler",
    }
    assert result["chosen"]["features"] == names[features]
    assert 0 < result["nmse"] < 0.6
    assert [row["target"] for row in result["target_scores"]] == TARGETS.split(",")


def test_the_command_that_is_kept_repeats_the_fit(plant, run):
    run(*FIT, *LINEAR, "--seed", 3)
    saved = open_model("plant.model")
    run(*shlex.split(saved.info["command"])[1:], "--force")
    assert np.array_equal(load_model("plant.model").coef_, saved.model.coef_)


def test_a_fit_in_batches_is_repeated_in_batches(run):
    """The command that is kept names the memory, without which the table would be read at once."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(90_000, 4)).round(12), columns=["a", "b, c", 'd "e"', "y"])
    rows["y"] += rows["a"]
    write_table(rows, "my rows.csv")
    run("fit", "my rows.csv", "-t", "y", *LINEAR, "-o", "first.model", "--max-memory", 17)
    saved = open_model("first.model")
    assert in_batches(Path("my rows.csv"), 17)
    assert saved.info["command"].endswith("--max-memory 17")
    again = shlex.split(saved.info["command"])[1:]
    run(*again, "--force")
    np.testing.assert_array_equal(load_model("first.model").coef_, saved.model.coef_)
    run(*again[:-2], "--force")
    assert not np.array_equal(
        load_model("first.model").cv_results_["mean_test_score"],
        saved.model.cv_results_["mean_test_score"],
    )


def test_all_other_columns_are_inputs(plant, run):
    plant.drop(columns="id").to_csv("plant.csv")
    result = run("fit", "plant.csv", "-t", TARGETS, *LINEAR, "-o", "plant.model")
    assert "note: the column without a name is taken for row numbers and left out" in result.stderr
    assert open_model("plant.model").info["inputs"] == ["inlet temp", "flow, l/s", "pressure"]


def test_patterns_stand_for_columns(plant, run):
    run("fit", "plant.csv", "-t", "*load*", "-i", INPUTS, *LINEAR, "-o", "plant.model")
    assert open_model("plant.model").info["targets"] == ["net load", "peak load (kW)"]


@pytest.mark.parametrize("kind", ["tsv", "parquet", "arrow", "npz"])
def test_every_kind_of_table_gives_the_same_model(plant, run, kind):
    run(*FIT, *LINEAR)
    write_table(plant, f"plant.{kind}")
    run("fit", f"plant.{kind}", *FIT[2:-1], "other.model", *LINEAR)
    assert np.array_equal(load_model("plant.model").coef_, load_model("other.model").coef_)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ("net load,net load", "column 'net load' is named twice in --targets"),
        ("net_load", r"plant.csv: there is no column 'net_load' (is it 'net load'?)"),
        ("zzz", "there is no column 'zzz'; the table has 'id', 'inlet temp'"),
        ("net load,pressure", "column 'pressure' is named in both --inputs and --targets"),
        (",", "--targets must name at least one column"),
    ],
)
def test_wrong_targets(plant, run, targets, sentence):
    result = run("fit", "plant.csv", "-t", targets, "-i", INPUTS, "-o", "plant.model", code=2)
    assert sentence in result.stderr
    assert result.stdout == ""
    assert os.listdir() == ["plant.csv"]


def test_missing_cells_are_named(plant, run):
    plant.loc[6, "flow, l/s"] = np.nan
    plant.loc[8, "pressure"] = np.nan
    plant.to_csv("plant.csv", index=False)
    result = run(*FIT, code=3)
    assert "plant.csv: row 7, column 'flow, l/s': the cell is empty" in result.stderr
    assert "one of 2 such cells" in result.stderr
    assert os.listdir() == ["plant.csv"]


def test_blank_target_cells_are_counted_and_told(plant, run):
    plant.loc[2, "net load"] = plant.loc[[4, 7], "peak load (kW)"] = np.nan
    plant.loc[[9, 11], TARGETS.split(",")] = np.nan
    plant.to_csv("plant.csv", index=False)
    shown = run(*FIT, *LINEAR).stdout
    for words in (
        "plant.csv: 38 rows, 3 inputs, 2 targets.",
        "2 rows have no target and are left out.",
        "3 target values are missing: 2 of 'peak load (kW)', 1 of 'net load'; each target",
    ):
        assert words in shown
    values = json.loads(run(*FIT, *LINEAR, "--json", "--force").stdout)
    assert values["rows"] == 38
    assert values["rows_without_targets"] == 2
    assert values["missing_targets"] == {"net load": 1, "peak load (kW)": 2}
    expected = EntangledKernelRidgeCV(**load_model("plant.model").get_params()).fit(
        plant[NAMES].drop(index=[9, 11]), plant[TARGETS.split(",")].drop(index=[9, 11])
    )
    np.testing.assert_allclose(load_model("plant.model").coef_, expected.coef_)


def test_a_target_that_was_never_measured_is_named(plant, run):
    plant.assign(**{"net load": np.nan}).to_csv("plant.csv", index=False)
    shown = run(*FIT, *LINEAR, code=3).stderr
    assert (
        "plant.csv: target 'net load' has no value in any row; leave it out of --targets" in shown
    )
    assert "column 'net load'" in run(*FIT, *LINEAR, "--checkpoint", "state", code=3).stderr


def test_blank_targets_in_batches_are_those_in_memory(rows, run, folder):
    rng = np.random.default_rng(0)
    rows.loc[rng.random(300) < 0.3, "y"] = np.nan
    rows.loc[[5, 150], ["y", "z"]] = np.nan
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    write_table(rows, "all.csv")
    options = ("-t", "y,z", "-i", "a,b,c", *LINEAR, "--json", "--force")
    once = json.loads(run("fit", "all.csv", *options, "-o", "once.model").stdout)
    batches = json.loads(run("fit", "rows", *options, "-o", "batches.model").stdout)
    for key in ("rows", "missing_targets", "rows_without_targets"):
        assert once[key] == batches[key]
    assert once["missing_targets"]["y"] == rows["y"].isna().sum() - 2
    X = rows[list("abc")]
    found = [load_model(name).predict(X) for name in ("once.model", "batches.model")]
    # Folds differ, and with them the weights of candidates.
    assert np.sqrt(np.mean((found[0] - found[1]) ** 2)) < 0.05


@pytest.mark.parametrize("features", ["auto", "rbf"])
def test_a_model_with_text_predicts_from_the_raw_table_in_python(plant, run, features):
    plant["town"] = ["Ulm", "Aix"] * 20
    plant["net load"] += 3.0 * (plant["town"] == "Ulm")
    plant.drop(columns="id").to_csv("plant.csv", index=False)
    run("fit", "plant.csv", "-t", TARGETS, "-o", "plant.model", "-f", features, "--encode")
    model, rows = load_model("plant.model"), plant[[*NAMES, "town"]]
    assert np.mean((model.predict(rows)[:, 0] - plant["net load"]) ** 2) < 0.1
    moved = model.predict(rows.assign(town=np.where(rows["town"] == "Ulm", "Aix", "Ulm")))[:, 0]
    assert 2.0 < np.mean(model.predict(rows)[::2, 0] - moved[::2]) < 4.0
    run("predict", "plant.model", "plant.csv", "-o", "p.csv")
    np.testing.assert_array_equal(read_table("p.csv"), model.predict(rows))
    middle = model.predict(rows.assign(town="Ems"))[:, 0]
    assert (np.abs(middle - model.predict(rows)[:, 0]) < 4.0).all()


def test_constant_columns_are_told(plant, run):
    result = run(*FIT[:2], "-t", TARGETS, "-i", INPUTS, "-o", "m", *LINEAR)
    assert result.stderr == ""
    plant.assign(pressure=1.0, **{"net load": 2.0}).to_csv("plant.csv", index=False)
    result = run(*FIT, *LINEAR)
    assert "note: input 'pressure' has the same value in every row" in result.stderr
    assert "note: target 'net load' has the same value in every row" in result.stderr
    assert open_model("plant.model").info["target_scores"][0]["nmse"] is None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "the file is empty"),
        ("a,b\n", "a header but no rows"),
        ("a,b\n1,2\n", "at least 3 rows, got 1"),
    ],
)
def test_tables_without_enough_rows(run, content, sentence):
    with open("small.csv", "w") as file:
        file.write(content)
    assert sentence in run("fit", "small.csv", "-t", "b", "-o", "m", code=3).stderr


@pytest.mark.parametrize("rows", [3, 4, 7])
@pytest.mark.parametrize("features", ["auto", "fourier"])
def test_few_rows_will_do(plant, run, rows, features):
    plant[:rows].to_csv("plant.csv", index=False)
    run(*FIT, "-f", features)
    run("predict", "plant.model", "plant.csv", "--out", "p.csv", "--intervals", 0.9)
    assert np.isfinite(pd.read_csv("p.csv").to_numpy()).all()


def test_files_that_are_not_there(plant, run):
    assert (
        "there is no file nothing.csv"
        in run("fit", "nothing.csv", "-t", "a", "-o", "m", code=2).stderr
    )
    os.mkdir("place.csv")
    assert (
        "the folder holds no .csv, .tsv"
        in run("fit", "place.csv", "-t", "a", "-o", "m", code=3).stderr
    )
    os.rename("plant.csv", "plant.dat")
    assert "must end in one of .csv" in run("fit", "plant.dat", "-t", "a", "-o", "m", code=3).stderr


def test_features_must_be_known(plant, run):
    result = run(*FIT, "--features", "cubic", code=2)
    assert "must be one of auto, linear, rbf, fourier, got 'cubic'" in result.stderr


def test_a_model_is_replaced_only_when_told(plant, run):
    run(*FIT, *LINEAR)
    with open("plant.model", "rb") as file:
        before = file.read()
    result = run(*FIT, code=2)
    assert (
        "plant.model exists already; choose another name, or replace it with --force"
        in result.stderr
    )
    assert result.stdout == ""
    with open("plant.model", "rb") as file:
        assert file.read() == before
    run(*FIT, "--features", "rbf", "--force")
    with open("plant.model", "rb") as file:
        assert file.read() != before


def test_full_disk_keeps_the_old_model(plant, run, monkeypatch):
    run(*FIT, *LINEAR)
    with open("plant.model", "rb") as file:
        before = file.read()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run(*FIT, "--features", "rbf", "--force", code=5)
    assert "the disk is full" in result.stderr
    with open("plant.model", "rb") as file:
        assert file.read() == before
    assert sorted(os.listdir()) == ["plant.csv", "plant.model"]


def test_unexpected_errors_are_one_sentence_too(plant, run, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("entangled_kernels.cli.models.fit_table", broken)
    result = run(*FIT, code=1)
    assert result.stderr.startswith("error: unexpected RuntimeError: out of luck (run with --debug")
    debugged = CliRunner().invoke(app, ["--debug", *FIT])
    assert debugged.exit_code == 1
    assert "Traceback" in debugged.stderr


def test_interrupted(plant, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("entangled_kernels.cli.models.fit_table", interrupt)
    assert "error: interrupted" in run(*FIT, code=130).stderr
    assert os.listdir() == ["plant.csv"]


def test_no_processes_are_wrong_usage(plant, run):
    assert "must not be 0" in run(*FIT, "--jobs", "0", code=2).stderr
