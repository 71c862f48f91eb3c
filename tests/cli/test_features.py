"""Feature maps by name, and text encoded before them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.fitting import (
    feature_maps,
    fills_blanks,
    known_texts,
    text_encoder,
    unknown_texts,
)
from entangled_kernels.cli.options import FEATURES
from entangled_kernels.features import EvidenceFeatures, default_feature_maps
from entangled_kernels.storage import save_model
from entangled_kernels.tables import read_table


@pytest.mark.parametrize("name", FEATURES)
def test_maps_by_name(name):
    expected = {
        "auto": default_feature_maps(3),
        "linear": [StandardScaler()],
        "rbf": [EvidenceFeatures(random_state=3)],
        "fourier": [
            make_pipeline(StandardScaler(), RBFSampler(gamma="scale", n_components=300, random_state=3))
        ],
    }[name]
    maps = feature_maps(name, [], seed=3)
    assert [repr(one) for one in maps] == [repr(one) for one in expected]


@pytest.mark.parametrize("name", FEATURES)
def test_text_is_encoded_before_each_map(name):
    plain, encoded = feature_maps(name, [], seed=0), feature_maps(name, ["town"], seed=0)
    for one, own in zip(encoded, plain, strict=True):
        steps = list(own) if isinstance(own, Pipeline) else [own]
        assert [repr(step) for _, step in one.steps[1:]] == [repr(step) for step in steps]
        assert one.steps[0][1].transformers[0][2] == ["town"]
        clone(one)


ROWS = pd.DataFrame({"town": ["Ulm", "Aix", "Ulm"], "x": [1.0, 2.0, 3.0], "sort": ["a", "b", "c"]})


@pytest.mark.parametrize("text", [[], ["town"]])
@pytest.mark.parametrize("name", FEATURES)
def test_maps_that_fill_blanks_know_it(name, text):
    assert all(fills_blanks(one) for one in feature_maps(name, text, seed=0, fill=True))
    assert not any(fills_blanks(one) for one in feature_maps(name, text, seed=0))


def test_every_text_has_a_column_and_others_none():
    encoder = text_encoder(["town", "sort"]).fit(ROWS)
    encoded = encoder.transform(ROWS)
    assert encoded.tolist() == [[0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 0, 2], [0, 1, 0, 0, 1, 3]]
    assert encoder.transform(ROWS.assign(town="Ems"))[:, :2].tolist() == [[0, 0]] * 3


def test_without_text_nothing_changes():
    rows = ROWS[["x"]]
    np.testing.assert_array_equal(text_encoder([]).fit_transform(rows), rows)


def test_what_a_map_knows():
    alone = text_encoder(["town"]).fit(ROWS[["town", "x"]])
    assert known_texts(alone) == {"town": {"Ulm", "Aix"}}
    piped = make_pipeline(text_encoder(["sort"]), StandardScaler()).fit(ROWS[["sort", "x"]])
    union = FeatureUnion([("a", alone), ("b", piped)])
    assert known_texts(union) == {"town": {"Ulm", "Aix"}, "sort": {"a", "b", "c"}}
    assert known_texts(StandardScaler()) == known_texts(None) == {}
    numbers = make_column_transformer((OneHotEncoder(), ["x"])).fit(ROWS)
    assert known_texts(numbers) == {}


def test_unknown_texts_are_told():
    known = {"town": {"Ulm", "Aix"}}
    assert unknown_texts(ROWS, known) == []
    rows = ROWS.assign(town=["Ems", "Ulm", "Bad"])
    (sentence,) = unknown_texts(rows, known)
    assert sentence.startswith("column 'town' holds 'Bad' and 'Ems', unknown to the model")


def test_a_model_with_an_encoder_from_python(run, folder):
    """A model that was made and saved in Python, with its own encoder, predicts from a file."""
    rows = pd.concat([ROWS] * 5, ignore_index=True)
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder=StandardScaler())
    model = EntangledKernelRidge(encoder).fit(rows[["x", "town"]], rows[["x"]].rename(columns={"x": "y"}))
    save_model(model, "m.model")
    rows.to_csv("t.csv", index=False)
    run("predict", "m.model", "t.csv", "--out", "p.csv")
    np.testing.assert_array_equal(read_table("p.csv"), model.predict(rows[["x", "town"]]))
    rows.assign(town="Ems").to_csv("t.csv", index=False)
    wrong = run("predict", "m.model", "t.csv", "--out", "q.csv", code=3).stderr
    assert "Found unknown categories" in wrong
