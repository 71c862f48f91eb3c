import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import PowerTransformer

from entangled_kernels.conditioning.back_transform import (
    covariance_through,
    domain_ends,
    lognormal_covariance,
    lognormal_moments,
    moments_through,
)

from reference import back_transform as reference

# Each target by its own function.
FUNCTIONS = (np.exp, np.sinh, lambda z: z, lambda z: z**3 + z)


def by_column(Z):
    return np.stack([function(column) for function, column in zip(FUNCTIONS, Z.T, strict=True)], axis=1)


def random_laws(seed, n=3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 4, 6)) * 0.25
    return rng.normal(size=(n, 4)), A @ A.transpose(0, 2, 1)


def stds(covariance):
    return np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))


@pytest.mark.parametrize("seed", range(3))
def test_quadrature_is_the_sum_over_a_fine_grid(seed):
    mean, covariance = random_laws(seed)
    std = stds(covariance)
    centre, spread = moments_through(by_column, mean, std)
    found = covariance_through(by_column, mean, covariance)
    for row in range(len(mean)):
        for o, function in enumerate(FUNCTIONS):
            expected = reference.moments(function, mean[row, o], std[row, o])
            np.testing.assert_allclose((centre[row, o], spread[row, o]), expected, rtol=1e-8)
    pairs = [(0, 1), (1, 3), (0, 2)]
    for a, b in pairs:
        places = np.ix_([a, b], [a, b])
        expected = reference.covariance(FUNCTIONS[a], FUNCTIONS[b], mean[0, [a, b]], covariance[0][places])
        np.testing.assert_allclose(found[0, a, b], expected, rtol=1e-7, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_covariances_are_symmetric_positive_and_agree_with_deviations(seed):
    mean, covariance = random_laws(seed)
    found = covariance_through(by_column, mean, covariance)
    np.testing.assert_allclose(found, found.transpose(0, 2, 1))
    np.testing.assert_allclose(stds(found), moments_through(by_column, mean, stds(covariance))[1], rtol=1e-9)
    assert np.linalg.eigvalsh(found).min() > -1e-9 * found.max()
    # Straight functions leave laws as they are.
    slope = np.array([1.0, -2.0, 0.5, 3.0])
    straight = covariance_through(lambda Z: slope * Z + 1.0, mean, covariance)
    np.testing.assert_allclose(straight, slope[:, None] * covariance * slope, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_lognormal_laws_are_those_of_the_quadrature(seed):
    mean, covariance = random_laws(seed)
    std, logged = stds(covariance), np.array([True, True, False, True])

    def inverse(Z):
        return np.where(logged, np.exp(Z), Z)

    centre, spread = lognormal_moments(mean, std**2)
    expected = moments_through(inverse, mean, std)
    np.testing.assert_allclose(centre[:, logged], expected[0][:, logged], rtol=1e-8)
    np.testing.assert_allclose(spread[:, logged], expected[1][:, logged], rtol=1e-6)
    found = lognormal_covariance(mean, covariance, logged)
    np.testing.assert_allclose(found, covariance_through(inverse, mean, covariance), rtol=1e-6, atol=1e-9)


def test_what_is_known_stays_so():
    mean, std = np.array([[1.0, 2.0, 3.0, 0.5]]), np.array([[0.0, 0.3, 0.0, 0.1]])
    centre, spread = moments_through(by_column, mean, std)
    np.testing.assert_array_equal(spread[0, [0, 2]], 0.0)
    np.testing.assert_array_equal(centre[0, [0, 2]], [np.e, 3.0])
    found = covariance_through(by_column, mean, np.diag(std[0] ** 2)[None])
    np.testing.assert_array_equal(found[0, 0], 0.0)
    assert lognormal_moments(np.zeros(1), np.zeros(1))[1] == 0.0


def test_a_wide_law_of_logarithms():
    """Where the quadrature would miss what lies far out."""
    mean, std = np.zeros((1, 1)), np.full((1, 1), 6.0)
    centre, spread = lognormal_moments(mean, std**2)
    np.testing.assert_allclose(centre, np.exp(18.0))
    np.testing.assert_allclose(spread, np.exp(36.0), rtol=1e-6)
    assert moments_through(np.exp, mean, std)[1] < 0.5 * spread


@pytest.mark.filterwarnings("ignore")
def test_inverses_that_end_are_followed_to_their_end():
    rng = np.random.default_rng(0)
    Y = np.column_stack(
        [np.exp(1.5 * rng.normal(size=80)), rng.normal(size=80), -np.exp(rng.normal(size=80))]
    )
    transformer = PowerTransformer().fit(Y)
    Z = transformer.transform(Y)
    lower, upper = domain_ends(transformer.inverse_transform, Z, Y)
    # A skewed target has a pole on the side of its tail.
    assert np.isfinite(upper[0])
    assert upper[0] > Z[:, 0].max()
    assert np.isfinite(lower[2])
    assert lower[2] < Z[:, 2].min()
    ends = transformer.inverse_transform(np.where(np.isfinite(upper), upper, 0.0)[None])
    np.testing.assert_allclose(ends[0, 0], 2 * Y[:, 0].max() - Y[:, 0].min(), rtol=1e-6)
    np.testing.assert_array_equal(domain_ends(np.exp, np.log(-Y[:, 2:]), -Y[:, 2:]), [[-np.inf], [np.inf]])
    # The square of a root is not defined below zero, where it ends at once.
    edge = domain_ends(lambda Z: np.where(Z < 0.0, np.nan, Z**2), np.sqrt(-Y[:, 2:]), -Y[:, 2:])
    np.testing.assert_allclose(edge, [[0.0], [np.inf]], atol=1e-12)
