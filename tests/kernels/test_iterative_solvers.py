"""Conjugate gradients: residuals, preconditioners, and products with scaled operators."""

import numpy as np
import pytest

from entangled_kernels.kernels import iterative_solvers
from entangled_kernels.kernels.iterative_solvers import (
    ConjugateGradientFactor,
    MaskedKroneckerFactor,
    NystroemPreconditioner,
    ScaledOperator,
    nearest_kronecker_of_sum,
    solve_columns,
)
from entangled_kernels.linalg import (
    DenseOperator,
    KroneckerOperator,
    SumOfKroneckersOperator,
    operator_schmidt,
)
from kernels.draws import random_psd
from kernels.registry import KERNELS, P
from kernels.sample import MASK, R, X, check_factor, dense_system


def relative_residual(A, solved, right):
    error = right.reshape(len(A), -1) - A @ solved.reshape(len(A), -1)
    return (np.linalg.norm(error, axis=0) / np.linalg.norm(right, axis=(0, 1))).max()


@pytest.mark.parametrize(
    ("make", "weights"),
    [
        (lambda: ConjugateGradientFactor(KERNELS["sum of separable"](X), tol=1e-6), None),
        (lambda: MaskedKroneckerFactor(KERNELS["separable rbf"](X), MASK, tol=1e-4), MASK**2),
    ],
    ids=["products", "masked"],
)
def test_the_residual_is_that_of_the_system(make, weights):
    factor = make()
    operator = KERNELS["sum of separable" if weights is None else "separable rbf"](X)
    solved = factor.solve(R, 0.01)
    expected = relative_residual(dense_system(operator, weights, 0.01), solved, R)
    assert factor.residual == pytest.approx(expected, rel=1e-6)
    assert 0 < factor.residual < 0.1
    assert factor.n_iter > 1
    np.testing.assert_array_equal(factor.solve(np.zeros_like(R), 0.01), 0.0)


def test_right_hand_sides_are_solved_at_once(rng):
    """Each is left alone once it has converged, zeros from the start."""
    A, B = random_psd(rng, 9) + 0.1 * np.eye(9), rng.normal(size=(9, 4, 1))
    B[:, 2] = 0.0

    def unfinished(residual):
        return np.linalg.norm(residual, axis=(0, 2)) > 1e-10

    solved, n_iter = solve_columns(
        lambda V: (A @ V[:, :, 0])[:, :, None], lambda V: V, B, unfinished, 100
    )
    np.testing.assert_allclose(solved[:, :, 0], np.linalg.solve(A, B[:, :, 0]), atol=1e-8)
    assert not solved[:, 2].any()
    assert 1 <= n_iter < 100


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_diagonal_blocks_of_the_inverse_in_chunks(chunk, monkeypatch):
    monkeypatch.setattr(iterative_solvers, "COLUMN_CHUNK", chunk)
    operator = KERNELS["transformable coordinates"](X)
    check_factor(ConjugateGradientFactor(operator), dense_system(operator, None, 0.5), 0.5, P)


def test_nystroem_preconditioner_is_exact_on_low_rank(rng):
    """On a Gram matrix of lower rank than the sketch, it inverts G + alpha I up to a factor."""
    A = random_psd(rng, 36, 8)
    operator = DenseOperator(A.reshape(12, P, 12, P).swapaxes(1, 2))
    applied = NystroemPreconditioner(operator).solve(R, 0.3).reshape(-1, 2)
    np.testing.assert_allclose((A + 0.3 * np.eye(36)) @ applied, 0.3 * R.reshape(-1, 2), atol=1e-6)


def test_preconditioner_of_a_sum_is_the_nearest_kronecker_product():
    operator = KERNELS["sum of separable"](X)
    assert isinstance(operator, SumOfKroneckersOperator)
    nearest = nearest_kronecker_of_sum(operator).to_dense()
    G = operator.to_dense()
    values = operator_schmidt(G, (12, P)).values
    assert np.linalg.norm(G - nearest) == pytest.approx(np.linalg.norm(values[1:]), rel=1e-6)


def test_a_sum_whose_nearest_kronecker_product_is_indefinite_is_still_solved(rng):
    """A - B with a common T is psd, the nearest Kronecker product need not be."""
    B, T = random_psd(rng, 12, 3), random_psd(rng, P)
    A = B + 1e-3 * random_psd(rng, 12)
    operator = SumOfKroneckersOperator(np.stack([A, B]), np.stack([T, -T]))
    check_factor(ConjugateGradientFactor(operator), dense_system(operator, None, 0.1), 0.1, P)


@pytest.mark.parametrize("name", KERNELS)
def test_scaled_operators_equal_dense(name, rng):
    operator = KERNELS[name](X)
    expected = np.diag(MASK.reshape(-1)) @ operator.to_dense() @ np.diag(MASK.reshape(-1))
    scaled = ScaledOperator(operator, MASK)
    atol = 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(scaled.to_dense(), expected, atol=atol)
    V = rng.normal(size=(len(X) * P, 2))
    np.testing.assert_allclose(scaled @ V, expected @ V, atol=100 * atol)
    np.testing.assert_allclose(scaled.H @ V, expected.T @ V, atol=100 * atol)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("name", ["separable rbf", "separable rank one", "separable linear"])
def test_masked_kronecker_equals_dense(name, alpha):
    operator = KERNELS[name](X)
    check_factor(
        MaskedKroneckerFactor(operator, MASK), dense_system(operator, MASK**2, alpha), alpha, P
    )


def test_weights_of_outputs_need_one_iteration(rng):
    """The preconditioner is then the system itself."""
    operator = KroneckerOperator(random_psd(rng, 20), random_psd(rng, 4))
    mask = np.repeat([[1.0, 0.5, 0.0, 2.0]], 20, axis=0)
    factor = MaskedKroneckerFactor(operator, mask)
    check_factor(factor, dense_system(operator, mask**2, 0.1), 0.1, 4)
    assert factor.n_iter <= 2
