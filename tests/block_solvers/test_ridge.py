"""Ridge on measured cells against its definition; the estimator's tests run over all solvers and kernels."""

import numpy as np
import pytest

from block_solvers.sample import X
from entangled_kernels.block_solvers import ObservedRidge, factorize_observed, ridge
from kernels.registry import KERNELS, P

from reference import observed as reference

rng = np.random.default_rng(8)
Y = 2.0 + rng.normal(size=(12, P))
HOLES = np.where(rng.uniform(size=(12, P)) < 0.3, np.nan, Y)
HOLES[:, 2] = np.nan
HOLES[4, 2] = 1.0  # measured once
HOLES[:, 0] = Y[:, 0]
CELLS = reference.cell_weights(HOLES, rng.uniform(0.2, 3.0, size=(12, P)))
ROWS = rng.uniform(0.2, 3.0, size=12)
KERNEL = KERNELS["sum of separable"]
Z = rng.normal(size=(4, X.shape[1]))

CASES = {"complete": (Y, None), "rows": (Y, ROWS), "cells": (HOLES, CELLS)}


def make(weights, intercept):
    factor, _ = factorize_observed(KERNEL(X), weights)
    return ObservedRidge(factor, weights, (12, P), intercept)


@pytest.mark.parametrize("chunk", [1, 2**22])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_definition(case, intercept, chunk, monkeypatch):
    monkeypatch.setattr(ridge, "CHUNK_NUMBERS", chunk)
    targets, weights = CASES[case]
    W = reference.cell_weights(targets, weights)
    model = make(weights, intercept)
    for alpha in (0.1, 2.0):
        c, b = reference.fit(KERNEL, X, targets, W, alpha, intercept)
        ours = model.coefficients(targets, alpha)
        np.testing.assert_allclose(ours[0], c, atol=1e-9)
        np.testing.assert_allclose(ours[1], b, atol=1e-9)
        np.testing.assert_array_equal(model.intercepts(targets, alpha), ours[1])
        cross = KERNEL(X, Z).to_dense().reshape(12, P, -1)
        prior = np.einsum("ioo->io", KERNEL.diag(Z))
        variance = prior - model.variance_reduction(cross, alpha)
        np.testing.assert_allclose(
            np.sqrt(variance), reference.std(KERNEL, X, W, Z, alpha, intercept), atol=1e-9
        )
        expected = reference.loo_residuals(KERNEL, X, targets, W, alpha, intercept)
        np.testing.assert_allclose(model.loo_residuals(targets, alpha), expected, atol=1e-9)


def test_coefficients_of_an_output_sum_to_zero_with_an_intercept():
    c, _ = make(CELLS, True).coefficients(HOLES, 0.3)
    np.testing.assert_allclose(c.sum(axis=0), 0.0, atol=1e-10)
    np.testing.assert_array_equal(c[CELLS == 0], 0.0)


def test_a_constant_added_to_a_target_moves_its_intercept_alone():
    model = make(CELLS, True)
    c, b = model.coefficients(HOLES, 0.3)
    moved_c, moved_b = model.coefficients(HOLES + np.array([0.0, 100.0, -7.0]), 0.3)
    np.testing.assert_allclose(moved_c, c, atol=1e-10)
    np.testing.assert_allclose(moved_b - b, [0.0, 100.0, -7.0], atol=1e-10)


def test_a_target_measured_once_is_not_left_out_with_an_intercept():
    residuals = make(CELLS, True).loo_residuals(HOLES, 0.3)
    assert np.isnan(residuals[4, 2])
    assert np.isfinite(residuals[4, 0])
    assert np.isfinite(make(CELLS, False).loo_residuals(HOLES, 0.3)[4, 2])


def test_the_largest_residual_of_all_solves_is_kept():
    factor, _ = factorize_observed(KERNEL(X), CELLS, "cg", max_iter=2)
    model = ObservedRidge(factor, CELLS, (12, P), intercept=True)
    model.coefficients(HOLES, 1e-4)
    assert model.residual >= factor.residual > 1e-10
    assert make(CELLS, True).residual == 0.0
