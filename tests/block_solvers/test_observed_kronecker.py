import numpy as np
import pytest

from block_solvers.sample import R, X
from entangled_kernels.block_solvers.observed_kronecker import ObservedKroneckerFactor
from entangled_kernels.linalg import KroneckerOperator, LowRankKroneckerOperator
from kernels.draws import random_psd
from kernels.registry import KERNELS, P

MASK = (np.random.default_rng(3).uniform(size=(12, P)) > 0.4) * 1.0


def dense_solution(operator, mask, right, alpha):
    s = mask.reshape(-1)
    A = s[:, None] * operator.to_dense() * s + alpha * np.eye(len(s))
    return np.linalg.solve(A, right.reshape(len(s), -1)).reshape(right.shape)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("name", ["separable rbf", "separable rank one", "separable linear"])
def test_equals_dense(name, alpha):
    operator = KERNELS[name](X)
    expected = dense_solution(operator, MASK, R, alpha)
    factor = ObservedKroneckerFactor(operator, MASK)
    np.testing.assert_allclose(factor.solve(R, alpha), expected, atol=1e-8 * np.abs(expected).max())


def test_residual_is_that_of_the_system():
    operator = KERNELS["separable rbf"](X)
    factor = ObservedKroneckerFactor(operator, MASK, tol=1e-4)
    solved = factor.solve(R, 0.01)
    s = MASK.reshape(-1, 1)
    error = R.reshape(-1, 2) - s * (operator @ (s * solved.reshape(-1, 2))) - 0.01 * solved.reshape(-1, 2)
    relative = np.linalg.norm(error, axis=0) / np.linalg.norm(R, axis=(0, 1))
    assert factor.residual == pytest.approx(relative.max(), rel=1e-6)
    assert 0 < factor.residual < 1e-3
    np.testing.assert_array_equal(factor.solve(np.zeros_like(R), 0.01), 0.0)


def test_one_step_where_weights_depend_on_the_output_alone(rng):
    """The preconditioner is then the system itself."""
    operator = KroneckerOperator(random_psd(rng, 20), random_psd(rng, 4))
    mask = np.repeat([[1.0, 0.5, 0.0, 2.0]], 20, axis=0)
    factor = ObservedKroneckerFactor(operator, mask)
    right = rng.normal(size=(20, 4, 3))
    np.testing.assert_allclose(
        factor.solve(right, 0.1), dense_solution(operator, mask, right, 0.1), atol=1e-8
    )
    assert factor.n_iter <= 2


def test_the_preconditioner_saves_iterations(rng):
    """Three cells in ten are blank; beside iterating without the spectrum of complete data."""
    points = rng.normal(size=(200, 3))
    operator = KERNELS["separable rbf"](points)
    mask = (rng.uniform(size=(200, P)) > 0.3) * 1.0
    right = mask[:, :, None] * rng.normal(size=(200, P, 1))
    factor = ObservedKroneckerFactor(operator, mask)
    factor.solve(right, 0.1)
    with_spectrum = factor.n_iter
    # A constant in the place of the spectrum makes the preconditioner a multiple of the identity.
    factor.spectrum = np.full_like(factor.spectrum, factor.spectrum.max())
    factor.solve(right, 0.1)
    assert factor.residual < 1e-8
    assert with_spectrum < factor.n_iter / 2


def test_iterations_run_out_at_max_iter_and_the_residual_tells():
    factor = ObservedKroneckerFactor(KERNELS["separable rbf"](X), MASK, max_iter=2)
    factor.solve(R, 1e-4)
    assert factor.n_iter == 2
    assert factor.residual > factor.tol


def test_thin_features_are_never_squared_to_rows(rng, monkeypatch):
    Phi = rng.normal(size=(40, 3))
    operator = LowRankKroneckerOperator(Phi, Phi, random_psd(rng, 2))
    mask = (rng.uniform(size=(40, 2)) > 0.3) * 1.0
    right = rng.normal(size=(40, 2, 1))
    expected = dense_solution(operator, mask, right, 0.2)
    monkeypatch.delattr(LowRankKroneckerOperator, "gram")
    factor = ObservedKroneckerFactor(operator, mask)
    assert factor.F.shape == (40, 3)
    np.testing.assert_allclose(factor.solve(right, 0.2), expected, atol=1e-8 * np.abs(expected).max())
