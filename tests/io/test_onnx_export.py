"""Fitted models as ONNX files: they predict what the model does, and say what they are."""

import json
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx.reference import ReferenceEvaluator
from sklearn import linear_model
from sklearn.base import RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

import entangled_kernels
from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorKernelVAR,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from entangled_kernels.io import (
    ExportError,
    compare_onnx,
    export_onnx,
    load_model,
    register_converters,
    run_onnx,
    save_model,
)
from entangled_kernels.io.onnx_converters import BY_SKL2ONNX
from entangled_kernels.kernels import CurlFreeKernel, SeparableKernel

KERNELS = [
    ("line", "linear", [0, 1]),
    ("wave", RBFSampler(n_components=20, random_state=0), [1, 2, 3]),
    ("bell", "rbf", slice(None)),
]
MODELS = [
    EntangledKernelRidge(),
    EntangledKernelRidge(StandardScaler(), prediction="partial_trace"),
    EntangledKernelRidgeCV([ForestFeatures(10, random_state=0), None], cv=KFold(2), random_state=0),
    OutputKernelRidge(alpha=0.1),
    OutputKernelRidge(alpha=0.1, kernel="rbf", gamma=0.1),
    OutputKernelRidge(alpha=0.1, kernel="poly", kernel_params={"degree": 2, "coef0": 0.5}),
    OutputKernelRidgeCV(alphas=(0.01, 0.1, 1.0, 10.0, 100.0), cv=2),
    MultipleKernelRidge(KERNELS, solver_params={"max_iter": 50, "tol": 0.1}),
    MultiViewKernelRidge(KERNELS, solver_params={"max_iter": 50, "tol": 0.1}),
    OperatorFourierRidge(OperatorFourierFeatures(n_frequencies=10, random_state=0)),
    OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(3), gamma=0.1)),
]
REGRESSORS = [
    PLSRegression(2),
    DummyRegressor(),
    KernelRidge(0.1),
    KernelRidge(0.1, kernel="rbf", gamma=0.2),
    GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None, normalize_y=True),
    GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None),
    DecisionTreeRegressor(max_depth=4, random_state=0),
    ExtraTreeRegressor(random_state=0),
    ExtraTreesRegressor(10, random_state=0),
    RandomForestRegressor(10, random_state=0),
    *(
        MLPRegressor(hidden_layer_sizes=[4, 3], activation=name, max_iter=5, random_state=0)
        for name in ("relu", "tanh", "logistic", "identity")
    ),
]
SINGLE = [
    GradientBoostingRegressor(n_estimators=10, random_state=0),
    GradientBoostingRegressor(n_estimators=10, init="zero", random_state=0),
    LinearSVR(random_state=0),
]
LINEAR = sorted(
    name for name in BY_SKL2ONNX if issubclass(getattr(linear_model, name, type), RegressorMixin)
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda own: " ".join(repr(own).split())[:60])
@pytest.mark.parametrize("one", [False, True], ids=["several targets", "one target"])
def test_models_of_this_package(model, one, rows, new_rows, agrees):
    X, Y = rows
    scaler = StandardScaler().fit(X)
    if one and not isinstance(model, OperatorValuedKernelRidge):
        Y = Y[:, 0]
    agrees(model.fit(scaler.transform(X), Y), scaler.transform(new_rows), 1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [*REGRESSORS, *SINGLE], ids=repr)
