import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.io import compare_onnx, export_onnx, run_onnx


def test_a_difference_is_found_in_units_of_the_deviation(rows, tmp_path):
    X, Y = rows
    path, model = tmp_path / "model.onnx", Ridge().fit(X, Y)
    export_onnx(model, path, dtype="float64")
    deviation = model.predict(X).std(axis=0)
    model.intercept_ = model.intercept_ + np.array([0.0, 0.25 * deviation[1], 0.0])
    assert compare_onnx(model, path, X) == pytest.approx(0.25)


def test_constant_predictions_are_compared_by_their_size(rows, tmp_path):
    path, model = tmp_path / "model.onnx", DummyRegressor().fit(rows[0], np.ones(40))
    export_onnx(model, path, dtype="float64")
    model.constant_ = model.constant_ + 1.0
    assert compare_onnx(model, path, rows[0]) == pytest.approx(0.5)


def test_tables_without_names(rng, tmp_path):
    X = np.column_stack([rng.normal(size=20), rng.choice(["Ulm", "Aix"], size=20)]).astype(object)
    X[:, 0] = X[:, 0].astype(float)
    encoder = ColumnTransformer([("text", OneHotEncoder(), [1])], remainder="passthrough")
    model = EntangledKernelRidge(encoder).fit(X, rng.normal(size=(20, 2)))
    path = tmp_path / "model.onnx"
    assert export_onnx(model, path).inputs == {"x0": "float32", "x1": "text"}
    assert run_onnx(path, X).shape == (20, 2)
    assert compare_onnx(model, path, X) < 1e-5


def test_blank_texts(rng, tmp_path):
    frame = pd.DataFrame({"town": np.array(["Ulm", "Aix", None, "Ulm"] * 5, dtype=object)})
    frame["town"] = frame["town"].fillna(np.nan)
    encoder = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder())
    model = make_pipeline(encoder, Ridge()).fit(frame, rng.normal(size=20))
    export_onnx(model, tmp_path / "model.onnx")
    assert compare_onnx(model, tmp_path / "model.onnx", frame) < 1e-5


def test_a_missing_package_is_named(rows, tmp_path, monkeypatch):
    export_onnx(Ridge().fit(*rows), tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install \"entangled-kernels\[onnx\]\""):
        run_onnx(tmp_path / "model.onnx", rows[0])
