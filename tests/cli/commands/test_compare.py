import json
import os
import shlex

import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.commands.compare import COMMON, PAPER
from entangled_kernels.experiments import METHODS
from entangled_kernels.experiments.methods import COMMON_METHODS
from entangled_kernels.io import ExperimentResults

INPUTS = 'inlet temp,"flow, l/s",pressure'
TARGETS = "net load,peak load (kW)"
COMPARE = ("compare", "plant.csv", "-t", TARGETS, "-i", INPUTS)
SMALL = ("--methods", "KRR,PLS", "--train-sizes", "12,20", "--repeats", 2)


def test_a_table_is_shown_and_a_page_written(plant, run, folder):
    shown = run(*COMPARE, *SMALL, "--report", "page.html").stdout
    assert "Methods on plant.csv: nMSE" in shown
    for words in ("training rows n", "KRR", "PLS", "±", "Wrote page.html."):
        assert words in shown
    page = (folder / "page.html").read_text()
    for words in (
        "What was run",
        "Results",
        "The kernel on all rows",
        "How to repeat it",
        "partial least squares",
    ):
        assert words in page
    assert "entangled-kernels compare plant.csv --targets" in page
    assert page.count("<img") == 2
    assert sorted(os.listdir()) == ["page.html", "plant.csv"]


def test_machines_get_every_record(plant, run):
    values = json.loads(run(*COMPARE, "-m", "krr,EKL", "-n", 15, "-r", 2, "--json").stdout)
    assert len(values["records"]) == 4
    assert {record["method"] for record in values["records"]} == {"KRR", "EKL"}
    assert {record["n"] for record in values["records"]} == {15}
    assert values["meta"]["seed"] == 0
    assert all(0 < record["nmse"] < 2 for record in values["records"])


def test_results_may_be_kept(plant, run):
    run(*COMPARE, *SMALL, "--results", "kept")
    kept = ExperimentResults.load("kept/comparison.json")
    assert len(kept.records) == 8
    assert "not empty" in run(*COMPARE, *SMALL, "--results", "kept", code=2).stderr


def test_sizes_are_chosen_when_none_are_named(plant, run):
    values = json.loads(run(*COMPARE, "-m", "KRR", "-r", 1, "--json").stdout)
    assert [entry["n"] for entry in values["summary"]["nmse"]] == [10, 20]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--methods", "KRR,SVM"), "must be one of mean, ridge, kernel-ridge, pls, gaussian-process"),
        (("--train-sizes", "ten"), "must be whole numbers separated by commas, got 'ten'"),
        (("--features", "cubic"), "must be one of linear, rbf, fourier, got 'cubic'"),
        (("--repeats", "0"), "--repeats"),
        (("--groups", "town"), "there is no column 'town'"),
        (("--groups", "id", "--time-ordered"), "--groups and --time-ordered hold out different rows"),
    ],
)
def test_wrong_options(plant, run, options, sentence):
    assert sentence in run(*COMPARE, *options, code=2).stderr


def test_more_training_rows_than_there_are(plant, run):
    result = run(*COMPARE, "-m", "KRR", "-n", 400, code=3)
    assert "plant.csv: --train-sizes must be from 3 to 38, two less than the rows, got 400" in result.stderr


def test_odd_tables(plant, run):
    plant.loc[3, "pressure"] = np.nan
    plant.to_csv("plant.csv", index=False)
    assert "row 4, column 'pressure'" in run(*COMPARE, *SMALL, code=3).stderr
    pd.DataFrame({"a": range(5), "b": range(5)}).to_csv("small.csv", index=False)
    assert "at least 8 rows, got 5" in run("compare", "small.csv", "-t", "b", code=3).stderr
    assert "named twice" in run("compare", "plant.csv", "-t", "net load,net load", code=2).stderr


def test_the_page_is_not_replaced_unasked(plant, run, folder):
    (folder / "page.html").write_text("precious")
    assert "exists already" in run(*COMPARE, *SMALL, "--report", "page.html", code=2).stderr
    assert (folder / "page.html").read_text() == "precious"


def test_text_is_encoded_on_request(plant, run):
    arguments = ("compare", "plant.csv", "-t", TARGETS, "-i", "pressure,town", *SMALL)
    plant.assign(town=["Ulm", "Aix"] * 20).to_csv("plant.csv", index=False)
    error = run(*arguments, code=3).stderr
    assert "1 column holds text, not numbers: 'town' (row 1: 'Ulm')" in error
    run(*shlex.split(error.partition("This works: entangled-kernels ")[2]))


def test_every_method_that_can_be_named_exists():
    assert {*COMMON, *PAPER} == set(METHODS)
    assert set(COMMON) == set(COMMON_METHODS)


def test_missing_targets_are_compared_on_cells_that_are_there(plant, run):
    plant.loc[::5, "net load"] = np.nan
    plant.loc[3, TARGETS.split(",")] = np.nan
    plant.to_csv("plant.csv", index=False)
    names = "mean,ridge,kernel-ridge,PLS,extra-trees,entangled"
    values = json.loads(run(*COMPARE, "-m", names, "-n", 20, "-r", 1, "--json").stdout)
    errors = {record["method"]: record["nmse"] for record in values["records"]}
    assert list(errors) == names.split(",")
    assert errors["ridge"] < errors["mean"]
    assert values["meta"]["rows"] == 39