def test_regressors_of_scikit_learn(model, rows, new_rows, agrees):
    Y = rows[1][:, 0] if model in SINGLE else rows[1]
    # Sums over trees are rounded to float32.
    agrees(make_pipeline(StandardScaler(), model).fit(rows[0], Y), new_rows, 1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models(name, rows, new_rows, agrees):
    X, Y = rows
    several = name.startswith("MultiTask") or name in ("LinearRegression", "Ridge", "RidgeCV")
    model = getattr(linear_model, name)()
    agrees(make_pipeline(StandardScaler(), model).fit(X, Y if several else Y[:, 0]), new_rows)


def test_an_average_over_maps(rows, new_rows, agrees):
    maps = [
        make_pipeline(StandardScaler(), EvidenceFeatures(warp=True, random_state=0)),
        ForestFeatures(10, min_samples_leaf=4, random_state=0),
        make_pipeline(StandardScaler(), Nystroem(n_components=15, random_state=0)),
    ]
    model = EntangledKernelRidgeCV(maps, cv=KFold(2), selection="average", random_state=0).fit(
        *rows
    )
    agrees(model, new_rows, 1e-8)


def test_models_made_of_models(rows, new_rows, agrees):
    agrees(make_pipeline(StandardScaler(), EntangledKernelRidge()).fit(*rows), new_rows)
    X, Y = rows
    parts = EntangledKernelRidge().partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    agrees(parts, new_rows)
    agrees(MultiOutputRegressor(EntangledKernelRidge(StandardScaler())).fit(*rows), new_rows)
    search = GridSearchCV(EntangledKernelRidge(StandardScaler()), {"alpha": [0.1, 1.0]}, cv=2)
    agrees(search.fit(*rows), new_rows)


def test_missing_views_add_nothing(rows, new_rows, agrees, tmp_path):
    X, Y = rows
    X, new = X / X.std(axis=0), new_rows / X.std(axis=0)
    X[:5, 2:], new[1, 2:], new[2, :2] = np.nan, np.nan, np.nan
    views = {"first": [0, 1], "second": [2, 3]}
    model = MultiViewKernelRidge(views, solver_params={"max_iter": 50, "tol": 0.1}).fit(X, Y)
    agrees(model, new)
    new[3, 2] = np.nan
    export_onnx(model, tmp_path / "model.onnx")
    odd = np.isnan(run_onnx(tmp_path / "model.onnx", new)).any(axis=1)
    assert np.flatnonzero(odd).tolist() == [3]


@pytest.mark.parametrize("transform", ["log", "log1p", {0: "log", 2: "log1p"}], ids=str)
def test_targets_learned_as_logarithms(rows, new_rows, agrees, transform):
    X, Y = rows[0], np.abs(rows[1]) + 0.01
    # The second ones are so small that log1p gives less than zero for some rows, which is cut off
    # there.
    for targets in (Y, 1e-3 * Y):
        agrees(
            EntangledKernelRidge(StandardScaler(), target_transform=transform).fit(X, targets),
            new_rows,
        )


def test_models_that_cannot_be_exported_are_named(rows, rng, tmp_path):
    X, Y = rows
    plane = rng.normal(size=(10, 2))
    for model, words in (
        (OutputKernelRidge(kernel="precomputed").fit(X @ X.T, Y), "kernel='precomputed'"),
        (
            EntangledKernelRidge(target_transform=StandardScaler()).fit(X, Y),
            "transformed by StandardScaler",
        ),
        (
            MultiViewKernelClassifier().fit(X, Y[:, 0] > 0.0),
            "no graph for .*MultiViewKernelClassifier",
        ),
        (
            OperatorValuedKernelRidge(CurlFreeKernel(2)).fit(plane, plane),
            "the kernel CurlFreeKernel",
        ),
        (
            HistGradientBoostingRegressor(max_iter=2).fit(X, Y[:, 0]),
            "no graph for .*HistGradientBoosting",
        ),
        (KernelRidge(kernel=lambda x, z: float(x @ z)).fit(X, Y), "kernel=<function"),
    ):
        with pytest.raises(
            ExportError, match=f"{type(model).__name__} cannot be exported to ONNX.*{words}"
        ):
            export_onnx(model, tmp_path / "model.onnx")


# The file.


@pytest.fixture
def frame(rows, rng):
    X, Y = rows
    made = pd.DataFrame(X, columns=["net load, kW", "prediction", "größe", "X"])
    made["town"] = rng.choice(["Ulm", "Aix"], size=len(X))
    return made, pd.DataFrame(Y, columns=["Cu", "Zn", "Ni"])


@pytest.fixture
def text_model(frame):
    encoder = ColumnTransformer(
        [("text", OneHotEncoder(), ["town"])], remainder=SimpleImputer(strategy="median")
    )
    return EntangledKernelRidge(make_pipeline(encoder, EvidenceFeatures(random_state=0))).fit(
        *frame
    )


def test_numbers_are_one_input(rows, tmp_path):
    made = export_onnx(EntangledKernelRidge().fit(*rows), tmp_path / "model.onnx")
    assert made.inputs == {"X": "float32"}
    assert made.columns == ["x0", "x1", "x2", "x3"]
    assert made.output == "prediction"
    assert made.targets == ["output0", "output1", "output2"]


def test_columns_of_a_frame_with_text_are_inputs(frame, text_model, tmp_path):
    path = tmp_path / "model.onnx"
    made = export_onnx(text_model, path, dtype="float64")
    numbers = ["net load, kW", "prediction", "größe", "X"]
    assert made.inputs == {**dict.fromkeys(numbers, "float64"), "town": "text"}
    assert made.output == "prediction_"
    assert made.targets == ["Cu", "Zn", "Ni"]
    for X in (frame[0], made.sample, frame[0].assign(größe=np.nan)):
        assert compare_onnx(text_model, path, X) < 1e-9


def test_columns_that_are_dropped_are_no_inputs(frame, rows, tmp_path, agrees):
    step = ColumnTransformer([("one", StandardScaler(), ["X", "net load, kW"])])
    model = EntangledKernelRidge(step).fit(frame[0], rows[1])
    made = export_onnx(model, tmp_path / "model.onnx")
    assert made.inputs == {"net load, kW": "float32", "X": "float32"}
    agrees(model, frame[0].assign(town="nobody reads it"))


def test_columns_without_names(rng, tmp_path):
    X = np.column_stack([rng.normal(size=20), rng.choice(["Ulm", "Aix"], size=20)]).astype(object)
    X[:, 0] = X[:, 0].astype(float)
    encoder = ColumnTransformer([("text", OneHotEncoder(), [1])], remainder="passthrough")
    model = EntangledKernelRidge(encoder).fit(X, rng.normal(size=(20, 2)))
    path = tmp_path / "model.onnx"
    assert export_onnx(model, path).inputs == {"x0": "float32", "x1": "text"}
    assert compare_onnx(model, path, X) < 1e-5


def test_text_where_numbers_are_needed_is_named(frame, rows, tmp_path):
    step = ColumnTransformer(
        [("text", OneHotEncoder(), ["town"]), ("again", "passthrough", ["town", "X"])]
    )
    model = make_pipeline(step.fit(frame[0]), LinearRegression())
    model[-1].coef_, model[-1].intercept_ = np.ones((1, 4)), np.zeros(1)
    with pytest.raises(ExportError, match="needs numbers, and gets the text of column 'town'"):
        export_onnx(model, tmp_path / "model.onnx")


def test_missing_texts(rng, tmp_path):
    frame = pd.DataFrame({"town": np.array(["Ulm", "Aix", np.nan, "Ulm"] * 5, dtype=object)})
    encoder = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder())
    model = make_pipeline(encoder, Ridge()).fit(frame, rng.normal(size=20))
    export_onnx(model, tmp_path / "model.onnx")
    assert compare_onnx(model, tmp_path / "model.onnx", frame) < 1e-5


