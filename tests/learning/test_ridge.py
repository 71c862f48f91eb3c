import numpy as np
import pytest

from entangled_kernels.learning.compression import compress_rows
from entangled_kernels.learning.kernel import LearnedKernel
from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import reduce_moments
from entangled_kernels.learning.ridge import KernelRidgeFactor

from reference import dense

ALPHAS = np.array([1e-4, 0.3, 20.0])


@pytest.mark.parametrize("shape", [(12, 4, 3), (7, 9, 3), (7, 4, 12)])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("identity", [0.0, 0.6])
@pytest.mark.parametrize("n_columns", [0, 1, 5])
@pytest.mark.parametrize("rank", [0, 1, 3, "full"])
def test_path_against_the_dense_system(make_rows, rng, shape, centred, identity, n_columns, rank):
    n, m, p = shape
    Phi, Y = make_rows(n, m, p)
    rows = compress_rows(Phi, Y, centred=centred)
    moments = Moments.from_arrays(rows.Phi, rows.Y)
    problem = reduce_moments(moments, centred=centred, mix=0.5, rows=rows).restored(rows, moments)
    reduced, k = problem.targets.shape
    L = rng.normal(size=(reduced, n_columns))
    r = problem.full_rank if rank == "full" else rank
    kernel = LearnedKernel(identity, L, rng.normal(size=(reduced, k, r)))
    D = dense.learned_matrix(problem.expand_kraus(kernel.Q), problem.expand_metric(kernel))
    Z = rng.normal(size=(5, m))
    path = KernelRidgeFactor(problem, kernel).coefficients(ALPHAS)
    assert path.shape == (3, reduced, k)
    for alpha, coef in zip(ALPHAS, path, strict=True):
        ours = problem.mean_y + (Z - problem.mean_phi) @ problem.expand_coef(coef).T
        expected = dense.ridge_predict(Phi, Y, D, alpha, Z, fit_intercept=centred)
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-8)


def test_alpha_to_its_limits(make_rows):
    """Least squares at zero, nothing at infinity."""
    Phi, Y = make_rows(30, 4, 3)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True, mix=0.5)
    factor = KernelRidgeFactor(problem, LearnedKernel(1.0, np.zeros((4, 0)), np.zeros((4, 3, 0))))
    small, large = factor.coefficients([1e-10, 1e12])
    least_squares = np.linalg.lstsq(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0]
    np.testing.assert_allclose(problem.expand_coef(small).T, least_squares, atol=1e-8)
    np.testing.assert_allclose(large, 0, atol=1e-9)


def test_squared_residuals(make_rows):
    Phi, Y = make_rows(10, 3, 14)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True, mix=0.5)
    plain = LearnedKernel(1.0, np.zeros((3, 0)), np.zeros((3, 3, 0)))
    coef = KernelRidgeFactor(problem, plain).coefficients(0.5)[0]
    residuals = Y - problem.mean_y - (Phi - problem.mean_phi) @ problem.expand_coef(coef).T
    np.testing.assert_allclose(problem.squared_residuals(coef), np.sum(residuals**2, axis=0), rtol=1e-9)
