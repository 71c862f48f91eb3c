import numpy as np
import pytest

from block_solvers.sample import R, X
from entangled_kernels.block_solvers import conjugate_gradient, factorize
from entangled_kernels.block_solvers.conjugate_gradient import (
    ConjugateGradientFactor,
    NystroemPreconditioner,
    nearest_kronecker_of_sum,
    norms,
    solve_columns,
)
from entangled_kernels.linalg import DenseOperator, SumOfKroneckersOperator, operator_schmidt
from kernels.draws import random_psd
from kernels.registry import KERNELS, D, P


def test_conjugate_gradients_report_their_residual():
    operator = KERNELS["sum of separable"](X)
    factor, _ = factorize(operator, "cg", tol=1e-6)
    solved = factor.solve(R, 0.01)
    error = R - (operator @ solved.reshape(-1, 2)).reshape(R.shape) - 0.01 * solved
    relative = np.linalg.norm(error, axis=(0, 1)) / np.linalg.norm(R, axis=(0, 1))
    assert factor.residual == pytest.approx(relative.max())
    assert 0 < factor.residual < 1e-5
    assert 1 < factor.n_iter < 36
    np.testing.assert_array_equal(factor.solve(np.zeros_like(R), 0.01), 0.0)


def test_nystroem_preconditioner_is_exact_on_low_rank(rng):
    """On a Gram matrix of lower rank than the sketch, it inverts G + alpha I up to a factor."""
    Z = rng.normal(size=(36, 8))
    operator = DenseOperator((Z @ Z.T).reshape(12, P, 12, P).swapaxes(1, 2))
    applied = NystroemPreconditioner(operator).solve(R, 0.3).reshape(-1, 2)
    back = (Z @ Z.T + 0.3 * np.eye(36)) @ applied
    np.testing.assert_allclose(back, 0.3 * R.reshape(-1, 2), atol=1e-6)


def test_nystroem_preconditioner_saves_iterations(rng):
    points = rng.normal(size=(200, D))
    operator = (KERNELS["kraus"] + KERNELS["separable rbf"])(points)
    factor, _ = factorize(operator, "cg")
    right = rng.normal(size=(200, P, 1))
    factor.solve(right, 0.01)
    with_sketch = factor.n_iter

    class Nothing:
        def solve(self, V, alpha):
            return V

    factor._preconditioner = Nothing()
    factor.solve(right, 0.01)
    assert with_sketch < factor.n_iter / 2


def test_preconditioner_of_a_sum_is_the_nearest_kronecker_product():
    operator = KERNELS["sum of separable"](X)
    assert isinstance(operator, SumOfKroneckersOperator)
    nearest = nearest_kronecker_of_sum(operator).to_dense()
    G = operator.to_dense()
    values = operator_schmidt(G, (12, P)).values
    assert np.linalg.norm(G - nearest) == pytest.approx(np.linalg.norm(values[1:]), rel=1e-6)


def test_preconditioner_of_an_indefinite_sum_is_a_sketch(rng):
    """A - B with a common T: the nearest Kronecker product is indefinite, and no preconditioner."""
    A, B, T = random_psd(rng, 12), random_psd(rng, 12, 3), random_psd(rng, P)
    definite = SumOfKroneckersOperator(np.stack([A, B]), np.stack([T, T]))
    indefinite = SumOfKroneckersOperator(np.stack([A, B]), np.stack([T, -T]))
    assert not isinstance(ConjugateGradientFactor(definite)._preconditioner, NystroemPreconditioner)
    assert isinstance(ConjugateGradientFactor(indefinite)._preconditioner, NystroemPreconditioner)


def test_iterations_run_out_at_max_iter_and_the_residual_tells():
    factor = ConjugateGradientFactor(KERNELS["transformable coordinates"](X), max_iter=2)
    factor.solve(R, 1e-4)
    assert factor.n_iter == 2
    assert factor.residual > factor.tol


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_diagonal_blocks_of_the_inverse_in_chunks(chunk, monkeypatch):
    monkeypatch.setattr(conjugate_gradient, "COLUMN_CHUNK", chunk)
    operator = KERNELS["transformable coordinates"](X)
    inverse = np.linalg.inv(operator.to_dense() + 0.5 * np.eye(12 * P)).reshape(12, P, 12, P)
    expected = np.stack([inverse[i, :, i] for i in range(12)])
    np.testing.assert_allclose(
        ConjugateGradientFactor(operator).inverse_diagonal_blocks(0.5), expected, atol=1e-8
    )


def test_right_hand_sides_are_solved_at_once(rng):
    """Each is left alone once it has converged, one of zeros from the start."""
    A, B = random_psd(rng, 9) + 0.1 * np.eye(9), rng.normal(size=(9, 4, 1))
    B[:, 2] = 0.0
    found, n_iter = solve_columns(
        lambda V: (A @ V[:, :, 0])[:, :, None], lambda V: V, B, lambda R: norms(R) > 1e-10, 100
    )
    np.testing.assert_allclose(found[:, :, 0], np.linalg.solve(A, B[:, :, 0]), atol=1e-8)
    assert not found[:, 2].any()
    assert 1 <= n_iter < 100
