"""Every registered solver on measured cells, on every registered kernel that it accepts, against dense."""

import numpy as np
import pytest

from block_solvers.sample import R, X
from entangled_kernels.block_solvers import SOLVERS, factorize, factorize_observed, registry
from entangled_kernels.block_solvers.observed import GatheredFactor
from entangled_kernels.linalg import operators
from kernels.registry import INDEFINITE, KERNELS, P

PSD = sorted(set(KERNELS) - INDEFINITE)
PAIRS = [(s, k) for s, solver in SOLVERS.items() for k in PSD if solver.accepts(KERNELS[k](X))]
rng = np.random.default_rng(2)
CELLS = rng.uniform(0.1, 4.0, size=(12, P)) * (rng.uniform(size=(12, P)) > 0.4)
CELLS[:, 0] = 1.0  # every row has a measured cell
ROWS = rng.uniform(0.1, 4.0, size=12)


def dense_system(operator, weights, alpha):
    s = np.sqrt(np.broadcast_to(weights.reshape(12, -1), (12, P))).reshape(-1)
    return s[:, None] * operator.to_dense() * s + alpha * np.eye(12 * P)


@pytest.mark.parametrize("weights", [ROWS, CELLS], ids=["rows", "cells"])
@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_solver_equals_dense(solver, name, weights):
    operator = KERNELS[name](X)
    factor, used = factorize_observed(operator, weights, solver)
    assert used == ("cg" if solver == "kronecker" and weights.ndim == 2 else solver)
    for alpha in (0.1, 1.0, 2.0, 3.0, 5.0, 30.0):  # more alphas than share Cholesky factors
        A = dense_system(operator, weights, alpha)
        expected = np.linalg.solve(A, R.reshape(-1, 2)).reshape(R.shape)
        np.testing.assert_allclose(factor.solve(R, alpha), expected, atol=1e-8 * np.abs(expected).max())
    inverse = np.linalg.inv(dense_system(operator, weights, 0.5)).reshape(12, P, 12, P)
    blocks = np.stack([inverse[i, :, i] for i in range(12)])
    np.testing.assert_allclose(factor.inverse_diagonal_blocks(0.5), blocks, atol=1e-8)


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_no_weights_are_the_solver_itself(solver, name):
    operator = KERNELS[name](X)
    ours, used = factorize_observed(operator, None, solver)
    theirs, _ = factorize(operator, solver)
    assert used == solver
    np.testing.assert_array_equal(ours.solve(R, 0.7), theirs.solve(R, 0.7))


@pytest.mark.parametrize("weights", [ROWS, CELLS], ids=["rows", "cells"])
@pytest.mark.parametrize("name", KERNELS)
def test_krein_solves_the_stabilised_problem(name, weights):
    """The normal equations of min ||y - A z||^2 + alpha z^T |A| z, A = S G S."""
    operator = KERNELS[name](X)
    factor, used = factorize_observed(operator, weights, krein=True)
    A = dense_system(operator, weights, 0.0)
    s, E = np.linalg.eigh(A)
    y = np.where(np.broadcast_to(weights.reshape(12, -1), (12, P))[:, :, None] > 0, R, 0.0).reshape(-1, 2)
    z = factor.solve(y.reshape(R.shape), 0.7).reshape(-1, 2)
    gradient = A @ (A @ z - y) + 0.7 * (E * np.abs(s)) @ E.T @ z
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8 * np.abs(A).max())
    assert used == ("dense" if weights.ndim == 2 else factorize(operator, krein=True)[1])


@pytest.mark.parametrize(
    ("name", "expected", "large"),
    [
        ("separable rbf", "dense", "cg"),
        ("separable linear", "low_rank_separable", "cg"),
        ("kraus", "low_rank", "low_rank"),
        ("kraus with metric and features", "low_rank", "cg"),
        ("sum of separable", "dense", "cg"),
        ("transformable coordinates", "dense", "cg"),
    ],
)
def test_auto_follows_structure_and_size(name, expected, large, monkeypatch):
    assert factorize_observed(KERNELS[name](X), CELLS)[1] == expected
    monkeypatch.setattr(registry, "DENSE_SIZE", 5)
    monkeypatch.setattr(registry, "UNSTRUCTURED_DENSE_SIZE", 5)
    assert factorize_observed(KERNELS[name](X), CELLS)[1] == large


def test_auto_does_not_use_low_rank_beyond_the_number_of_measured_cells():
    few = np.zeros((12, P))
    few[:, 0] = 1.0  # twelve cells, and rank nine or eighteen
    assert factorize_observed(KERNELS["separable linear"](X), few)[1] == "low_rank_separable"
    assert factorize_observed(KERNELS["entangled"](X), few)[1] == "low_rank"
    assert factorize_observed(KERNELS["kraus with metric and features"](X), few)[1] == "dense"


def test_a_solver_says_what_it_needs():
    with pytest.raises(ValueError, match="solver='low_rank' needs a kernel in Kraus form"):
        factorize_observed(KERNELS["separable rbf"](X), CELLS, "low_rank")


@pytest.mark.parametrize("name", ["sum of separable", "separable rbf"])
def test_options_reach_the_iteration(name):
    factor, _ = factorize_observed(KERNELS[name](X), CELLS, "cg", tol=1e-3, max_iter=7)
    assert (factor.tol, factor.max_iter) == (1e-3, 7)


def test_measured_cells_are_gathered_some_rows_at_a_time(monkeypatch):
    operator = KERNELS["transformable coordinates"](X)
    mask = np.sqrt(CELLS)
    whole = GatheredFactor(operator, mask).solve(R, 0.2)
    monkeypatch.setattr(operators, "CHUNK_NUMBERS", 5 * 12 * P**2)
    seen = []
    rows = operator.block_rows
    monkeypatch.setattr(operator, "block_rows", lambda part: seen.append(part) or rows(part))
    np.testing.assert_allclose(GatheredFactor(operator, mask).solve(R, 0.2), whole, rtol=1e-12)
    assert [part.stop - part.start for part in seen] == [5, 5, 2]
