"""Every map, transformer and kernel: its file gives what it gives."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.feature_selection import (
    SelectKBest,
    SequentialFeatureSelector,
    VarianceThreshold,
    f_regression,
)
from sklearn.gaussian_process import kernels as gp
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EvidenceFeatures,
    ForestFeatures,
    OperatorFourierFeatures,
    OperatorValuedKernelRidge,
    TargetProcessFeatures,
)
from entangled_kernels.io import ExportError, export_onnx, run_onnx
from entangled_kernels.io.onnx_converters import FUNCTIONS, NAMES
from entangled_kernels.kernels import FeatureKernel, KrausKernel, SeparableKernel
from entangled_kernels.kernels.scalar import ExponentialDot

# Graphs compute squared distances from inner products, with a rounding error of about 1e-15 for
# rows of length 3. The error of the distance, of which the exponential kernel is a function, is
# that over twice the distance: at most 1e-7 for rows 1e-8 apart, 1e-13 at a distance of 0.01.
# Coefficients are up to 1e4.
EXPONENTIAL = 2e-8
MAPS = {
    "evidence": (EvidenceFeatures(random_state=0), 1e-9),
    "some rows": (EvidenceFeatures(n_components=10, random_state=0), 1e-9),
    "warp": (EvidenceFeatures(warp=True, random_state=0), 1e-9),
    "kernel": (
        EvidenceFeatures(gp.RBF([1.0, 2.0, 1.0, 2.0]) + gp.WhiteKernel(), random_state=0),
        1e-9,
    ),
    "widths": (ColumnWidthFeatures(random_state=0), 1e-9),
    "limits": (EvidenceFeatures(reach=0.0, random_state=0), 1e-9),
    "limited powers": (ColumnWidthFeatures(warp=True, reach=0.2, random_state=0), 1e-9),
    "Gaussian widths": (ColumnWidthFeatures("gaussian", random_state=0), 1e-9),
    "exponential widths": (ColumnWidthFeatures("exponential", random_state=0), EXPONENTIAL),
    "processes": (TargetProcessFeatures(random_state=0), EXPONENTIAL),
    "limited processes": (TargetProcessFeatures(reach=0.2, random_state=0), EXPONENTIAL),
    "forest": (ForestFeatures(20, random_state=0), 1e-9),
    "leaves of 4": (ForestFeatures(20, min_samples_leaf=4, random_state=0), 1e-9),
    "forecasts": (ForestFeatures(20, n_components=10, random_state=0), 1e-9),
    "operator": (OperatorFourierFeatures(n_frequencies=10, random_state=0), 1e-9),
}
SCALED = [
    PCA(2),
    PCA(whiten=True),
    IncrementalPCA(2),
    TruncatedSVD(2),
    PLSRegression(2),
    PolynomialFeatures(3),
    PolynomialFeatures(2, interaction_only=True, include_bias=False),
    PolynomialFeatures(0),
    Nystroem(n_components=15, random_state=0),
    Nystroem("poly", degree=2, n_components=15, random_state=0),
    RBFSampler(gamma=0.3, n_components=15, random_state=0),
    KernelPCA(3, kernel="rbf", gamma=0.2),
    KernelPCA(3),
]
COLUMNS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
    MinMaxScaler((-1.0, 2.0)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    Normalizer(),
    Normalizer("l1"),
    Binarizer(threshold=0.5),
    PowerTransformer(),
    PowerTransformer(standardize=False),
    FunctionTransformer(),
    QuantileTransformer(n_quantiles=10),
    SelectKBest(f_regression, k=1),
    SelectKBest(f_regression, k=2),
    SequentialFeatureSelector(LinearRegression(), n_features_to_select=2, cv=2),
]


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_this_package(name, rows, new_rows, same_features, agrees):
    feature_map, exact = MAPS[name]
    model = EntangledKernelRidge(feature_map, alpha=0.01).fit(*rows)
    same_features(model.feature_map_, new_rows, exact)
    agrees(model, new_rows, exact)


@pytest.mark.parametrize("step", SCALED)
def test_expansions(step, rows, new_rows, same_features):
    same_features(make_pipeline(StandardScaler(), step).fit(*rows), new_rows, 1e-9)


@pytest.mark.parametrize("step", COLUMNS)
def test_columns_by_themselves(step, rows, new_rows, same_features):
    same_features(step.fit(rows[0], rows[1][:, 0]), new_rows)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda own: own.__name__)
def test_functions_of_numpy(function, new_rows, same_features):
    X = np.abs(new_rows) + 0.1
    X = X if function in (np.log, np.log2, np.log10, np.log1p, np.sqrt) else X * np.sign(new_rows)
    same_features(FunctionTransformer(function).fit(X / 10.0), X / 10.0)


def test_powers_of_zero_are_logarithms(rows, new_rows, same_features):
    step = PowerTransformer("box-cox").fit(np.abs(rows[0]) + 0.1)
    step.lambdas_[1] = 0.0
    same_features(step, np.abs(new_rows) + 0.1)


def test_columns_far_from_zero_keep_their_digits(rng, same_features, agrees):
    X = 1e9 + rng.normal(size=(20, 2))
    same_features(StandardScaler().fit(X), X)
    X = 1e5 + rng.normal(size=(30, 2))
    kernel = SeparableKernel(gp.RBF(1.0), np.eye(2))
    model = OperatorValuedKernelRidge(kernel, alpha=1e-4).fit(X, np.sin(X - 1e5))
    agrees(model, X + 0.25 * rng.normal(size=X.shape), 1e-6)


def test_a_small_ridge_keeps_its_digits(rows, new_rows, agrees):
    """With a small alpha coefficients are large, so kernel values of float32 are not precise."""
    X, Y = rows
    bell = make_pipeline(StandardScaler(), Nystroem(gamma=0.01, n_components=40, random_state=0))
    agrees(EntangledKernelRidge(bell, alpha=1e-8, shrinkage=1.0).fit(X, Y), new_rows, 1e-6)


def test_thresholds_of_trees_are_met_exactly(rng, agrees):
    """Rows that stand on the thresholds of trees, and one float32 beside them."""
    X = np.repeat(np.arange(20.0), 2)[:, None] * np.array([[1.0, 0.1]]) + 1e4
    model = EntangledKernelRidge(ForestFeatures(20, random_state=0), alpha=0.01)
    model.fit(X, rng.normal(size=(40, 2)))
    between = X.min(axis=0) + np.ptp(X, axis=0) * (np.arange(400)[:, None] / 390.0)
    beside = np.vstack([X, np.nextafter(X.astype(np.float32), np.float32(np.inf)), between])
    agrees(model, beside, 1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("step", [EvidenceFeatures(reach=0.5), ForestFeatures(5)], ids=repr)
def test_what_predict_refuses_is_no_number(step, value, rows, new_rows, tmp_path):
    odd = np.array(new_rows[:3])
    odd[1, 0] = value
    export_onnx(EntangledKernelRidge(step).fit(*rows), tmp_path / "model.onnx", dtype="float64")
    found = run_onnx(tmp_path / "model.onnx", odd)
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, True, False])


# Scalar kernels, in kernel ridge.

KERNELS = [
    gp.RBF(1.5),
    gp.RBF([1.0, 2.0, 3.0, 4.0]),
    gp.Matern(1.5, nu=0.5),
    gp.Matern([1.0, 2.0, 3.0, 4.0], nu=1.5),
    gp.Matern(1.5, nu=2.5),
    gp.Matern(1.5, nu=np.inf),
    gp.RationalQuadratic(1.5, 0.7),
    gp.ConstantKernel(2.0) + gp.RBF(1.0),
    gp.RBF(1.0) + gp.WhiteKernel(0.3),
    gp.DotProduct(0.5),
    gp.ConstantKernel(0.5) * gp.RBF(2.0) + 0.1 * gp.DotProduct(0.0),
    gp.RBF(3.0) * gp.DotProduct(1.0),
    gp.DotProduct(1.0) ** 2,
    ExponentialDot(),
    FeatureKernel(None),
    FeatureKernel(None, np.diag([1.0, 2.0, 3.0, 4.0])),
    *NAMES,
]


@pytest.mark.parametrize(
    "kernel", KERNELS, ids=lambda own: own if isinstance(own, str) else repr(own)[:40]
)
def test_scalar_kernels(kernel, rows, new_rows, agrees):
    X, Y = rows
    scaler = StandardScaler().fit(X)
    indefinite = "krein" if kernel == "sigmoid" else "error"
    model = OperatorValuedKernelRidge(
        SeparableKernel(kernel, np.eye(3)), alpha=0.1, indefinite=indefinite
    )
    agrees(model.fit(scaler.transform(X), Y), scaler.transform(new_rows), 1e-7)


def test_settings_of_named_kernels(rows, new_rows, agrees):
    X, Y = rows[0] / rows[0].std(axis=0), rows[1]
    kernel = SeparableKernel("poly", np.eye(3), degree=2, coef0=0.5, gamma=0.1)
    agrees(
        OperatorValuedKernelRidge(kernel, alpha=0.1).fit(X, Y), new_rows / rows[0].std(axis=0), 1e-7
    )


def test_operator_kernels(rng, rows, new_rows, agrees):
    X, Y = rows
    T = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 0.5]])
    separable, scaler = SeparableKernel("rbf", T, gamma=0.3), StandardScaler().fit(X)
    for kernel in (
        2.0 * separable + SeparableKernel("linear", np.eye(3)),
        KrausKernel(rng.normal(size=(2, 3, 4)), scaler),
        KrausKernel(rng.normal(size=(2, 3, 4)), scaler, np.diag([1.0, 2.0, 3.0, 4.0])),
    ):
        agrees(OperatorValuedKernelRidge(kernel, alpha=0.1).fit(X, Y), new_rows, 1e-7)
    agrees(OperatorValuedKernelRidge(separable, fit_intercept=False).fit(X, Y), new_rows, 1e-7)


# Text, and values that are missing.


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
def holes(rng):
    X = rng.normal(size=(20, 3))
    X[rng.random(size=X.shape) < 0.3] = np.nan
    return X


@pytest.mark.parametrize("drop", [None, "first"])
def test_texts_become_columns(drop, frame, same_features):
    encoder = OneHotEncoder(drop=drop, handle_unknown="ignore")
    step = ColumnTransformer([("text", encoder, ["town"])], remainder="passthrough").fit(frame)
    same_features(step, frame)


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
    encoder = ColumnTransformer([("grade", OneHotEncoder(), ["grade"])], remainder="drop").fit(
        frame
    )
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
)
def test_missing_values_are_filled(imputer, holes, same_features):
    same_features(imputer.fit(holes), holes)


@pytest.mark.filterwarnings("ignore:Skipping features")
def test_columns_without_a_value_are_left_out(holes, same_features):
    holes[:, 1] = np.nan
    for imputer in (SimpleImputer(), SimpleImputer(keep_empty_features=True)):
        same_features(imputer.fit(holes), holes)


def test_other_signs_of_missing_values(holes, same_features):
    X = np.nan_to_num(holes, nan=-999.0)
    same_features(SimpleImputer(missing_values=-999.0).fit(X), X)


def test_missing_texts_are_empty_texts(frame, same_features):
    frame["town"] = frame["town"].astype(object)
    frame.loc[[0, 3], "town"] = np.nan
    encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    encoder = ColumnTransformer([("text", encoder, ["town"])], remainder=StandardScaler()).fit(
        frame
    )
    same_features(encoder, frame)


# Steps made of steps.


def test_pipelines_and_unions(rows, new_rows, same_features):
    union = FeatureUnion(
        [
            ("maps", EvidenceFeatures(random_state=0)),
            ("raw", "passthrough"),
            ("none", "drop"),
            ("scaled", StandardScaler()),
        ],
        transformer_weights={"scaled": 0.5},
    )
    step = Pipeline(
        [("scale", MinMaxScaler()), ("nothing", None), ("union", union), ("last", "passthrough")]
    )
    same_features(step.fit(*rows), new_rows)


@pytest.mark.parametrize("remainder", ["drop", "passthrough", StandardScaler()], ids=repr)
def test_each_column_its_steps(remainder, rows, new_rows, same_features):
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
    same_features(make_pipeline(StandardScaler(), step).fit(rows[0]), new_rows)


def test_columns_by_name_and_kind(rows, rng, same_features):
    frame = pd.DataFrame(rows[0], columns=["a", "b", "net load", "c"])
    frame = frame.assign(town=rng.choice(["Ulm", "Aix"], size=len(frame)))
    numbers = make_pipeline(StandardScaler(), PolynomialFeatures(2))
    parts = [
        ("numbers", numbers, make_column_selector(dtype_include=float)),
        ("text", OneHotEncoder(), make_column_selector(dtype_exclude=float)),
    ]
    same_features(ColumnTransformer(parts).fit(frame), frame)


def test_columns_that_vary(rows, new_rows, same_features, tmp_path):
    X, new = (np.column_stack([own, np.ones(len(own))]) for own in (rows[0], new_rows))
    same_features(VarianceThreshold().fit(X), new)
    model = make_pipeline(VarianceThreshold(), LinearRegression()).fit(X, rows[1])
    assert export_onnx(model, tmp_path / "model.onnx").inputs == {"X": "float32"}


# Steps that cannot be exported.


def test_steps_that_cannot_be_exported_are_named(rows, tmp_path):
    X, Y = np.abs(rows[0]) + 1.0, rows[1]
    bell = Nystroem(lambda x, z: float(x @ z), n_components=5, random_state=0)
    for step, words in (
        (FunctionTransformer(np.round), "FunctionTransformer.*func=round; use one of numpy's"),
        (FunctionTransformer(np.log, kw_args={"where": True}), "func=log with kw_args"),
        (bell, r"feature_map_ \(Nystroem\) cannot be exported.*kernel="),
        (Normalizer("max"), r"feature_map_ \(Normalizer\) cannot be exported"),
        (Nystroem("chi2", n_components=5, random_state=0), "kernel='chi2'"),
        (
            make_pipeline(MinMaxScaler(), FeatureUnion([("knots", SplineFeatures())])),
            r"feature_map_ \(Pipeline\) > featureunion \(FeatureUnion\) > knots \(SplineFeatures\)",
        ),
    ):
        model = EntangledKernelRidge(step).fit(X, Y)
        with pytest.raises(ExportError, match=words):
            export_onnx(model, tmp_path / "model.onnx")
        assert not list(tmp_path.iterdir())


class SplineFeatures(StandardScaler):
    """A subclass may compute something else."""


@pytest.mark.parametrize("kernel", [gp.ExpSineSquared(), gp.Matern(nu=2.0), "chi2"], ids=repr)
def test_kernels_that_cannot_be_exported_are_named(kernel, rows, tmp_path):
    X = np.abs(rows[0])
    model = OperatorValuedKernelRidge(SeparableKernel(kernel, np.eye(3)), alpha=100.0).fit(
        X[:8], rows[1][:8]
    )
    with pytest.raises(
        ExportError, match=r"the kernel ExpSine|Matern kernels of nu=2|kernel='chi2'"
    ):
        export_onnx(model, tmp_path / "model.onnx")


def test_encoders_and_imputers_that_cannot_be_exported_are_named(frame, tmp_path):
    Y, path = frame[["net load"]].to_numpy(), tmp_path / "model.onnx"
    frame["none"] = np.where(np.arange(30) % 2, "a", None)
    holes = frame.astype({"town": object})
    holes.loc[0, "town"] = np.nan
    marked = SimpleImputer(strategy="most_frequent", add_indicator=True)
    last = OneHotEncoder(handle_unknown="ignore")
    for table, step, words in (
        (frame, [("code", OneHotEncoder(max_categories=2), ["town"])], "leave out min_frequency"),
        (frame, [("code", OrdinalEncoder(max_categories=2), ["town"])], "leave out min_frequency"),
        (frame, [("code", OneHotEncoder(), ["none"])], "fill them first"),
        (holes, [("code", marked, ["town"])], "add_indicator"),
        (
            holes,
            [("code", SimpleImputer(strategy="most_frequent"), ["town", "net load"])],
            "give each kind",
        ),
    ):
        imputes = isinstance(step[0][1], SimpleImputer)
        steps = [ColumnTransformer(step), *([last] if imputes else []), LinearRegression()]
        with pytest.raises(ExportError, match=rf"> code \(\w+\) cannot be exported.*{words}"):
            export_onnx(make_pipeline(*steps).fit(table, Y), path)
