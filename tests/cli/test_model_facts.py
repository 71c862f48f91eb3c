"""Facts about a model as plain values."""

import json

import numpy as np
import pytest

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
)
from entangled_kernels.cli.models import (
    describe,
    feature_maps,
    output_relations,
)
from entangled_kernels.cli.tables import TrainingTable

INPUTS, TARGETS = list("abc"), list("yz")


def make_search(small):
    return EntangledKernelRidgeCV(feature_maps("linear", [], seed=0), random_state=0, **small)


def fitted(rows, small):
    table = TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], rows[TARGETS], None, [])
    return make_search(small).fit(table.X, table.Y), table


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


@pytest.mark.filterwarnings("ignore:the smallest of the alphas")
def test_a_constant_target_has_no_error(rows, small):
    model, table = fitted(rows.assign(y=1.0), small)
    first = describe(model, table)["target_scores"][0]
    assert (first["nmse"], first["kernel_ridge_nmse"], first["r2"]) == (None, None, None)


def test_relations_are_correlations_of_the_kernel(rng):
    X = rng.normal(size=(30, 4)) + 3.0
    Y = X @ rng.normal(size=(4, 3))
    model = EntangledKernelRidge(shrinkage=0.3).fit(X, Y)
    centred = X - X.mean(axis=0)
    mean = model.kernel_.diag(centred).mean(axis=0)
    expected = mean / np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
    assert np.allclose(output_relations(model, X), expected)
    assert np.allclose(output_relations(EntangledKernelRidge(shrinkage=1.0).fit(X, Y), X), np.eye(3))
