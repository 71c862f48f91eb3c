import json

import numpy as np
import pandas as pd
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.models import explain_rows, explanation_of
from entangled_kernels.cli.words import explanation_in_words, input_rows


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    Y = pd.DataFrame({"y": 2 * X["a"] + rng.normal(size=300), "z": rng.normal(size=300) - X["a"] - X["b"]})
    return explain_rows(EntangledKernelRidge().fit(X, Y), X)


def test_plain_values_become_the_explanation_again(values):
    found = explanation_of(json.loads(json.dumps(values)))
    assert (found.inputs, found.targets, found.method) == (["a", "b", "c"], ["y", "z"], "gradient")
    assert found.order.tolist()[0] == 0
    assert found.effect.shape == (3, 2)


def test_inputs_are_told_in_words(values):
    found = explanation_of(values)
    sentences = explanation_in_words(found)
    assert sentences == [
        "'a' and 'b' matter, the most important first.",
        "One input is no more important than noise would be.",
    ]
    rows = input_rows(found, most=2)
    assert [row[0] for row in rows] == ["a", "b"]
    assert rows[0][3] == "y"
    assert rows[0][4] > 0.0 > rows[1][4]


def test_nothing_stands_out_of_noise(values):
    values["importance_noise"] = [9.0, 9.0, 9.0]
    assert explanation_in_words(explanation_of(values)) == ["No input is more important than noise would be."]


def test_an_effect_that_is_no_number_is_none():
    X = pd.DataFrame({"town": ["Ulm", "Aix"] * 20, "x": np.arange(40.0)})
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    values = explain_rows(EntangledKernelRidge(encoder).fit(X, X["x"]), X)
    assert values["effect"][0] == [None]
    assert np.isnan(explanation_of(json.loads(json.dumps(values))).effect[0, 0])


@pytest.mark.parametrize("wrong", [None, {}, {"effect": 1}])
def test_what_cannot_be_read_is_left_out(wrong, values):
    assert explanation_of(wrong) is None
    assert explanation_of(values | {"size": [[1.0]]}) is None
    assert explanation_of(values | {"inputs": 3}) is None


def test_very_many_inputs_are_not_explained():
    assert explain_rows(None, pd.DataFrame(np.zeros((5, 201)))) is None
