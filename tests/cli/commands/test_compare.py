import json
import os

import numpy as np
import pytest

from entangled_kernels.cli.commands.compare import COMMON, PAPER
from entangled_kernels.experiments import METHODS
from entangled_kernels.experiments.methods import COMMON_METHODS

TARGETS = ["net load", "peak load (kW)"]
COMPARE = 'compare plant.csv -t "net load,peak load (kW)" -i \'inlet temp,"flow, l/s",pressure\''


def test_a_table_is_shown_and_a_page_written(plant, run, folder):
    small = f"{COMPARE} --methods KRR,PLS --train-sizes 12,20 --repeats 2"
    shown = run(f"{small} --report page.html").stdout
    assert "Methods on plant.csv: nMSE" in shown
    for words in ("training rows n", "KRR", "PLS", "±", "Wrote page.html."):
        assert words in shown
    page = (folder / "page.html").read_text()
    for words in ("What was run", "Results", "How to repeat it", "partial least squares"):
        assert words in page
    assert "entangled-kernels compare plant.csv --targets" in page
    assert page.count("<img") == 2
    assert sorted(os.listdir()) == ["page.html", "plant.csv"]


def test_machines_get_every_record(plant, run):
    values = json.loads(run(f"{COMPARE} -m krr,EKL -n 15 -r 2 --json").stdout)
    records = values["records"]
    assert sorted(record["method"] for record in records) == ["EKL", "EKL", "KRR", "KRR"]
    assert {record["n"] for record in records} == {15}
    assert values["meta"]["seed"] == 0
    assert all(0 < record["nmse"] < 2 for record in records)


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ("--methods KRR,SVM", 2, "must be one of mean, ridge, kernel-ridge, pls, gaussian-process"),
        ("--train-sizes ten", 2, "must be whole numbers separated by commas, got 'ten'"),
        ("--groups town", 2, "there is no column 'town'"),
        ("--groups id --time-ordered", 2, "--groups and --time-ordered hold out different rows"),
        ("-n 400", 3, "plant.csv: --train-sizes must be from 3 to 38, two less than the rows"),
    ],
)
def test_wrong_options(plant, run, options, code, sentence):
    assert sentence in run(f"{COMPARE} {options}", code=code).stderr


def test_every_method_that_can_be_named_exists():
    assert {*COMMON, *PAPER} == set(METHODS)
    assert set(COMMON) == set(COMMON_METHODS)


def test_missing_targets_are_compared_on_those_that_are_there(plant, run):
    plant.loc[::5, "net load"] = np.nan
    plant.loc[3, TARGETS] = np.nan
    plant.to_csv("plant.csv", index=False)
    names = "mean,ridge,kernel-ridge,PLS,extra-trees,entangled"
    values = json.loads(run(f"{COMPARE} -m {names} -n 20 -r 1 --json").stdout)
    errors = {record["method"]: record["nmse"] for record in values["records"]}
    assert list(errors) == names.split(",")
    assert errors["ridge"] < errors["mean"]
    assert values["meta"]["rows"] == 39
