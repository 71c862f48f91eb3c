"""Autoregression: windows, additive and Hadamard kernels."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.convex import (
    HadamardModel,
    KernelPart,
    OutputPenalty,
    lag_windows,
    learn_additive,
    learn_diagonal,
    learn_hadamard,
    reduce_problem,
)
from entangled_kernels.convex.autoregression import pivoted_features

from reference import convex
from reference.autoregression import differences, proximal_alternation
from reference.autoregression import hadamard_gram as dense_gram


def test_windows_hold_the_last_steps(rng):
    x = rng.normal(size=(9, 2))
    for lags in (1, 3):
        windows = lag_windows(x, lags)
        assert windows.shape == (10 - lags, 2, lags)
        for i, window in enumerate(windows):
            for k in range(lags):
                np.testing.assert_array_equal(window[:, k], x[i + lags - 1 - k])


def test_it_is_the_diagonal_model(rng):
    windows, Y = rng.normal(size=(20, 3, 2)), rng.normal(size=(20, 3))
    model, result = learn_additive(windows, Y, 0.5, gamma=0.3, norm=1.0, max_iter=1000, tol=1e-3)
    grams = [rbf_kernel(windows[:, j], gamma=0.3) for j in range(3)]
    problem = reduce_problem([KernelPart(K) for K in grams], Y, centred=True, normalized=True)
    expected = learn_diagonal(problem, 0.5)
    np.testing.assert_allclose(result.weights, expected.weights)
    fit = sum(K @ result.C @ T / s for K, T, s in zip(grams, result.T, problem.scales, strict=True))
    np.testing.assert_allclose(model.predict(windows), fit + result.intercept)
    np.testing.assert_allclose(Y - model.predict(windows), 0.5 * result.C, atol=1e-10)


def test_additive_jacobian_against_differences(rng):
    x = rng.normal(size=(25, 3))
    windows = lag_windows(x, 2)[:-1]
    model, _ = learn_additive(windows, x[2:], 0.3, gamma=0.4, norm=2.0, max_iter=1000, tol=1e-3)
    J = model.jacobian(windows[:5])
    np.testing.assert_allclose(
        J, differences(model.predict, windows[:5]), atol=1e-7 * np.abs(J).max() + 1e-9
    )


@pytest.fixture
def case(rng):
    return rng.normal(size=(8, 3, 2)), rng.normal(size=(8, 3)), rng.normal(size=(3, 4))


SMOOTH = [
    ("frobenius", {}),
    ("entrywise", {"exponent": 4 / 3}),
    ("schatten", {"exponent": 4 / 3}),
    ("elastic", {"l1_ratio": 0.5}),
]


@pytest.mark.parametrize(("name", "settings"), SMOOTH)
def test_random_problems(name, settings, rng):
    """Objective and dual bound from the dense Gram matrix: gap at most 1e-6."""
    for _ in range(10):
        n, p, lags = rng.integers(3, 25), rng.integers(3, 13), rng.integers(1, 3)
        windows, Y = rng.normal(size=(n, p, lags)), rng.normal(size=(n, p))
        alpha, gamma, output_gamma = 10.0 ** rng.uniform([-4, -2, -2], [2, 0, 0])
        penalty = OutputPenalty(name, True, **settings)
        model, result = learn_hadamard(
            windows,
            Y,
            alpha,
            gamma=gamma,
            output_gamma=output_gamma,
            penalty=penalty,
            max_iter=20_000,
        )
        y = (Y - Y.mean(axis=0)).reshape(-1)
        G = dense_gram(windows, model.B, gamma, output_gamma)
        value = convex.ridge(G, y, alpha)[1]
        c = result.witness.reshape(-1)
        # <B, S> = c^T G_B c: the dense Gram matrix of the all-ones matrix has all entries of S.
        ones = dense_gram(windows, np.ones((p, p)), gamma, output_gamma).reshape(n, p, n, p)
        S = np.einsum("ti,tilj,lj->ij", c.reshape(n, p), ones, c.reshape(n, p))
        if name == "elastic":
            support = convex.elastic_support(
                S, convex.value(name, np.eye(p), **settings), **settings
            )
        else:
            support = convex.norm(name, np.eye(p), **settings) * convex.dual_norm(
                name, S, **settings
            )
        bound = c @ y - alpha / 2 * c @ c - 0.5 * support
        assert result.converged, (n, p, lags, alpha)
        assert -1e-7 * value <= value - bound <= 1.1e-6 * value
        assert np.linalg.eigvalsh(model.B)[0] >= -1e-10


def test_predictions_by_definition(case, rng):
    windows, C, factor = case
    B, new = factor @ factor.T, rng.normal(size=(4, 3, 2))
    model = HadamardModel(windows, C, B, np.arange(3.0), 0.1, 0.3)
    expected = dense_gram(new, B, 0.1, 0.3, windows) @ C.reshape(-1)
    np.testing.assert_allclose(model.predict(new), expected.reshape(4, 3) + np.arange(3.0))


@pytest.mark.parametrize("output_gamma", [0.0, 0.3])
def test_jacobian_against_differences(case, output_gamma, rng):
    windows, Y, factor = case
    model = HadamardModel(windows, Y, factor @ factor.T, np.zeros(3), 0.2, output_gamma)
    new = rng.normal(size=(5, 3, 2))
    J = model.jacobian(new)
    np.testing.assert_allclose(J, differences(model.predict, new), atol=1e-7 * np.abs(J).max())


def test_without_the_kernel_between_rows_the_jacobian_is_diagonal(case, rng):
    windows, Y, factor = case
    J = HadamardModel(windows, Y, factor @ factor.T, np.zeros(3), 0.0, 0.3).jacobian(windows)
    off = ~np.eye(3, dtype=bool)
    assert not J[:, off].any()
    assert J[:, ~off].any()


def test_pivoted_features(rng):
    points = rng.normal(size=(60, 2))
    features = pivoted_features(points, 0.3)
    exact = np.exp(-0.3 * np.sum((points[:, None] - points) ** 2, axis=2))
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-9)
    assert features.shape[1] < 60
    np.testing.assert_array_equal(pivoted_features(points, 0.0), np.ones((60, 1)))
    assert pivoted_features(np.zeros((5, 1)), 1.0).shape == (5, 1)


def test_the_published_alternation_reaches_no_lower_objective(case):
    """Gradient steps on B with coefficients solved for: from above to the minimum, and not below."""
    windows, Y, _ = case
    y = Y - Y.mean(axis=0)
    n, p = Y.shape
    ones = dense_gram(windows, np.ones((p, p)), 0.1, 0.3).reshape(n, p, n, p)

    def solve(B):
        G = (ones * B[:, None, :]).reshape(n * p, n * p)
        return convex.ridge(G, y.reshape(-1), 0.4)[0].reshape(n, p)

    def squares(C):
        return np.einsum("ti,tilj,lj->ij", C, ones, C)

    penalty = OutputPenalty("frobenius", True)
    _, ours = learn_hadamard(windows, Y, 0.4, gamma=0.1, output_gamma=0.3, penalty=penalty)
    B, values, _ = proximal_alternation(solve, squares, y, np.sqrt(p), 60)
    assert (np.diff(values) <= 0.0).all()
    assert values[-1] >= ours.value * (1 - 1e-6)
    assert values[-1] <= ours.value * (1 + 1e-3)
    assert np.linalg.norm(B) <= np.sqrt(p) * (1 + 1e-9)
