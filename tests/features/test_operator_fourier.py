import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import OperatorFourierFeatures
from entangled_kernels.kernels import (
    CurlFreeKernel,
    DivergenceFreeKernel,
    SeparableKernel,
    TransformableKernel,
)

T = np.array([[2.0, 0.5], [0.5, 1.0]])
MAPS = [np.array([[1.0, 0.0, 0.5]]), np.array([[0.0, 1.0, 0.0]])]
CASES = {
    "decomposable": ({"output_kernel": T}, SeparableKernel("rbf", T, gamma=0.3)),
    "curl_free": ({}, CurlFreeKernel(3, gamma=0.3)),
    "divergence_free": ({}, DivergenceFreeKernel(3, gamma=0.3)),
    "transformable": ({"maps": MAPS}, TransformableKernel("rbf", MAPS, gamma=0.3)),
}
EACH = pytest.mark.parametrize("kind", CASES)


@parametrize_with_checks(
    [
        OperatorFourierFeatures(n_frequencies=5, random_state=0),
        OperatorFourierFeatures("transformable", n_frequencies=5, random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def make(kind, n_frequencies, seed=0):
    settings, _ = CASES[kind]
    return OperatorFourierFeatures(
        kind, gamma=0.3, n_frequencies=n_frequencies, random_state=seed, **settings
    )


@EACH
def test_the_error_falls_with_the_root_of_the_number(kind, rng):
    """Slope of the mean error of the Gram matrix in log-log scale: -0.5 within 0.1."""
    X = rng.normal(size=(6, 3))
    exact = CASES[kind][1].blocks(X)
    numbers, errors = np.array([50, 200, 800, 3200]), []
    for number in numbers:
        error = []
        for seed in range(20):
            Phi = make(kind, number, seed).fit(X).operator_features(X)
            error.append(np.mean(np.abs(np.einsum("npk,tqk->ntpq", Phi, Phi) - exact)))
        errors.append(np.mean(error))
    slope = np.polyfit(np.log(numbers), np.log(errors), 1)[0]
    assert -0.6 <= slope <= -0.4
    assert errors[-1] < 0.05 * np.abs(exact).max()


@EACH
def test_ridge_from_moments_is_ridge_with_the_features(kind, rng):
    """The dense normal equations in all weights, from the operator features of every row."""
    X = rng.normal(size=(15, 3))
    features = make(kind, 4).fit(X)
    p = features.n_outputs_
    Y = rng.normal(size=(15, p))
    Phi = features.operator_features(X)  # (n, p, D)
    A = Phi.reshape(15 * p, -1)
    w = np.linalg.solve(A.T @ A + 0.3 * np.eye(A.shape[1]), A.T @ Y.reshape(-1))
    Z = features.transform(X)
    W = features.solve(Z.T @ Z, Z.T @ Y, 0.3)
    np.testing.assert_allclose(Z @ W, (A @ w).reshape(15, p), atol=1e-10)


def test_shapes_and_defaults(rng):
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    features = OperatorFourierFeatures(n_frequencies=7, random_state=0).fit(X, Y)
    assert features.transform(X).shape == (8, 14)
    assert features.operator_features(X).shape == (8, 2, 28)
    assert features.gamma_ == pytest.approx(1 / 3)
    field = OperatorFourierFeatures("divergence_free", n_frequencies=7, random_state=0).fit(X)
    assert field.operator_features(X).shape == (8, 3, 28)
    coordinates = OperatorFourierFeatures("transformable", n_frequencies=7, random_state=0).fit(X)
    assert coordinates.operator_features(X).shape == (8, 3, 14)
    assert coordinates.transform(X).shape == (8, 42)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "curl"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be a positive number"),
        ({"n_frequencies": 0}, "n_frequencies must be a whole number of at least 1"),
        (
            {"kernel": "transformable", "maps": [np.eye(2)]},
            r"with 3 columns as X has, got \[\(2, 2\)\]",
        ),
        ({"output_kernel": -np.eye(2)}, "output_kernel"),
    ],
)
def test_bad_parameters(settings, message, rng):
    with pytest.raises(ValueError, match=message):
        OperatorFourierFeatures(**settings).fit(rng.normal(size=(5, 3)))


def test_a_line_has_no_field_without_divergence(rng):
    with pytest.raises(
        ValueError, match="kernel='divergence_free' needs at least 2 columns, got 1"
    ):
        OperatorFourierFeatures("divergence_free").fit(rng.normal(size=(5, 1)))
