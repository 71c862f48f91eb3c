import json
import os

import numpy as np
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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--methods", "KRR,SVM"),
            "must be one of mean, ridge, kernel-ridge, pls, gaussian-process",
        ),
        (("--train-sizes", "ten"), "must be whole numbers separated by commas, got 'ten'"),
        (("--features", "cubic"), "must be one of linear, rbf, fourier, got 'cubic'"),
        (("--repeats", "0"), "--repeats"),
        (("--groups", "town"), "there is no column 'town'"),
        (
            ("--groups", "id", "--time-ordered"),
            "--groups and --time-ordered hold out different rows",
        ),
    ],
)
def test_wrong_options(plant, run, options, sentence):
    assert sentence in run(*COMPARE, *options, code=2).stderr


def test_more_training_rows_than_there_are(plant, run):
    result = run(*COMPARE, "-m", "KRR", "-n", 400, code=3)
    assert (
        "plant.csv: --train-sizes must be from 3 to 38, two less than the rows, got 400"
        in result.stderr
    )


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
