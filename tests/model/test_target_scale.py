"""Scales of targets: there and back, and what normal laws become in units of the targets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from entangled_kernels.model.target_scale import (
    LogScale,
    TransformerScale,
    check_target_transform,
    fit_target_scale,
    needs_rows,
)

from reference import back_transform as reference

SEEDS = st.integers(0, 10**6)
# Each target by its own function.
FUNCTIONS = (np.exp, np.sinh, lambda z: z, lambda z: z**3 + z)


class Inverse:
    """A transformer of which only the inverse is used."""

    def __init__(self, inverse):
        self.inverse_transform = inverse


def scale_of(inverse, p=4):
    return TransformerScale(Inverse(inverse), np.full(p, -np.inf), np.full(p, np.inf))


def by_column(Z):
    return np.stack(
        [function(column) for function, column in zip(FUNCTIONS, Z.T, strict=True)], axis=1
    )


def random_laws(seed, n=3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 4, 6)) * 0.25
    return rng.normal(size=(n, 4)), A @ A.transpose(0, 2, 1)


def stds(covariance):
    return np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))


@pytest.mark.parametrize("seed", range(3))
def test_quadrature_is_the_sum_over_a_fine_grid(seed):
    mean, covariance = random_laws(seed)
    std, scale = stds(covariance), scale_of(by_column)
    centre, spread = scale.moments(mean, std)
    found = scale.covariance(mean, covariance)
    for row in range(len(mean)):
        for o, function in enumerate(FUNCTIONS):
            expected = reference.moments(function, mean[row, o], std[row, o])
            np.testing.assert_allclose((centre[row, o], spread[row, o]), expected, rtol=1e-8)
    for a, b in [(0, 1), (1, 3), (0, 2)]:
        places = np.ix_([a, b], [a, b])
        expected = reference.covariance(
            FUNCTIONS[a], FUNCTIONS[b], mean[0, [a, b]], covariance[0][places]
        )
        np.testing.assert_allclose(found[0, a, b], expected, rtol=1e-7, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_covariances_are_symmetric_positive_and_agree_with_deviations(seed):
    mean, covariance = random_laws(seed)
    scale = scale_of(by_column)
    found = scale.covariance(mean, covariance)
    np.testing.assert_allclose(found, found.transpose(0, 2, 1))
    np.testing.assert_allclose(stds(found), scale.moments(mean, stds(covariance))[1], rtol=1e-9)
    assert np.linalg.eigvalsh(found).min() > -1e-9 * found.max()
    # Straight functions leave laws as they are.
    slope = np.array([1.0, -2.0, 0.5, 3.0])
    straight = scale_of(lambda Z: slope * Z + 1.0).covariance(mean, covariance)
    np.testing.assert_allclose(straight, slope[:, None] * covariance * slope, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_laws_of_logarithms_are_those_of_the_quadrature(seed):
    mean, covariance = random_laws(seed)
    logs, logged = (
        LogScale(("log", "log", "", "log"), tuple("abcd")),
        np.array([True, True, False, True]),
    )
    scale, std = scale_of(lambda Z: np.where(logged, np.exp(Z), Z)), stds(covariance)
    for found, expected in zip(logs.moments(mean, std), scale.moments(mean, std), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(
        logs.covariance(mean, covariance), scale.covariance(mean, covariance), rtol=1e-6, atol=1e-9
    )


def test_a_value_without_spread_is_known():
    mean, std = np.array([[1.0, 2.0, 3.0, 0.5]]), np.array([[0.0, 0.3, 0.0, 0.1]])
    scale = scale_of(by_column)
    centre, spread = scale.moments(mean, std)
    np.testing.assert_array_equal(spread[0, [0, 2]], 0.0)
    np.testing.assert_array_equal(centre[0, [0, 2]], [np.e, 3.0])
    np.testing.assert_array_equal(scale.covariance(mean, np.diag(std[0] ** 2)[None])[0, 0], 0.0)
    assert LogScale(("log",), ("a",)).moments(np.zeros((1, 1)), np.zeros((1, 1)))[1] == 0.0


def test_a_wide_law_of_logarithms():
    """Where the quadrature would miss what lies far out."""
    centre, spread = LogScale(("log",), ("a",)).moments(np.zeros((1, 1)), np.full((1, 1), 6.0))
    np.testing.assert_allclose(centre, np.exp(18.0))
    np.testing.assert_allclose(spread, np.exp(36.0), rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.lists(st.sampled_from(["log", "log1p", ""]), min_size=1, max_size=4))
def test_logarithms_and_back(seed, kinds):
    rng = np.random.default_rng(seed)
    Y = np.exp(3.0 * rng.normal(size=(5, len(kinds))))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    scale = LogScale(tuple(kinds), tuple(map(str, range(len(kinds)))))
    Z = scale.transform(Y)
    np.testing.assert_array_equal(np.isnan(Z), np.isnan(Y))
    np.testing.assert_allclose(scale.inverse_transform(Z), Y, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_inverses_that_end_are_followed_to_their_end(rng):
    Y = np.column_stack(
        [np.exp(1.5 * rng.normal(size=80)), rng.normal(size=80), -np.exp(rng.normal(size=80))]
    )
    scale = fit_target_scale(PowerTransformer(), Y, None, list("abc"))
    Z = scale.transform(Y)
    # A skewed target has a pole on the side of its tail.
    assert Z[:, 0].max() < scale.high[0] < np.inf
    assert -np.inf < scale.low[2] < Z[:, 2].min()
    ends = scale.inverse_transform(np.full((1, 3), 1e9))
    np.testing.assert_allclose(ends[0, 0], 2 * Y[:, 0].max() - Y[:, 0].min(), rtol=1e-6)
    positive = -Y[:, 2:]
    log = FunctionTransformer(np.log, inverse_func=np.exp, check_inverse=False)
    scale = fit_target_scale(log, positive, None, ["a"])
    np.testing.assert_array_equal([scale.low, scale.high], [[-np.inf], [np.inf]])
    # The square of a root is not defined below zero, where it ends at once.
    root = FunctionTransformer(
        np.sqrt, inverse_func=lambda Z: np.where(Z < 0.0, np.nan, Z**2), check_inverse=False
    )
    np.testing.assert_allclose(fit_target_scale(root, positive, None, ["a"]).low, 0.0, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), SEEDS)
def test_one_pair_of_mixed_columns_is_refused(p, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.permutation(p)[:2]
    M = np.eye(p)
    M[a, b] = 0.1
    mixing = FunctionTransformer(
        lambda Y: Y @ np.linalg.inv(M), inverse_func=lambda Z: Z @ M, check_inverse=False
    )
    Y, names = rng.normal(size=(6, p)), list(map(str, range(p)))
    with pytest.raises(ValueError, match="target_transform=FunctionTransformer mixes the targets"):
        fit_target_scale(mixing, Y, None, names)
    scale = fit_target_scale(StandardScaler(), Y, None, names)
    np.testing.assert_allclose(scale.inverse_transform(scale.transform(Y)), Y)


def test_what_can_be_a_target_transform():
    Y = np.random.default_rng(0).normal(size=(9, 2))
    fitted = make_pipeline(StandardScaler()).fit(Y)
    assert not any(map(needs_rows, (None, "log", {"a": "log"}, fitted)))
    assert needs_rows(StandardScaler())
    check_target_transform(make_pipeline(StandardScaler(), PCA(1)))
    with pytest.raises(ValueError, match="got Nystroem"):
        check_target_transform(Nystroem())
