import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from entangled_kernels.features.evidence import tune_kernel


def kernel():
    return ConstantKernel(0.5) * RBF(2.0) + ConstantKernel(0.2) * DotProduct(0.0, "fixed")


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(30, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], X.sum(axis=1)])
    Y = Y + 0.2 * rng.normal(size=Y.shape)
    return X, Y - Y.mean(axis=0)


def test_agrees_with_gaussian_process_regression(rows):
    X, Y = rows
    tuned = tune_kernel(kernel(), X, Y)
    process = GaussianProcessRegressor(kernel() + WhiteKernel(0.1, (1e-6, 1e2)))
    process.fit(X, Y)
    assert tuned.log_likelihood * 3 == pytest.approx(
        process.log_marginal_likelihood_value_, rel=1e-4
    )
    assert tuned.noise == pytest.approx(process.kernel_.k2.noise_level, rel=0.02)
    at_tuned = process.log_marginal_likelihood(np.append(tuned.kernel.theta, np.log(tuned.noise)))
    assert tuned.log_likelihood * 3 == pytest.approx(at_tuned, rel=1e-9)


def test_no_neighbour_is_better(rows):
    X, Y = rows
    tuned = tune_kernel(kernel(), X, Y)
    process = GaussianProcessRegressor(kernel() + WhiteKernel(), optimizer=None).fit(X, Y)
    theta = np.append(tuned.kernel.theta, np.log(tuned.noise))
    for i in range(len(theta)):
        for step in (-0.05, 0.05):
            other = theta.copy()
            other[i] += step
            assert process.log_marginal_likelihood(other) <= 3 * tuned.log_likelihood + 1e-6


def test_outputs_count_through_their_gram_matrix(rows, rng):
    """Many outputs are no more work than few: only Y Y^T / p matters."""
    X, Y = rows
    rotation = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    wide = tune_kernel(kernel(), X, Y @ rotation.T * np.sqrt(50 / 3))
    np.testing.assert_allclose(
        wide.kernel.theta, tune_kernel(kernel(), X, Y).kernel.theta, atol=2e-3
    )


def test_bounds_are_kept(rows):
    X, Y = rows
    start = ConstantKernel(0.5, (0.4, 0.6)) * RBF(5.0, (4.0, 6.0))
    tuned = tune_kernel(start, X, Y * 1e4)
    assert 0.4 - 1e-9 <= tuned.kernel.k1.constant_value <= 0.6 + 1e-9
    assert tuned.noise <= 100.0 + 1e-9
