"""Targets that are learned as logarithms."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.tables import read_scales
from entangled_kernels.io import open_model

FIT = "fit soil.csv --targets zinc,lead --features linear --out soil.model --force"


@pytest.fixture
def soil(run):
    """A table of two inputs and two positive targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame[["zinc", "lead"]] = np.exp(X @ rng.normal(size=(2, 2)) + 0.4 * rng.normal(size=(60, 2)))
    frame.to_csv("soil.csv", index=False)
    return frame


def test_from_a_table_to_positive_intervals(soil, run):
    run(FIT)
    note = run("predict soil.model soil.csv --intervals 0.9 -o p.csv").stderr
    assert "are below zero" in note
    assert "--target-transform" in note
    shown = run(f"{FIT} --target-transform log").stdout
    assert "Learned as logarithms: all targets (log); predictions are medians" in shown
    saved = open_model("soil.model")
    assert saved.info["target_transform"] == {"zinc": "log", "lead": "log"}
    assert saved.info["target_scores"][0]["rmse"] == saved.model.cv_rmse_[0]
    assert not run("predict soil.model soil.csv --intervals 0.9 --out found.csv").stderr
    found = pd.read_csv("found.csv")
    np.testing.assert_allclose(found["zinc"], saved.model.predict(soil[["a", "b"]])[:, 0])
    for name in ("zinc", "lead"):
        lower, upper = found[f"{name}_lower"], found[f"{name}_upper"]
        assert (lower > 0.0).all()
        assert (lower <= found[name]).all()
        assert 0.8 < ((lower <= soil[name]) & (soil[name] <= upper)).mean() < 1.0
    soil.assign(lead=np.nan).to_csv("half.csv", index=False)
    run("predict soil.model half.csv --measured --out given.csv")
    given = saved.model.predict(soil[["a", "b"]], given=soil[["zinc"]])
    np.testing.assert_allclose(pd.read_csv("given.csv"), given)
    assert "learned as logarithms: all targets (log)" in run("inspect soil.model").stdout


def test_some_targets_and_the_command_that_is_kept(soil, run):
    soil.assign(lead=-soil["lead"]).to_csv("soil.csv", index=False)
    result = json.loads(run(f"{FIT} --target-transform z*=log --json").stdout)
    assert result["target_transform"] == {"zinc": "log"}
    first = open_model("soil.model").model
    run(*shlex.split(result["command"])[1:], "--force")
    again = open_model("soil.model").model
    assert again.target_transform == {"zinc": "log"}
    np.testing.assert_array_equal(again.predict(soil[["a", "b"]]), first.predict(soil[["a", "b"]]))


def test_a_cell_without_a_logarithm_is_named_as_in_the_file(soil, run):
    soil.loc[3, ["zinc", "lead"]] = np.nan
    soil.loc[6, "lead"] = 0.0
    soil.to_csv("soil.csv", index=False)
    error = run(f"{FIT} --target-transform log", code=3).stderr
    assert "soil.csv: row 7, column 'lead': 0 has no logarithm" in error
    assert "log1p takes zeros; leave the cell empty" in error
    run(f"{FIT} --target-transform zinc=log --target-transform lead=log1p")
    error = run(f"{FIT} --target-transform log --checkpoint state", code=3).stderr
    assert "got 0 in row 7 of y, target 'lead'" in error


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("ln", "must be log or log1p, or TARGET=log or log1p, got 'ln'"),
        ("gold=log", "'gold' is not among the targets"),
    ],
)
def test_what_is_no_scale(value, message):
    with pytest.raises(CommandError, match=message):
        read_scales([value], ["zinc", "lead"])