def test_the_file_tells_what_it_is(frame, text_model, tmp_path):
    path = tmp_path / "model.onnx"
    export_onnx(text_model, path)
    read = onnx.load(path)
    onnx.checker.check_model(read, full_check=True)
    facts = {own.key: json.loads(own.value) for own in read.metadata_props}
    assert facts["estimator"] == "EntangledKernelRidge"
    assert facts["targets"] == ["Cu", "Zn", "Ni"]
    assert facts["columns"] == [*frame[0].columns]
    assert (read.producer_name, read.producer_version) == (
        "entangled-kernels",
        entangled_kernels.__version__,
    )
    assert [dim.dim_value for dim in read.graph.output[0].type.tensor_type.shape.dim] == [0, 3]


def test_the_same_model_gives_the_same_bytes(rows, text_model, tmp_path):
    model = EntangledKernelRidge(make_union(EvidenceFeatures(), ForestFeatures(5, random_state=0)))
    for own in (model.fit(*rows), text_model):
        save_model(own, tmp_path / "model")
        export_onnx(own, tmp_path / "a.onnx")
        export_onnx(load_model(tmp_path / "model"), tmp_path / "b.onnx")
        assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_another_runtime_reads_it(rows, new_rows, tmp_path):
    path = tmp_path / "model.onnx"
    model = EntangledKernelRidge(EvidenceFeatures(random_state=0)).fit(*rows)
    export_onnx(model, path, dtype="float64")
    (found,) = ReferenceEvaluator(onnx.load(path)).run(None, {"X": new_rows})
    np.testing.assert_allclose(found, model.predict(new_rows), rtol=1e-9)
    assert run_onnx(path, rows[0][:0]).shape == (0, 3)


def test_skl2onnx_converts_models_of_this_package(rows, new_rows):
    import onnxruntime
    from skl2onnx import to_onnx

    register_converters()
    model = make_pipeline(StandardScaler(), EntangledKernelRidge(EvidenceFeatures())).fit(*rows)
    content = to_onnx(model, new_rows, target_opset={"": 17, "ai.onnx.ml": 3}).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": new_rows})
    np.testing.assert_allclose(found, model.predict(new_rows), rtol=1e-8)


def test_the_sample_is_like_the_rows_of_training(rows, tmp_path):
    X, Y = rows
    for step in (
        EvidenceFeatures(reach=1.0, random_state=0),
        EvidenceFeatures(reach=1.0, warp=True, random_state=0),
        make_pipeline(SimpleImputer(), StandardScaler()),
    ):
        made = export_onnx(EntangledKernelRidge(step).fit(X, Y), tmp_path / "model.onnx")
        largest = 0.5 * X.std(axis=0).max()
        np.testing.assert_allclose(made.sample["X"].mean(axis=0), X.mean(axis=0), atol=largest)
        np.testing.assert_allclose(made.sample["X"].std(axis=0), X.std(axis=0), rtol=0.3)


def test_what_is_no_fitted_regressor_is_refused(rows, tmp_path):
    path = tmp_path / "model.onnx"
    with pytest.raises(NotFittedError):
        export_onnx(EntangledKernelRidge(), path)
    with pytest.raises(
        ExportError, match="must be a fitted regressor with predict, got OperatorKernelVAR"
    ):
        export_onnx(OperatorKernelVAR(), path)
    with pytest.raises(ValueError, match="dtype must be one of"):
        export_onnx(Ridge().fit(*rows), path, dtype="float16")


def test_missing_packages_are_named(rows, tmp_path, monkeypatch):
    path, model = tmp_path / "model.onnx", make_pipeline(PolynomialFeatures(2), Ridge()).fit(*rows)
    export_onnx(model, path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install \"entangled-kernels\[onnx\]\""):
        run_onnx(path, rows[0])
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install \"entangled-kernels\[onnx\]\""):
        export_onnx(model, path)


# Comparisons.


def test_a_difference_is_in_units_of_the_deviation(rows, tmp_path):
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
