import json
import os

import numpy as np
import pandas as pd
import pytest

from entangled_kernels import OperatorKernelVARCV
from entangled_kernels.storage import load_model

FORECAST = ("forecast", "s.csv", "--folds", 2)


@pytest.fixture
def series():
    """Two variables that follow each other, beside the day."""
    rng = np.random.default_rng(0)
    x = np.zeros((60, 2))
    for t in range(59):
        x[t + 1] = np.tanh(2 * x[t, ::-1]) + 0.3 * rng.normal(size=2)
    table = pd.DataFrame(x, columns=["a", "b"])
    table.assign(day=[f"day {t}" for t in range(60)]).to_csv("s.csv", index=False)
    return table


def test_the_next_steps_and_the_network(series, run):
    result = run(*FORECAST, "--steps", 12, "-o", "next.csv", "--network", "net.csv", "--save", "m")
    for words in ("60 steps of 2 variables", "Error of later steps", "the first 10 of 12", "Wrote net.csv."):
        assert words in result.stdout
    assert "note: left out, since they hold no numbers: 'day'" in result.stderr
    model = OperatorKernelVARCV(cv=2).fit(series)
    written = pd.read_csv("next.csv")
    assert written["step"].tolist() == list(range(1, 13))
    np.testing.assert_allclose(written[["a", "b"]], model.forecast(12))
    network = pd.read_csv("net.csv", index_col="influence on")
    np.testing.assert_allclose(network, model.granger_)
    assert network.loc["a", "b"] > network.loc["a", "a"]
    np.testing.assert_allclose(load_model("m").forecast(12), model.forecast(12))
    assert "Cross-validated error: nMSE" in run("inspect", "m").stdout


def test_a_saved_model_goes_on_from_any_table(series, run):
    run(*FORECAST, "--save", "m", "--lags", 2, "--kernel", "additive")
    series[:20].to_csv("other.csv", index=False)
    values = json.loads(run("forecast", "other.csv", "--model", "m", "-s", 3, "--json").stdout)
    model = load_model("m")
    assert (model.lags, model.kernel) == (2, "additive")
    np.testing.assert_allclose(values["steps"]["b"], model.forecast(3, series[:20])[:, 1])
    assert values["columns"] == ["a", "b"]
    np.testing.assert_allclose(values["influence"], model.granger_)
    series[["a"]].to_csv("one.csv", index=False)
    assert "there is no column 'b'" in run("forecast", "one.csv", "--model", "m", code=3).stderr


def test_columns_may_be_named(series, run):
    values = json.loads(run(*FORECAST, "--columns", "b", "--json").stdout)
    assert values["columns"] == ["b"]
    assert "no column 'z'" in run(*FORECAST, "-c", "z", code=2).stderr


def test_models_of_rows_are_refused(series, run, fitted):
    shown = run("forecast", "s.csv", "--model", fitted, code=4).stderr
    assert "is no model of time series but EntangledKernelRidgeCV" in shown


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--kernel", "cubic"), 2, "must be one of hadamard, additive, got 'cubic'"),
        (("--out", "next.dat"), 3, "must end in one of .csv"),
        (("--save", "s.csv"), 2, "s.csv exists already"),
        (("--lags", 100), 3, "at least lags + 2 = 102 steps"),
        (("--steps", 0), 2, "--steps"),
    ],
)
def test_wrong_options(series, run, options, code, sentence):
    assert sentence in run(*FORECAST, *options, code=code).stderr
    assert os.listdir() == ["s.csv"]


def test_one_step_is_too_few(series, run):
    series[:1].to_csv("s.csv", index=False)
    assert "s.csv: " in run(*FORECAST, code=3).stderr
    series.loc[3, "a"] = np.nan
    series.to_csv("s.csv", index=False)
    assert "row 4, column 'a': the cell is empty" in run(*FORECAST, code=3).stderr
