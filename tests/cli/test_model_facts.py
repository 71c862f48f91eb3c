"""Facts about a model as plain values."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OutputKernelRidge,
)
from entangled_kernels.cli.fitting import feature_maps, text_encoder
from entangled_kernels.cli.models import describe, entanglement_of, output_relations, settings_of
from entangled_kernels.cli.tables import TrainingTable
from entangled_kernels.features import EvidenceFeatures
from entangled_kernels.io import save_model
from entangled_kernels.streams import read_batches

INPUTS, TARGETS = list("abc"), list("yz")
COLUMNS, LOADS = ["inlet temp", "flow, l/s", "pressure"], ["net load", "peak load (kW)"]


def make_search(small):
    return EntangledKernelRidgeCV(feature_maps("linear", [], seed=0), random_state=0, **small)


def fitted(rows, small):
    table = TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], rows[TARGETS], None, [])
    return make_search(small).fit(table.X, table.Y), table


def fitted_in_batches(rows, small):
    reader = read_batches("rows", inputs=INPUTS, targets=TARGETS)
    table = TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], None, reader, [])
    return make_search(small).fit_batches(reader), table


def test_facts_are_those_of_the_search(rows, small):
    model, table = fitted(rows, small)
    facts = describe(model, table)
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["rows"], facts["inputs"], facts["targets"], facts["text"]) == (300, INPUTS, TARGETS, [])
    assert facts["nmse"] == model.cv_score_
    assert facts["kernel_ridge_nmse"] == model.kernel_ridge_score_
    scores, results = facts["target_scores"], model.cv_results_
    assert [row["nmse"] for row in scores] == model.cv_target_score_.tolist()
    assert [row["r2"] for row in scores] == (1.0 - model.cv_target_score_).tolist()
    assert [row["rmse"] for row in scores] == model.cv_rmse_.tolist()
    np.testing.assert_allclose(np.mean([row["nmse"] for row in scores]), facts["nmse"])
    assert np.shape(facts["relations"]) == (2, 2)
    assert 1.0 <= facts["candidates"] <= len(results["param_alpha"])


def test_memory_and_batches_have_the_same_facts(rows, small):
    model, table = fitted(rows, small)
    streamed, batches = fitted_in_batches(rows, small)
    ours, theirs = describe(model, table), describe(streamed, batches)
    assert list(ours) == list(theirs)
    assert theirs["rows"] == 300
    assert theirs["nmse"] == pytest.approx(ours["nmse"], rel=0.5)


def test_measured_cells_are_counted(rows, small):
    rows.loc[::3, "y"] = np.nan
    model, table = fitted(rows, small)
    table.blanks.count(rows[TARGETS])
    kept = describe(model, table)
    assert (kept["blank_cells"], kept["rows_without_targets"]) == ({"y": 100}, 0)


@pytest.mark.filterwarnings("ignore:the smallest of the alphas")
def test_a_constant_target_has_no_error(rows, small):
    model, table = fitted(rows.assign(y=1.0), small)
    first = describe(model, table)["target_scores"][0]
    assert (first["nmse"], first["kernel_ridge_nmse"], first["r2"]) == (None, None, None)


@pytest.mark.parametrize(
    ("feature_map", "words"),
    [
        (None, "inputs as they are"),
        (StandardScaler(), "StandardScaler"),
        (EvidenceFeatures(), "EvidenceFeatures"),
        (feature_maps("fourier", [], seed=0)[0], "StandardScaler + RBFSampler"),
        (make_pipeline(text_encoder([]), StandardScaler()), "OneHotEncoder + StandardScaler"),
    ],
)
def test_feature_maps_by_their_steps(plant, feature_map, words):
    model = EntangledKernelRidge(feature_map).fit(plant[COLUMNS], plant[["net load"]])
    settings = settings_of(model)
    assert settings["features"] == words
    assert json.loads(json.dumps(settings)) == settings


def test_large_kernels_are_not_tested(plant, run, monkeypatch):
    monkeypatch.setattr("entangled_kernels.cli.models.LARGEST", 5)
    save_model(EntangledKernelRidge().fit(plant[COLUMNS], plant[LOADS]), "m.model")
    assert "Not tested: features times targets are 6" in run("inspect", "m.model", "--theory").stdout


def test_verdicts(plant):
    X, Y = plant[COLUMNS].to_numpy(), plant[LOADS].to_numpy()
    found = entanglement_of(EntangledKernelRidge(shrinkage=0.1, alignment_mix=1.0).fit(X, Y))
    assert found["entangled"] is True
    assert found["entanglement"]["ppt"] is False
    other = entanglement_of(OutputKernelRidge().fit(X, Y))
    assert other["entangled"] is None
    assert list(other) == list(found)


def test_relations_are_correlations_of_the_kernel(rng):
    X = rng.normal(size=(30, 4)) + 3.0
    Y = X @ rng.normal(size=(4, 3))
    model = EntangledKernelRidge(shrinkage=0.3).fit(X, Y)
    centred = X - X.mean(axis=0)
    mean = model.kernel_.diag(centred).mean(axis=0)
    expected = mean / np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
    assert np.allclose(output_relations(model, X), expected)
    assert np.allclose(output_relations(EntangledKernelRidge(shrinkage=1.0).fit(X, Y), X), np.eye(3))
