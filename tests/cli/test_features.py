"""Feature maps by name, and text encoded before them."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.models import (
    known_texts,
    text_encoder,
)
from entangled_kernels.storage import save_model
from entangled_kernels.tables import read_table

ROWS = pd.DataFrame({"town": ["Ulm", "Aix", "Ulm"], "x": [1.0, 2.0, 3.0], "sort": ["a", "b", "c"]})


def test_every_text_has_a_column_and_others_none():
    encoder = text_encoder(["town", "sort"]).fit(ROWS)
    encoded = encoder.transform(ROWS)
    assert encoded.tolist() == [[0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 0, 2], [0, 1, 0, 0, 1, 3]]
    assert encoder.transform(ROWS.assign(town="Ems"))[:, :2].tolist() == [[0, 0]] * 3


def test_what_a_map_knows():
    alone = text_encoder(["town"]).fit(ROWS[["town", "x"]])
    assert known_texts(alone) == {"town": {"Ulm", "Aix"}}
    piped = make_pipeline(text_encoder(["sort"]), StandardScaler()).fit(ROWS[["sort", "x"]])
    union = FeatureUnion([("a", alone), ("b", piped)])
    assert known_texts(union) == {"town": {"Ulm", "Aix"}, "sort": {"a", "b", "c"}}
    assert known_texts(StandardScaler()) == known_texts(None) == {}
    numbers = make_column_transformer((OneHotEncoder(), ["x"])).fit(ROWS)
    assert known_texts(numbers) == {}


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
