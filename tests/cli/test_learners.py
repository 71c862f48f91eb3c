"""Every learner through the command: fitted, kept, predicted with, looked at."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from entangled_kernels import StandardizedRegressor
from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.learners import fit_learner
from entangled_kernels.cli.methods import choose_method
from entangled_kernels.cli.screen import Screen
from entangled_kernels.cli.training_table import read_rows
from entangled_kernels.storage import load_model, open_model

TARGETS = "net load,peak load (kW)"
FIT = ("fit", "plant.csv", "-t", TARGETS, "-f", "linear", "-o", "m", "-i", 'inlet temp,"flow, l/s",pressure')
GROUPS = ("--input-group", 'water="flow, l/s",pressure', "--input-group", "heat=inlet*")
CASES = {
    "output-kernel": ("--set", "penalty=frobenius+trace,constraint=true"),
    "multiple-kernels": (),
    "fourier": ("--set", "n_frequencies=20,gamma=0.1"),
    "multi-view": GROUPS,
}
CLASSES = {
    "output-kernel": "OutputKernelRidge",
    "multiple-kernels": "MultipleKernelRidge",
    "fourier": "OperatorFourierRidge",
    "multi-view": "MultiViewKernelRidge",
}


@pytest.mark.parametrize("method", CASES)
def test_a_learner_is_fitted_kept_and_used(plant, run, method):
    shown = run(*FIT, "--method", method, *CASES[method], "--folds", 3).stdout
    for words in ("40 rows, 3 inputs, 2 targets", "Chosen: StandardScaler, alpha ", "; kernel ridge "):
        assert words in shown
    saved = open_model("m")
    assert isinstance(saved.model, StandardizedRegressor)
    assert 0.0 < saved.info["nmse"] < 0.5
    assert [row["target"] for row in saved.info["target_scores"]] == TARGETS.split(",")
    run("predict", "m", "plant.csv", "-o", "p.csv")
    expected = saved.model.predict(plant[list(saved.model.feature_names_in_)])
    np.testing.assert_allclose(pd.read_csv("p.csv").to_numpy(), expected)
    assert (
        "needs an entangled kernel model"
        in run("predict", "m", "plant.csv", "-o", "q.csv", "--intervals", 0.9, code=2).stderr
    )
    facts = json.loads(run("inspect", "m", "--json", "--report", "page.html").stdout)
    assert facts["class"] == CLASSES[method]
    assert facts["targets"] == TARGETS.split(",")
    assert bool(facts["weights"]) == (method in ("multiple-kernels", "multi-view"))
    assert facts["sharing"]
    assert facts["nmse"] == pytest.approx(saved.info["nmse"])
    again = shlex.split(saved.info["command"])[1:]
    run(*again, "--force")
    np.testing.assert_array_equal(
        load_model("m").predict(plant[list(saved.model.feature_names_in_)]), expected
    )


def test_groups_are_kernels_of_their_columns(plant, run):
    run(*FIT, "--method", "multiple-kernels", *GROUPS, "--folds", 3, "--set", "output_kernel=diagonal")
    learner = load_model("m").regressor_
    assert learner.kernel_names_ == ["water", "heat"]
    assert [list(columns) for columns in learner._columns] == [[1, 2], [0]]
    assert learner.kernel_weights_.shape == (2, 2)
    assert "from kernels with its own weights" in run("inspect", "m").stdout


def test_rows_may_lack_a_view(plant, run):
    plant.loc[:6, "inlet temp"] = np.nan
    plant.to_csv("plant.csv", index=False)
    run(*FIT, "--method", "multi-view", *GROUPS, "--folds", 3)
    run("predict", "m", "plant.csv", "-o", "p.csv")
    assert np.isfinite(pd.read_csv("p.csv").to_numpy()).all()
    assert (
        "column 'inlet temp': the cell is empty"
        in run(*FIT, "--force", "--method", "output-kernel", code=3).stderr
    )


def test_text_is_encoded(plant, run):
    plant["town"] = ["Ulm", "Aix"] * 20
    plant.drop(columns="id").to_csv("plant.csv", index=False)
    arguments = (*FIT[:-2], "--encode", "--folds", 2, "--method")
    run(*arguments, "multiple-kernels")
    run("predict", "m", "plant.csv", "-o", "p.csv")
    shown = run(*arguments, "multi-view", "--force", "--input-group", "a=pressure", code=2).stderr
    assert "--input-group needs inputs that are numbers" in shown


def test_blank_targets(plant, run):
    plant.loc[:4, "net load"] = np.nan
    plant.to_csv("plant.csv", index=False)
    values = json.loads(run(*FIT, "--method", "output-kernel", "--folds", 2, "--json").stdout)
    assert values["blank_cells"] == {"net load": 5}
    assert values["target_scores"][0]["nmse"] < 0.5


def test_fields_keep_their_law(run):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40, 2))
    pd.DataFrame(np.hstack([X, X[:, [1]], -X[:, [0]]]), columns=list("xyuv")).to_csv("w.csv", index=False)
    options = ("--method", "fourier", "--set", "kernel=divergence_free,n_frequencies=20", "--folds", 2)
    run("fit", "w.csv", "-t", "u,v", "-o", "m", *options)
    model = load_model("m")
    assert model.feature_map_ is None
    assert "components of one divergence-free field" in run("inspect", "m").stdout


def test_series_are_fitted(run):
    rng = np.random.default_rng(0)
    x = np.zeros((60, 2))
    for t in range(59):
        x[t + 1] = np.tanh(2 * x[t, ::-1]) + 0.3 * rng.normal(size=2)
    pd.DataFrame(x, columns=["a", "b"]).to_csv("s.csv", index=False)
    fit = ("fit", "s.csv", "-t", "a,b", "--method", "var", "-o", "m", "--folds", 2)
    shown = run(*fit, "--set", "kernel=additive,lags=2").stdout
    assert "Chosen: kernel additive, lags 2, alpha " in shown
    assert "To predict: entangled-kernels forecast s.csv --model m" in shown
    facts = json.loads(run("inspect", "m", "--json", "--report", "page.html").stdout)
    assert np.argmax(facts["influence"], axis=1).tolist() == [1, 0]
    assert "Influences on the next step" in run("inspect", "m").stdout
    assert "predicts steps, not rows" in run("predict", "m", "s.csv", "-o", "p.csv", code=4).stderr
    assert "leave --inputs out" in run(*fit, "-i", "a", "--force", code=2).stderr


def test_only_entangled_kernels_read_batches(rows, run):
    shown = run("fit", "rows", "-t", "y,z", "--method", "output-kernel", "-o", "m", code=2).stderr
    assert "--method output-kernel needs one table in memory" in shown


# Of a forest the smallest ridge is the forest itself.
@pytest.mark.filterwarnings("ignore:alpha=.* is the smallest of alphas")
def test_the_best_of_several_feature_maps(plant, folder):
    table = read_rows(
        folder / "plant.csv",
        [TARGETS],
        ['inlet temp,"flow, l/s",pressure'],
        encode=False,
        fewest=3,
        work="fitting",
    )
    choice, settings = choose_method("output-kernel", None, None), {"folds": 3, "seed": 0, "jobs": None}
    several, one = (fit_learner(Screen(), table, choice, name, **settings)[1] for name in ("auto", "linear"))
    assert several["nmse"] < one["nmse"]
    with pytest.raises(CommandError, match="--input-group a: 'id' is not among the inputs"):
        fit_learner(Screen(), table, choose_method("multi-view", None, ["a=id"]), "linear", **settings)
