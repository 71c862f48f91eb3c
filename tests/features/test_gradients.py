"""Gradients of linear functions of features: every differentiable map against differences."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from entangled_kernels import (
    ColumnWidthFeatures,
    EvidenceFeatures,
    ForestFeatures,
    OperatorFourierFeatures,
)
from entangled_kernels.features import fit_feature_map, map_features
from entangled_kernels.features.gradients import NoGradientError, has_gradient, pull_back

from reference.differences import central_differences

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)) * [1.0, 5.0, 0.3] + [0.0, 10.0, 1.0]
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])

MAPS = {
    "none": None,
    "scaler": StandardScaler(),
    "min-max": MinMaxScaler(),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "centring": StandardScaler(with_std=False),
    "pca": PCA(2, whiten=True),
    "svd": TruncatedSVD(2, random_state=0),
    "polynomial": PolynomialFeatures(3),
    "few components": EvidenceFeatures(n_components=10, random_state=0),
    "evidence": EvidenceFeatures(random_state=0),
    "warped": EvidenceFeatures(warp=True, random_state=0),
    "other kernel": EvidenceFeatures(Matern(nu=1.5), random_state=0),
    "widths": ColumnWidthFeatures(random_state=0),
    "warped widths": ColumnWidthFeatures(warp=True, random_state=0),
    "gaussian widths": ColumnWidthFeatures("gaussian", random_state=0),
    "limited": EvidenceFeatures(reach=0.0, random_state=0),
    "limited and warped": ColumnWidthFeatures(warp=True, reach=0.5, random_state=0),
    "operator fourier": OperatorFourierFeatures(n_frequencies=20, gamma=0.01, random_state=0),
    "transformable": OperatorFourierFeatures(
        "transformable", n_frequencies=5, gamma=0.01, random_state=0
    ),
    "nystroem": make_pipeline(StandardScaler(), Nystroem(n_components=12, random_state=0)),
    "linear nystroem": Nystroem("linear", n_components=3, random_state=0),
    "sampler": make_pipeline(StandardScaler(), RBFSampler(n_components=20, random_state=0)),
    "two kernels": make_pipeline(
        EvidenceFeatures(n_components=8, random_state=0), Nystroem(n_components=20, random_state=0)
    ),
    "passthrough": make_pipeline("passthrough", StandardScaler()),
    "imputer": make_pipeline(SimpleImputer(), StandardScaler()),
    "union": FeatureUnion(
        [
            ("a", StandardScaler()),
            ("b", EvidenceFeatures(random_state=0)),
            ("c", FunctionTransformer()),
        ],
        transformer_weights={"b": 0.5},
    ),
    "columns": ColumnTransformer(
        [("a", PolynomialFeatures(2), [2, 0]), ("b", "drop", [1])], remainder="passthrough"
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_gradients_agree_with_differences(name):
    feature_map = fit_feature_map(MAPS[name], X, Y, None)
    rows = X[:5] + 0.01
    # Far beyond the training rows, where some maps stand still.
    rows[0, 1] += 10.0 * np.ptp(X[:, 1])
    m = map_features(feature_map, rows).shape[1]
    weights = np.random.default_rng(1).normal(size=(2, m))
    assert has_gradient(feature_map, rows, m)
    gradients = pull_back(feature_map, rows, weights)
    expected = central_differences(
        lambda inputs: map_features(feature_map, inputs) @ weights.T, rows
    )
    np.testing.assert_allclose(gradients, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


def test_columns_of_a_frame_are_found_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    feature_map = ColumnTransformer(
        [("one", StandardScaler(), ["c"]), ("two", "passthrough", ["a"])]
    )
    feature_map.fit(frame)
    gradients = pull_back(feature_map, frame[:2], np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(gradients[0, 0], [2.0, 0.0, 1.0 / X[:, 2].std()])


def test_sparse_rows_have_the_gradients_of_dense_ones():
    weights = np.ones((1, 5))
    dense, sparse = (
        Nystroem(n_components=5, random_state=0).fit(rows) for rows in (X, csr_array(X))
    )
    np.testing.assert_allclose(
        pull_back(sparse, csr_array(X), weights), pull_back(dense, X, weights)
    )


def test_imputed_values_have_no_slope():
    missing = X.copy()
    missing[0, 1] = np.nan
    imputer = SimpleImputer(strategy="median").fit(missing)
    np.testing.assert_array_equal(
        pull_back(imputer, missing[:2], np.ones((1, 3)))[:, 0, 1], [0.0, 1.0]
    )


@pytest.mark.parametrize(
    "feature_map",
    [
        ForestFeatures(n_estimators=2),
        MinMaxScaler(clip=True),
        FunctionTransformer(np.abs),
        Nystroem("sigmoid", n_components=9),
        EvidenceFeatures(RBF() + Matern(nu=0.5)),
        SimpleImputer(add_indicator=True),
        OneHotEncoder(),
        FeatureUnion([("a", StandardScaler()), ("b", ForestFeatures(n_estimators=2))]),
    ],
    ids=lambda feature_map: type(feature_map).__name__,
)
def test_maps_without_gradients(feature_map):
    rows = X.copy()
    if isinstance(feature_map, SimpleImputer):
        rows[::7] = np.nan
    fitted = fit_feature_map(feature_map, rows, Y, None)
    m = np.shape(fitted.transform(rows))[1]
    assert not has_gradient(fitted, rows, m)
    with pytest.raises(NoGradientError):
        pull_back(fitted, rows, np.ones((1, m)))
