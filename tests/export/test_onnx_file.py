import json
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx.reference import ReferenceEvaluator
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import entangled_kernels
from entangled_kernels import (
    EntangledKernelRidge,
    EvidenceFeatures,
    ForestFeatures,
    GaussianFeatures,
    OperatorKernelVAR,
)
from entangled_kernels.io import ExportError, compare_onnx, export_onnx, load_model, run_onnx, save_model


@pytest.fixture
def frame(rows, rng):
    X, Y = rows
    made = pd.DataFrame(X, columns=["net load", "prediction", "größe", "X"])
    made["town"] = rng.choice(["Ulm", "Aix"], size=len(X))
    return made, pd.DataFrame(Y, columns=["Cu", "Zn", "Ni"])


@pytest.fixture
def text_model(frame):
    encoder = ColumnTransformer(
        [("text", OneHotEncoder(), ["town"])], remainder=SimpleImputer(strategy="median")
    )
    return EntangledKernelRidge(make_pipeline(encoder, EvidenceFeatures(random_state=0))).fit(*frame)


def test_numbers_are_one_input(rows, tmp_path):
    made = export_onnx(EntangledKernelRidge().fit(*rows), tmp_path / "model.onnx")
    assert made.inputs == {"X": "float32"}
    assert made.columns == ["x0", "x1", "x2", "x3"]
    assert made.output == "prediction"
    assert made.targets == ["output0", "output1", "output2"]


def test_columns_of_a_frame_with_text_are_inputs_of_their_own(frame, text_model, tmp_path):
    path = tmp_path / "model.onnx"
    made = export_onnx(text_model, path, dtype="float64")
    assert made.inputs == {
        **dict.fromkeys(["net load", "prediction", "größe", "X"], "float64"),
        "town": "text",
    }
    assert made.output == "prediction_"
    assert made.targets == ["Cu", "Zn", "Ni"]
    assert compare_onnx(text_model, path, frame[0]) < 1e-9
    assert compare_onnx(text_model, path, made.sample) < 1e-9
    blank = frame[0].assign(größe=np.nan)
    assert compare_onnx(text_model, path, blank) < 1e-9


def test_the_file_tells_what_it_is(frame, text_model, tmp_path):
    path = tmp_path / "model.onnx"
    export_onnx(text_model, path)
    read = onnx.load(path)
    onnx.checker.check_model(read, full_check=True)
    facts = {own.key: json.loads(own.value) for own in read.metadata_props}
    assert facts == {
        "estimator": "EntangledKernelRidge",
        "targets": ["Cu", "Zn", "Ni"],
        "columns": [*frame[0].columns],
    }
    assert (read.producer_name, read.producer_version) == ("entangled-kernels", entangled_kernels.__version__)


def test_the_same_model_gives_the_same_bytes(text_model, tmp_path):
    for name in ("one", "two"):
        export_onnx(text_model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_loaded_model_gives_the_same_bytes(text_model, tmp_path):
    save_model(text_model, tmp_path / "saved.model")
    export_onnx(text_model, tmp_path / "one")
    export_onnx(load_model(tmp_path / "saved.model"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_another_runtime_agrees(rows, new_rows, tmp_path):
    """The reference of ONNX, which is written in numpy."""
    path = tmp_path / "model.onnx"
    model = EntangledKernelRidge(make_pipeline(StandardScaler(), EvidenceFeatures(warp=True, random_state=0)))
    export_onnx(model.fit(*rows), path, dtype="float64")
    (found,) = ReferenceEvaluator(onnx.load(path)).run(None, {"X": new_rows})
    np.testing.assert_allclose(found, model.predict(new_rows), rtol=1e-9)


def test_maps_that_begin_alike_share_their_beginning(rows, tmp_path):
    maps = make_union(GaussianFeatures(random_state=0), ForestFeatures(5, random_state=0), StandardScaler())
    export_onnx(EntangledKernelRidge(maps).fit(*rows), tmp_path / "model.onnx")
    read = onnx.load(tmp_path / "model.onnx")
    kinds = [node.op_type for node in read.graph.node]
    # Of the three standardisations there is one; the kernel divides once more, by its width.
    assert kinds.count("TreeEnsembleRegressor") == 1
    assert kinds.count("Sub") == kinds.count("Div") == 2


def test_the_sample_is_like_the_rows_of_training(rows, tmp_path):
    X, Y = rows
    steps = [
        GaussianFeatures(random_state=0),
        EvidenceFeatures(reach=1.0, random_state=0),
        EvidenceFeatures(reach=1.0, warp=True, random_state=0),
        make_pipeline(SimpleImputer(), StandardScaler()),
    ]
    for step in steps:
        made = export_onnx(EntangledKernelRidge(step).fit(X, Y), tmp_path / "model.onnx")
        np.testing.assert_allclose(
            made.sample["X"].mean(axis=0), X.mean(axis=0), atol=0.5 * X.std(axis=0).max()
        )
        np.testing.assert_allclose(made.sample["X"].std(axis=0), X.std(axis=0), rtol=0.3)


def test_any_number_of_rows(rows, tmp_path):
    export_onnx(EntangledKernelRidge(ForestFeatures(5, random_state=0)).fit(*rows), tmp_path / "model.onnx")
    for n in (0, 1, 3):
        assert run_onnx(tmp_path / "model.onnx", rows[0][:n]).shape == (n, 3)


def test_a_file_that_stands_there_stays_when_writing_fails(rows, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_text("mine")

    class Unknown(StandardScaler):
        pass

    with pytest.raises(ExportError, match=r"feature_map_ \(Unknown\)"):
        export_onnx(EntangledKernelRidge(Unknown()).fit(*rows), path)
    assert path.read_text() == "mine"


def test_what_is_no_fitted_regressor_is_refused(rows, tmp_path):
    path = tmp_path / "model.onnx"
    with pytest.raises(NotFittedError):
        export_onnx(EntangledKernelRidge(), path)
    with pytest.raises(ExportError, match="must be a fitted regressor with predict, got OperatorKernelVAR"):
        export_onnx(OperatorKernelVAR(), path)
    with pytest.raises(ValueError, match="dtype must be one of"):
        export_onnx(Ridge().fit(*rows), path, dtype="float16")


def test_a_missing_package_is_named(rows, tmp_path, monkeypatch):
    model = EntangledKernelRidge().fit(*rows)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install \"entangled-kernels\[onnx\]\""):
        export_onnx(model, tmp_path / "model.onnx")
