"""Models of the command line: facts about them, their encoders, explanations and new rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.models import (
    NewRows,
    describe,
    explain_rows,
    explanation_of,
    feature_maps,
    known_texts,
    text_encoder,
)
from entangled_kernels.cli.options import ReadingOptions
from entangled_kernels.cli.tables import TrainingTable
from entangled_kernels.io import SavedModel, read_table, save_model

INPUTS, TARGETS = list("abc"), list("yz")


def test_facts_are_those_of_the_search(rows, small):
    table = TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], rows[TARGETS], None, [])
    maps = feature_maps("linear", [], seed=0)
    model = EntangledKernelRidgeCV(maps, random_state=0, **small).fit(table.X, table.Y)
    facts = describe(model, table)
    assert json.loads(json.dumps(facts)) == facts
    names = (facts["rows"], facts["inputs"], facts["targets"], facts["text"])
    assert names == (300, INPUTS, TARGETS, [])
    assert facts["nmse"] == model.cv_score_
    assert facts["kernel_ridge_nmse"] == model.kernel_ridge_score_
    scores = pd.DataFrame(facts["target_scores"])
    assert scores["nmse"].tolist() == model.cv_target_score_.tolist()
    assert scores["r2"].tolist() == (1.0 - model.cv_target_score_).tolist()
    assert scores["rmse"].tolist() == model.cv_rmse_.tolist()
    assert scores["nmse"].mean() == pytest.approx(facts["nmse"])
    assert 1.0 <= facts["candidates"] <= len(model.cv_results_["param_alpha"])


def test_plain_values_become_the_explanation_again():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    Y = pd.DataFrame(
        {"y": 2 * X["a"] + rng.normal(size=300), "z": rng.normal(size=300) - X["a"] - X["b"]}
    )
    values = explain_rows(EntangledKernelRidge().fit(X, Y), X)
    found = explanation_of(json.loads(json.dumps(values)))
    assert (found.inputs, found.targets, found.method) == (["a", "b", "c"], ["y", "z"], "gradient")
    assert found.order.tolist()[0] == 0
    assert found.effect.shape == (3, 2)
    # What cannot be read is left out.
    for wrong in (None, {}, {"effect": 1}, values | {"size": [[1.0]]}, values | {"inputs": 3}):
        assert explanation_of(wrong) is None


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
    inputs, target = rows[["x", "town"]], rows[["x"]].rename(columns={"x": "y"})
    model = EntangledKernelRidge(encoder).fit(inputs, target)
    save_model(model, "m.model")
    rows.to_csv("t.csv", index=False)
    run("predict m.model t.csv --out p.csv")
    np.testing.assert_array_equal(read_table("p.csv"), model.predict(inputs))
    rows.assign(town="Ems").to_csv("t.csv", index=False)
    assert "Found unknown categories" in run("predict m.model t.csv --out q.csv", code=3).stderr


def test_models_without_medians(rows):
    def new_rows(feature_map, **options):
        model = EntangledKernelRidge(feature_map).fit(rows[INPUTS], rows[TARGETS])
        saved = SavedModel(model, {}, {})
        reading = ReadingOptions(**options)
        return NewRows(saved, Path("m.model"), [], measured=False, options=reading)

    filled = new_rows(make_pipeline(SimpleImputer(strategy="median"), StandardScaler()))
    dropped = new_rows(None, missing="drop")
    with pytest.raises(CommandError, match=r"m.model knows no medians; fit it with --missing"):
        new_rows(None, missing="median")
    rows.loc[[2, 5], "a"] = np.nan
    assert list(dropped.check(rows, Path("t.csv")).X.index[:5]) == [0, 1, 3, 4, 6]
    assert (dropped.n_left_out, dropped.n_rows) == (2, 300)
    assert filled.check(rows, Path("t.csv")).X["a"].isna().sum() == 2
