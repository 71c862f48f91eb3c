import errno
import json
import os
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.cli.application import app
from entangled_kernels.cli.files import in_batches
from entangled_kernels.experiments.methods import RIDGE_ALPHAS
from entangled_kernels.io import load_model, open_model, read_table, write_table
from entangled_kernels.selection import split_rows

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]
COLUMNS = '-t "net load,peak load (kW)" -i \'inlet temp,"flow, l/s",pressure\''
FIT = f"fit plant.csv {COLUMNS} -f linear -o plant.model"


@pytest.mark.thorough
def test_a_csv_becomes_a_model(plant, run):
    shown = run(f"fit plant.csv {COLUMNS} -o plant.model").stdout
    assert "plant.csv: 40 rows, 3 inputs, 2 targets." in shown
    assert "Inputs: inlet temp, 'flow, l/s', pressure." in shown
    for words in ("Chosen: ", "On the same folds: ridge", "peak load (kW)"):
        assert words in shown
    saved = open_model("plant.model")
    assert list(saved.info["baselines"]) == ["ridge", "PLS", "extra-trees"]
    assert isinstance(saved.model, EntangledKernelRidgeCV)
    assert (saved.info["inputs"], saved.info["targets"]) == (NAMES, TARGETS)
    assert saved.info["nmse"] == saved.model.cv_score_
    assert saved.info["kernel_ridge_nmse"] == saved.model.kernel_ridge_score_
    assert sorted(os.listdir()) == ["plant.csv", "plant.model"]


def test_baselines_are_fitted_to_the_folds_of_the_search(plant, run):
    info = json.loads(run(f"{FIT} --json").stdout)
    X, Y = plant[NAMES].to_numpy(), plant[TARGETS].to_numpy()
    errors = np.empty_like(Y)
    splits = split_rows(5, X, Y, None, None, n_table=40, random_state=0)[:5]
    for train, test in splits:
        scaler, mean = StandardScaler().fit(X[train]), Y[train].mean(axis=0)
        unit = Y[train].std(axis=0)
        ridge = RidgeCV(RIDGE_ALPHAS, alpha_per_target=True)
        ridge.fit(scaler.transform(X[train]), (Y[train] - mean) / unit)
        errors[test] = Y[test] - mean - unit * ridge.predict(scaler.transform(X[test]))
    expected = np.mean(np.mean(errors**2, axis=0) / Y.var(axis=0))
    assert info["baselines"] == {"ridge": pytest.approx(expected)}
    assert json.loads(run(f"{FIT} --json --force --no-baselines").stdout)["baselines"] == {}


@pytest.mark.parametrize(
    ("features", "chosen"),
    [("rbf", "EvidenceFeatures"), ("fourier", "StandardScaler + RBFSampler")],
)
def test_features_by_name(plant, run, features, chosen):
    result = json.loads(run(f"{FIT} --features {features} --json").stdout)
    assert result["chosen"]["features"] == chosen
    assert 0 < result["nmse"] < 0.6
    assert [row["target"] for row in result["target_scores"]] == TARGETS


def test_the_command_that_is_kept_repeats_the_fit(plant, run):
    run(f"{FIT} --seed 3")
    saved = open_model("plant.model")
    run(*shlex.split(saved.info["command"])[1:], "--force")
    assert np.array_equal(load_model("plant.model").coef_, saved.model.coef_)


