import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.preprocessing import FunctionTransformer

from entangled_kernels.kernels import ExponentialDot, FeatureKernel, MatrixKernel, scalar
from entangled_kernels.kernels.scalar import (
    feature_rows,
    is_guaranteed_psd,
    scalar_diagonal,
    scalar_gram,
)
from kernels.draws import random_psd

rng = np.random.default_rng(0)
X, Z = rng.uniform(size=(7, 3)), rng.uniform(size=(5, 3))


def inverse_distance(x, z):
    return float(1 / (1 + ((x - z) ** 2).sum()))


# Each with the value for one pair of points, by its definition.
KERNELS = {
    "linear": ("linear", {}, lambda x, z: x @ z),
    "rbf": ("rbf", {"gamma": 0.5}, lambda x, z: np.exp(-0.5 * ((x - z) ** 2).sum())),
    "laplacian": ("laplacian", {"gamma": 0.5}, lambda x, z: np.exp(-0.5 * np.abs(x - z).sum())),
    "poly": ("poly", {"degree": 2, "gamma": 1.0, "coef0": 3.0}, lambda x, z: (x @ z + 3.0) ** 2),
    "gaussian process": (
        RBF(2.0) + DotProduct(0.5),
        {},
        lambda x, z: np.exp(-((x - z) ** 2).sum() / 8) + x @ z + 0.25,
    ),
    "function of rows": (inverse_distance, {}, inverse_distance),
    "exponential": (ExponentialDot(), {}, lambda x, z: np.exp(x @ z)),
    "features": (
        FeatureKernel(FunctionTransformer(np.square), np.diag([1.0, 2.0, 0.0])),
        {},
        lambda x, z: (x[0] * z[0]) ** 2 + 2 * (x[1] * z[1]) ** 2,
    ),
}
every_kernel = pytest.mark.parametrize(
    ("kernel", "params", "value"),
    KERNELS.values(),
    ids=[name.replace(" ", "_") for name in KERNELS],
)


@every_kernel
def test_gram_matrix_holds_the_value_of_each_pair(kernel, params, value):
    expected = [[value(x, z) for z in Z] for x in X]
    np.testing.assert_allclose(scalar_gram(kernel, X, Z, params), expected)
    np.testing.assert_allclose(
        scalar_gram(kernel, X, None, params), scalar_gram(kernel, X, X, params)
    )


@every_kernel
@pytest.mark.parametrize("chunk", [2, 256])
def test_diagonal_is_that_of_the_gram_matrix(kernel, params, value, chunk, monkeypatch):
    monkeypatch.setattr(scalar, "DIAGONAL_CHUNK", chunk)
    np.testing.assert_allclose(scalar_diagonal(kernel, X, params), [value(x, x) for x in X])


def test_noise_is_on_the_diagonal_of_one_sample_only():
    kernel = RBF(1.0) + WhiteKernel(0.5)
    noise = scalar_gram(kernel, X, None, {}) - scalar_gram(kernel, X, X, {})
    np.testing.assert_allclose(noise, 0.5 * np.eye(7), atol=1e-12)
    np.testing.assert_allclose(scalar_diagonal(kernel, X, {}), 1.5)


@pytest.mark.parametrize("name", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_a_promised_kernel_is_psd(name):
    eigenvalues = np.linalg.eigvalsh(scalar_gram(name, X, None, {}))
    if is_guaranteed_psd(name, {}):
        assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    assert is_guaranteed_psd(name, {}) == (name not in ("sigmoid", "additive_chi2"))


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        ("rbf", {"gamma": -0.5}),
        ("laplacian", {"gamma": -0.5}),
        ("poly", {"degree": 2.5}),
        ("poly", {"degree": 2, "coef0": -0.2}),
        ("polynomial", {"gamma": -0.5}),
        (inverse_distance, {}),
        (MatrixKernel(), {}),
        ("poly", {"degree": -1}),
        (DotProduct(2.0) ** 0.5, {}),
        (RBF() + DotProduct(2.0) ** 0.5, {}),
    ],
)
def test_nothing_is_promised_of_other_parameters_and_functions(kernel, params):
    assert not is_guaranteed_psd(kernel, params)
    assert is_guaranteed_psd(RBF() * DotProduct(2.0) ** 2, {})


def test_factors_of_a_feature_kernel_give_its_gram_matrix():
    metric = random_psd(np.random.default_rng(0), 3, 2)
    kernel = FeatureKernel(None, metric)
    left, right = kernel.factors(X, Z)
    np.testing.assert_allclose(left @ right.T, X @ metric @ Z.T, atol=1e-12)
    np.testing.assert_allclose(kernel.gram(X, Z), X @ metric @ Z.T, atol=1e-12)
    one, same = kernel.factors(X, None)
    assert one is same


def test_rows_of_features_are_dense_numbers():
    np.testing.assert_array_equal(feature_rows(None, X), X)
    sparse = FunctionTransformer(csr_array)
    np.testing.assert_array_equal(feature_rows(sparse, X), X)
    assert feature_rows(None, np.ones((2, 2), dtype=int)).dtype == np.float64
