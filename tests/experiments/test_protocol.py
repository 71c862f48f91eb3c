"""Errors, partitions and features."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from entangled_kernels.experiments.protocol import (
    fit_features,
    improvement,
    nmse,
    partitions,
)


def test_errors(rng):
    Y = rng.normal(size=(30, 3)) * [1.0, 10.0, 0.1]
    assert nmse(Y, np.tile(Y.mean(axis=0), (30, 1))) == pytest.approx(1.0)
    half = Y.mean(axis=0) + 0.5 * (Y - Y.mean(axis=0))
    assert nmse(Y, half) == pytest.approx(0.25)
    # A constant output says nothing.
    assert nmse(
        np.column_stack([Y, np.ones(30)]), np.column_stack([half, np.zeros(30)])
    ) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="all outputs are constant"):
        nmse(np.ones((3, 2)), np.ones((3, 2)))
    assert improvement(0.25, 1.0) == pytest.approx(1.5)
    assert improvement(1.0, 0.25) == pytest.approx(-1.5)


def test_partitions_are_disjoint_and_repeatable():
    first = list(partitions(20, 8, 3, seed=5))
    again = list(partitions(20, 8, 3, seed=5))
    for number, (partition, same) in enumerate(zip(first, again, strict=True)):
        assert partition.number == number
        assert len(partition.train) == 8
        assert sorted([*partition.train, *partition.test]) == list(range(20))
        np.testing.assert_array_equal(partition.train, same.train)
        assert partition.seed == same.seed
    assert not np.array_equal(first[0].train, first[1].train)
    assert not np.array_equal(first[0].train, next(partitions(20, 8, 3, seed=6)).train)


def test_rbf_features_give_the_kernel_of_median_width(rng):
    X, X_test = rng.normal(size=(15, 3)), rng.normal(size=(4, 3))
    Phi, Phi_test = fit_features("rbf", X, X_test, 0)
    distances = [np.sum((X[i] - X[j]) ** 2) for i in range(15) for j in range(i)]
    np.testing.assert_allclose(
        Phi_test @ Phi.T, rbf_kernel(X_test, X, 1 / np.median(distances)), atol=1e-8
    )
    assert fit_features("fourier", X, X_test, 0)[1].shape == (4, 300)
    assert fit_features(PolynomialFeatures(2), X, X_test, 0)[0].shape == (15, 10)