def test_a_fit_in_batches_is_repeated_in_batches(run):
    """The command that is kept names the memory, without which the table would be read at once."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(90_000, 4)).round(12), columns=["a", "b, c", 'd "e"', "y"])
    rows["y"] += rows["a"]
    write_table(rows, "my rows.csv")
    run("fit 'my rows.csv' -t y -f linear -o first.model --max-memory 17")
    saved = open_model("first.model")
    assert in_batches(Path("my rows.csv"), 17)
    assert saved.info["command"].endswith("--max-memory 17")
    run(*shlex.split(saved.info["command"])[1:], "--force")
    np.testing.assert_array_equal(load_model("first.model").coef_, saved.model.coef_)


def test_all_other_columns_are_inputs_and_patterns_stand_for_targets(plant, run):
    plant.drop(columns="id").to_csv("plant.csv")
    result = run("fit plant.csv -t '*load*' -f linear -o plant.model")
    assert "note: the column without a name is taken for row numbers and left out" in result.stderr
    info = open_model("plant.model").info
    assert (info["inputs"], info["targets"]) == (NAMES, TARGETS)


def test_every_kind_of_table_gives_the_same_model(plant, run):
    run(FIT)
    for kind in ("tsv", "parquet", "arrow", "npz"):
        write_table(plant, f"plant.{kind}")
        run(f"fit plant.{kind} {COLUMNS} -f linear -o other.model --force")
        assert np.array_equal(load_model("plant.model").coef_, load_model("other.model").coef_)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ("net load,net load", "column 'net load' is named twice in --targets"),
        ("net_load", "plant.csv: there is no column 'net_load' (is it 'net load'?)"),
        ("net load,flow, l/s", """a comma goes in double quotes: '"flow, l/s"'"""),
        ("zzz", "there is no column 'zzz'; the table has 'id', 'inlet temp'"),
        ("net load,pressure", "column 'pressure' is named in both --inputs and --targets"),
        (",", "--targets must name at least one column"),
    ],
)
def test_wrong_targets(plant, run, targets, sentence):
    result = run(f"fit plant.csv -t '{targets}' -i pressure -o plant.model", code=2)
    assert sentence in result.stderr
    assert result.stdout == ""
    assert os.listdir() == ["plant.csv"]


def test_missing_inputs_are_named(plant, run):
    plant.loc[6, "flow, l/s"] = plant.loc[8, "pressure"] = np.nan
    plant.to_csv("plant.csv", index=False)
    error = run(FIT, code=3).stderr
    assert "plant.csv: row 7, column 'flow, l/s': the cell is empty" in error
    assert "one of 2 such cells" in error
    assert os.listdir() == ["plant.csv"]


def test_missing_targets_are_counted_and_told(plant, run):
    plant.loc[2, "net load"] = plant.loc[[4, 7], "peak load (kW)"] = np.nan
    plant.loc[[9, 11], TARGETS] = np.nan
    plant.to_csv("plant.csv", index=False)
    shown = run(FIT).stdout
    assert "2 rows have no target and are left out." in shown
    assert "3 target values are missing: 2 of 'peak load (kW)', 1 of 'net load'" in shown
    info, found = open_model("plant.model").info, load_model("plant.model")
    assert (info["rows"], info["rows_without_targets"]) == (38, 2)
    assert info["missing_targets"] == {"net load": 1, "peak load (kW)": 2}
    kept = plant.drop(index=[9, 11])
    expected = EntangledKernelRidgeCV(**found.get_params()).fit(kept[NAMES], kept[TARGETS])
    np.testing.assert_allclose(found.coef_, expected.coef_)


def test_a_target_that_never_changes_is_no_error(plant, run):
    plant["load"] = 1.0
    plant.to_csv("plant.csv", index=False)
    assert "target 'load' has the same value" in run("fit plant.csv -t load -x id -o m").stderr
    run("predict m plant.csv --out p.csv")
    np.testing.assert_allclose(read_table("p.csv")["load"], 1.0)
    run("inspect m --theory --report m.html")


def test_a_target_that_was_never_measured_is_named(plant, run):
    plant.assign(new=np.nan).to_csv("empty.csv", index=False)
    error = run("fit empty.csv -t new -x id -o m", code=3).stderr
    assert "target 'new' has no value in any row" in error
    plant.assign(**{"net load": np.nan}).to_csv("plant.csv", index=False)
    assert "target 'net load' has no value in any row" in run(FIT, code=3).stderr
    assert "column 'net load'" in run(f"{FIT} --checkpoint state", code=3).stderr


def test_a_fit_in_batches_says_what_one_in_memory_says(rows, run):
    rng = np.random.default_rng(0)
    rows.loc[rng.random(300) < 0.3, "y"] = np.nan
    rows.loc[[5, 150], ["y", "z"]] = np.nan
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    write_table(rows, "all.csv")
    once, batches = (
        json.loads(run(f"fit {table} -t y,z -i a,b,c -f linear --json -o {name}").stdout)
        for table, name in (("all.csv", "once.model"), ("rows", "batches.model"))
    )
    for key in ("rows", "missing_targets", "rows_without_targets", "inputs", "targets", "text"):
        assert once[key] == batches[key]
    assert once["missing_targets"]["y"] == rows["y"].isna().sum() - 2
    X = rows[list("abc")]
    found = [load_model(name).predict(X) for name in ("once.model", "batches.model")]
    # Folds differ, and with them the weights of candidates.
    assert np.sqrt(np.mean((found[0] - found[1]) ** 2)) < 0.05


def test_a_model_with_text_predicts_from_the_raw_table(plant, run):
    plant["town"] = ["Ulm", "Aix"] * 20
    plant["net load"] += 3.0 * (plant["town"] == "Ulm")
    plant.drop(columns="id").to_csv("plant.csv", index=False)
    run(f"fit plant.csv -t '{','.join(TARGETS)}' -o town.model -f linear --encode")
    model, rows = load_model("town.model"), plant[[*NAMES, "town"]]
    assert np.mean((model.predict(rows)[:, 0] - plant["net load"]) ** 2) < 0.6
    moved = model.predict(rows.assign(town=np.where(rows["town"] == "Ulm", "Aix", "Ulm")))[:, 0]
    assert 2.0 < np.mean(model.predict(rows)[::2, 0] - moved[::2]) < 4.0
    assert run("predict town.model plant.csv -o p.csv").stderr == ""
    np.testing.assert_array_equal(read_table("p.csv"), model.predict(rows))
    plant.assign(town="Ems").to_csv("new.csv", index=False)
    note = run("predict town.model new.csv -o q.csv").stderr
    assert "note: column 'town' holds 'Ems', unknown to the model" in note
    plant.assign(town=plant["town"].where(plant.index != 3)).to_csv("new.csv", index=False)
    error = run("predict town.model new.csv -o r.csv", code=3).stderr
    assert "row 4, column 'town': the cell is empty" in error


def test_constant_columns_are_told(plant, run):
    plant.assign(pressure=1.0, **{"net load": 2.0}).to_csv("plant.csv", index=False)
    notes = run(FIT).stderr
    assert "note: input 'pressure' has the same value in every row" in notes
    assert "note: target 'net load' has the same value in every row" in notes
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
    Path("small.csv").write_text(content)
    assert sentence in run("fit small.csv -t b -o m", code=3).stderr


@pytest.mark.parametrize(("rows", "features"), [(3, "auto"), (4, "fourier")])
def test_few_rows_will_do(plant, run, rows, features):
    plant[:rows].to_csv("plant.csv", index=False)
    notes = run(f"{FIT} -f {features}").stderr.splitlines()
    assert len(notes) == len(set(notes))
    run("predict plant.model plant.csv --out p.csv --intervals 0.9")
    assert np.isfinite(pd.read_csv("p.csv").to_numpy()).all()


def test_files_and_choices_that_there_are_not(plant, run):
    assert "there is no file nothing.csv" in run("fit nothing.csv -t a -o m", code=2).stderr
    os.mkdir("place.csv")
    assert "the folder holds no .csv" in run("fit place.csv -t a -o m", code=3).stderr
    os.rename("place.csv", "plant.dat")
    Path("plant.dat").rmdir()
    Path("plant.dat").write_text("a\n1\n")
    assert "must end in one of .csv" in run("fit plant.dat -t a -o m", code=3).stderr
    error = run(f"{FIT} --features cubic", code=2).stderr
    assert "must be one of auto, linear, rbf, fourier, got 'cubic'" in error
    assert "must not be 0" in run(f"{FIT} --jobs 0", code=2).stderr


def test_a_model_is_replaced_only_when_told_and_whole(plant, model, run, monkeypatch):
    before = Path("plant.model").read_bytes()
    result = run(FIT, code=2)
    assert "plant.model exists already; choose another name, or replace" in result.stderr
    assert result.stdout == ""

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert "the disk is full" in run(f"{FIT} --seed 1 --force", code=5).stderr
    assert Path("plant.model").read_bytes() == before
    assert sorted(os.listdir()) == ["plant.csv", "plant.model"]
    run(f"{FIT} --seed 1 --force")
    assert Path("plant.model").read_bytes() != before


def test_unexpected_errors_and_interrupts_are_one_sentence_too(plant, run, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of luck")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("entangled_kernels.cli.models.fit_table", broken)
    error = run(FIT, code=1).stderr
    assert error.startswith("error: unexpected RuntimeError: out of luck (run with --debug")
    debugged = CliRunner().invoke(app, ["--debug", *shlex.split(FIT)])
    assert debugged.exit_code == 1
    assert "Traceback" in debugged.stderr
    monkeypatch.setattr("entangled_kernels.cli.models.fit_table", interrupt)
    assert "error: interrupted" in run(FIT, code=130).stderr
    assert os.listdir() == ["plant.csv"]
