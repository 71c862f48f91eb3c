import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

from entangled_kernels import EntangledKernelRidge, ForestFeatures, GaussianFeatures
from entangled_kernels.io import ExportError, export_onnx


@pytest.fixture
def frame(rows, rng):
    made = pd.DataFrame(rows[0], columns=["a", "b", "net load", "c"])
    return made.assign(town=rng.choice(["Ulm", "Aix"], size=len(made)))


def test_pipelines_and_unions(rows, new_rows, same_features):
    union = FeatureUnion(
        [
            ("maps", GaussianFeatures(random_state=0)),
            ("raw", "passthrough"),
            ("none", "drop"),
            ("own", StandardScaler()),
        ],
        transformer_weights={"own": 0.5},
    )
    step = Pipeline([("scale", MinMaxScaler()), ("nothing", None), ("union", union), ("last", "passthrough")])
    same_features(step.fit(*rows), new_rows)


def test_features_inside_a_union_are_multiplied_part_by_part(rows, new_rows, agrees):
    union = make_union(StandardScaler(), ForestFeatures(10, random_state=0), GaussianFeatures(random_state=0))
    agrees(EntangledKernelRidge(union).fit(*rows), new_rows, 1e-6)


@pytest.mark.parametrize("remainder", ["drop", "passthrough", StandardScaler()], ids=repr)
def test_columns_go_their_own_ways(remainder, rows, new_rows, same_features):
    step = ColumnTransformer(
        [
            ("one", PolynomialFeatures(), [2, 0]),
            ("slice", "passthrough", slice(1, 2)),
            ("none", StandardScaler(), []),
            ("off", "drop", [0]),
        ],
        remainder=remainder,
        transformer_weights={"one": 2.0},
    )
    same_features(step.fit(rows[0]), new_rows)


def test_columns_by_name_and_kind(frame, same_features):
    step = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(StandardScaler(), PolynomialFeatures(2)),
                make_column_selector(dtype_include=float),
            ),
            ("text", OneHotEncoder(), make_column_selector(dtype_exclude=float)),
        ]
    )
    same_features(step.fit(frame), frame)


def test_columns_that_are_dropped_are_no_inputs(frame, rows, tmp_path, agrees):
    step = ColumnTransformer([("one", StandardScaler(), ["net load", "a"])])
    model = EntangledKernelRidge(step).fit(frame, rows[1])
    made = export_onnx(model, tmp_path / "model.onnx")
    assert made.inputs == {"a": "float32", "net load": "float32"}
    agrees(model, frame.assign(town="nobody reads it"))


def test_selected_columns(rows, new_rows, same_features, tmp_path):
    X = np.column_stack([rows[0], np.ones(len(rows[0]))])
    new = np.column_stack([new_rows, np.ones(len(new_rows))])
    for step in (VarianceThreshold(), SelectKBest(f_regression, k=2)):
        step.fit(rows[0] if isinstance(step, SelectKBest) else X, rows[1][:, 0])
        same_features(step, new_rows if isinstance(step, SelectKBest) else new)
    model = make_pipeline(VarianceThreshold(), LinearRegression()).fit(X, rows[1])
    assert export_onnx(model, tmp_path / "model.onnx").inputs == {"X": "float32"}


def test_regressors_of_regressors(rows, new_rows, agrees):
    agrees(make_pipeline(StandardScaler(), EntangledKernelRidge()).fit(*rows), new_rows)
    agrees(MultiOutputRegressor(LinearRegression()).fit(*rows), new_rows)
    search = GridSearchCV(EntangledKernelRidge(StandardScaler()), {"alpha": [0.1, 1.0]}, cv=2)
    agrees(search.fit(*rows), new_rows)


def test_text_where_numbers_are_needed_is_named(frame, rows, tmp_path):
    step = ColumnTransformer([("text", OneHotEncoder(), ["town"]), ("again", "passthrough", ["town", "a"])])
    model = make_pipeline(step.fit(frame), LinearRegression())
    model[-1].coef_, model[-1].intercept_ = np.ones((1, 4)), np.zeros(1)
    with pytest.raises(
        ExportError, match=r"LinearRegression.*it needs numbers, and gets the text of column 'town'"
    ):
        export_onnx(model, tmp_path / "model.onnx")


def test_the_step_that_cannot_be_exported_is_named(rows, tmp_path):
    union = make_union(StandardScaler(), make_pipeline(MinMaxScaler(), QuantileTransformer(n_quantiles=5)))
    model = EntangledKernelRidge(union).fit(*rows)
    way = r"Ridge > feature_map_ \(FeatureUnion\) > pipeline \(Pipeline\) > quantiletransformer \(Qu"
    with pytest.raises(ExportError, match=way):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
