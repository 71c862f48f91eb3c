import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.io import ExportError, export_onnx, run_onnx


@pytest.fixture
def frame(rng):
    return pd.DataFrame(
        {
            "net load": rng.normal(size=30),
            "town": rng.choice(["Ulm", "Aix", "Łódź"], size=30),
            "grade": rng.choice([0.1, 0.5, 3.0], size=30),
        }
    )


@pytest.fixture
def blanks(rng):
    X = rng.normal(size=(20, 3))
    X[rng.random(size=X.shape) < 0.3] = np.nan
    return X


@pytest.mark.parametrize("drop", [None, "first"])
def test_texts_become_columns(drop, frame, same_features):
    encoder = OneHotEncoder(drop=drop, handle_unknown="ignore")
    same_features(ColumnTransformer([("text", encoder, ["town"])], remainder="passthrough").fit(frame), frame)


def test_unknown_texts_have_no_column(frame, same_features):
    encoder = ColumnTransformer([("text", OneHotEncoder(handle_unknown="ignore"), ["town"])])
    same_features(encoder.fit(frame), frame.assign(town="Ems"))


def test_a_text_that_is_refused_gives_nan(frame, rng, tmp_path):
    encoder = ColumnTransformer([("text", OneHotEncoder(), ["town"])], remainder="passthrough")
    model = EntangledKernelRidge(encoder).fit(frame, rng.normal(size=(30, 2)))
    export_onnx(model, tmp_path / "model.onnx")
    found = run_onnx(tmp_path / "model.onnx", frame.assign(town=["Ems", *frame["town"][1:]]))
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all()


def test_numbers_as_categories(frame, same_features):
    encoder = ColumnTransformer([("grade", OneHotEncoder(), ["grade"])], remainder="drop").fit(frame)
    same_features(encoder, frame)
    same_features(OneHotEncoder().fit(frame[["grade"]]), frame[["grade"]])


@pytest.mark.parametrize("unknown", [-1, np.nan])
def test_codes(unknown, frame, same_features):
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=unknown)
    encoder = ColumnTransformer([("text", encoder, ["town", "grade"])]).fit(frame)
    same_features(encoder, frame.assign(town=["Ems", *frame["town"][1:]]))
    same_features(ColumnTransformer([("text", OrdinalEncoder(), ["town"])]).fit(frame), frame)


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median", add_indicator=True),
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value=-5.0),
        SimpleImputer(keep_empty_features=True),
        MissingIndicator(),
        MissingIndicator(features="all"),
    ],
    ids=repr,
)
def test_blanks_are_filled(imputer, blanks, same_features):
    same_features(imputer.fit(blanks), blanks)


@pytest.mark.filterwarnings("ignore:Skipping features")
def test_columns_of_blanks_are_left_out(blanks, same_features):
    blanks[:, 1] = np.nan
    for imputer in (SimpleImputer(), SimpleImputer(keep_empty_features=True)):
        same_features(imputer.fit(blanks), blanks)


def test_other_signs_of_blanks(blanks, same_features):
    X = np.nan_to_num(blanks, nan=-999.0)
    same_features(SimpleImputer(missing_values=-999.0).fit(X), X)


def test_blank_texts_are_empty_texts(frame, same_features):
    frame["town"] = frame["town"].astype(object)
    frame.loc[[0, 3], "town"] = np.nan
    encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    encoder = ColumnTransformer([("text", encoder, ["town"])], remainder=StandardScaler()).fit(frame)
    same_features(encoder, frame)


def test_encoders_that_cannot_be_exported_are_named(frame, tmp_path):
    Y, path = frame[["net load"]].to_numpy(), tmp_path / "model.onnx"
    frame["none"] = np.where(np.arange(30) % 2, "a", None)
    for columns, encoder, reason in (
        ("town", OneHotEncoder(max_categories=2), "leave out min_frequency"),
        ("town", OrdinalEncoder(max_categories=2), "leave out min_frequency"),
        ("none", OneHotEncoder(), "fill blanks first"),
    ):
        step = ColumnTransformer([("code", encoder, [columns])])
        model = make_pipeline(step, LinearRegression()).fit(frame, Y)
        with pytest.raises(ExportError, match=rf"> code \(\w+\) cannot be exported.*{reason}"):
            export_onnx(model, path)


def test_imputers_that_cannot_be_exported_are_named(frame, tmp_path):
    Y, path = frame[["net load"]].to_numpy(), tmp_path / "model.onnx"
    frame = frame.astype({"town": object})
    frame.loc[0, "town"] = np.nan
    marked = SimpleImputer(strategy="most_frequent", add_indicator=True)
    both = ColumnTransformer([("fill", SimpleImputer(strategy="most_frequent"), ["town", "net load"])])
    for step, reason in (
        (ColumnTransformer([("fill", marked, ["town"])]), "add_indicator"),
        (both, "give each kind an imputer"),
    ):
        step = make_pipeline(step, OneHotEncoder(handle_unknown="ignore"))
        model = make_pipeline(step, LinearRegression()).fit(frame, Y)
        with pytest.raises(ExportError, match=rf"fill \(SimpleImputer\) cannot be exported.*{reason}"):
            export_onnx(model, path)
