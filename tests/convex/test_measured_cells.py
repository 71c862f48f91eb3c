"""Blanks are filled in until the duality gap over measured cells is closed."""

from types import SimpleNamespace

import numpy as np
import pytest

from entangled_kernels.convex import Schatten
from entangled_kernels.convex.measured_cells import fill_blanks, shrunk_conjugate

ALPHA = 0.3


def make_cells(rng, n=12, p=3, weighted=False):
    A = rng.normal(size=(n, n))
    weights = (rng.random((n, p)) < 0.6).astype(float)
    weights[weights.max(axis=1) == 0.0] = 1.0
    if weighted:
        weights *= rng.uniform(0.5, 2.0, size=(n, p))
    return A @ A.T / n, rng.normal(size=(n, p)), weights


def ridge(K, weights, n_solved):
    """Ridge regression with row weights, of complete targets, without an intercept."""
    v = weights.max(axis=1)

    def solve(Z, last):
        n_solved.append(last)
        C = np.linalg.solve(K + ALPHA * np.diag(1.0 / v), Z)
        return SimpleNamespace(C=C, value=0.5 * np.vdot(C, Z))

    return solve


def measured_ridge(K, Y, weights):
    """Every target from its own cells."""
    C = np.zeros_like(Y)
    for o, w in enumerate(weights.T):
        own = np.flatnonzero(w)
        C[own, o] = np.linalg.solve(K[np.ix_(own, own)] + ALPHA * np.diag(1.0 / w[own]), Y[own, o])
    return C, 0.5 * np.vdot(C, Y)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_minimum_over_measured_cells(rng, weighted):
    K, Y, weights = make_cells(rng, weighted=weighted)
    solved = []
    found = fill_blanks(
        ridge(K, weights, solved),
        Y,
        weights,
        ALPHA,
        centred=False,
        conjugate=lambda C: (1.0, 0.5 * np.vdot(C, K @ C)),
        tol=1e-7,
    )
    C, value = measured_ridge(K, Y, weights)
    np.testing.assert_allclose(found.result.C, C, atol=1e-6)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert found.converged
    assert found.reason == "tolerance"
    assert found.gap <= 1e-14 * found.value
    assert found.n_iter == len(found.history) == len(solved)
    assert (np.diff(found.history) <= 0).all()
    # Each complete problem is given the result of the one before.
    assert solved[0] is None
    assert all(last is not None for last in solved[1:])


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_the_gap_bounds_the_error_of_any_step(rng, steps):
    K, Y, weights = make_cells(rng, weighted=True)
    solve = ridge(K, weights, [])
    found = fill_blanks(
        solve,
        Y,
        weights,
        ALPHA,
        centred=False,
        conjugate=lambda C: (1.0, 0.5 * np.vdot(C, K @ C)),
        max_iter=steps,
        tol=1e-9,
    )
    error = found.value - measured_ridge(K, Y, weights)[1]
    assert 0.0 < error <= found.gap
    assert found.reason == "max_iter"
    assert not found.converged


def test_what_blanks_hold_does_not_matter(rng):
    K, Y, weights = make_cells(rng)
    spoilt = np.where(weights > 0, Y, np.nan)
    left, right = (
        fill_blanks(ridge(K, weights, []), table, weights, ALPHA, centred=False, by_slope=True)
        for table in (Y, spoilt)
    )
    np.testing.assert_array_equal(left.result.C, right.result.C)
    assert np.isnan(left.gap)
    assert left.converged


def test_shrunk_conjugate_is_finite():
    S = np.diag([4.0, 0.25])[None]
    assert shrunk_conjugate(Schatten(1.0), S) == (0.5, 0.0)
    assert shrunk_conjugate(Schatten(2.0), S) == (1.0, Schatten(2.0).conjugate(S))
