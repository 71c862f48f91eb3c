import numpy as np
import pytest

from entangled_kernels.learning import (
    FitSettings,
    LearnedKernel,
    Moments,
    fit_problem,
    reduce_moments,
    reduce_rows,
)
from entangled_kernels.learning.problem import compress_rows
from entangled_kernels.learning.ridge import KernelRidgeFactor, lower_factor

from reference import cells, dense

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
    problem = reduce_moments(moments, centred=centred, rows=rows)
    reduced, k = problem.targets.shape
    L = rng.normal(size=(reduced, n_columns))
    r = problem.full_rank if rank == "full" else rank
    kernel = LearnedKernel(identity, L, rng.normal(size=(reduced, k, r)))
    D = dense.learned_matrix(problem.expand_kraus(kernel.Q), problem.expand_metric(kernel))
    Z = rng.normal(size=(5, m))
    path = KernelRidgeFactor(problem, kernel).coefficients(ALPHAS)
    assert path.shape == (3, reduced, k)
    for alpha, coef in zip(ALPHAS, path, strict=True):
        ours = (
            problem.mean_y
            + (Z - problem.mean_phi) @ (problem.outputs @ coef.T @ problem.features.T).T
        )
        expected = dense.ridge_predict(Phi, Y, D, alpha, Z, fit_intercept=centred)
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-8)


def test_alpha_to_its_limits(make_rows):
    """Least squares at zero, nothing at infinity."""
    Phi, Y = make_rows(30, 4, 3)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True)
    factor = KernelRidgeFactor(problem, LearnedKernel(1.0, np.zeros((4, 0)), np.zeros((4, 3, 0))))
    small, large = factor.coefficients([1e-10, 1e12])
    least_squares = np.linalg.lstsq(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0]
    np.testing.assert_allclose(
        (problem.outputs @ small.T @ problem.features.T).T, least_squares, atol=1e-8
    )
    np.testing.assert_allclose(large, 0, atol=1e-9)


def test_squared_residuals(make_rows):
    Phi, Y = make_rows(10, 3, 14)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True)
    plain = LearnedKernel(1.0, np.zeros((3, 0)), np.zeros((3, 3, 0)))
    coef = KernelRidgeFactor(problem, plain).coefficients(0.5)[0]
    residuals = (
        Y
        - problem.mean_y
        - (Phi - problem.mean_phi) @ (problem.outputs @ coef.T @ problem.features.T).T
    )
    np.testing.assert_allclose(
        problem.squared_residuals(coef)[0], np.sum(residuals**2, axis=0), rtol=1e-9
    )


def matrix_of(kernel, p):
    """D of a kernel whose outputs are not reduced."""
    m, k, r = kernel.Q.shape
    Q = kernel.Q.reshape(m * k, r)
    D = kernel.identity * np.eye(m * p) + Q @ Q.T
    return D + np.kron(kernel.L @ kernel.L.T, np.eye(p))


@pytest.fixture(params=[(0.0, False, 3), (0.4, False, 2), (0.0, True, 0), (0.3, True, 1)])
def kernel(request, rng):
    identity, with_metric, r = request.param
    return LearnedKernel(
        identity, rng.normal(size=(4, 2 * with_metric)), rng.normal(size=(4, 3, r))
    )


def test_scaled(kernel):
    np.testing.assert_allclose(matrix_of(kernel.mixed(0.0, 2.5), 3), 2.5 * matrix_of(kernel, 3))


def test_shrunk(kernel):
    expected = 0.3 * np.eye(12) / 12 + 0.7 * matrix_of(kernel, 3)
    np.testing.assert_allclose(matrix_of(kernel.mixed(0.3 / 12, 0.7), 3), expected)
    plain = kernel.mixed(1.0 / 12, 0.0)
    np.testing.assert_allclose(matrix_of(plain, 3), np.eye(12) / 12)
    assert plain.L.shape == (4, 0)
    assert plain.Q.shape == (4, 3, 0)


def test_partial_trace(kernel):
    traced = np.einsum("aobo->ab", matrix_of(kernel, 3).reshape(4, 3, 4, 3))
    np.testing.assert_allclose(
        matrix_of(kernel.partial_trace(3), 3), np.kron(traced / 3, np.eye(3)), atol=1e-12
    )


def test_canonical_operators(kernel, rng):
    targets = rng.normal(size=(4, 3))
    canonical = kernel.canonical(targets)
    np.testing.assert_allclose(matrix_of(canonical, 3), matrix_of(kernel, 3), atol=1e-12)
    Q = canonical.Q.reshape(12, -1)
    norms = np.linalg.norm(Q, axis=0)
    np.testing.assert_allclose(Q.T @ Q, np.diag(norms**2), atol=1e-12)
    assert (np.diff(norms) <= 0).all()
    assert (targets.reshape(-1) @ Q >= 0).all()


def test_canonical_does_not_depend_on_the_factor(rng):
    Q, targets = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    one, other = (
        LearnedKernel.from_operators(factor).canonical(targets).Q for factor in (Q, Q @ rotation)
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_partial_trace_keeps_no_more_columns_than_its_rank(rng):
    W = rng.normal(size=(6, 2))
    kernel = LearnedKernel(0.1, 0.5 * W, W[:, :, None])
    assert kernel.partial_trace(2).L.shape == (6, 2)
    assert LearnedKernel.from_operators(rng.normal(size=(4, 3, 5))).partial_trace(3).L.shape == (
        4,
        4,
    )


SETTINGS = {
    "mixed": {},
    "partial trace": {"prediction": "partial_trace"},
    "kernel ridge": {"shrinkage": 1.0},
    "operators alone": {"shrinkage": 0.0, "alignment_mix": 1.0},
    "ascent": {"solver": "ascent", "rank": 4, "max_iter": 20},
    "lbfgs": {"solver": "lbfgs", "rank": 3, "shrinkage": 0.0, "max_iter": 20},
    "full rank": {"solver": "ascent", "rank": None, "max_iter": 5},
}


def draw_missing(seed, n, m, p, missing=0.4):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m)) + 1.0
    weight = np.where(rng.random((n, p)) < missing, 0.0, rng.uniform(0.5, 2.0, size=(n, p)))
    weight[:2] = 1.0
    return Phi, Phi[:, :2] @ rng.normal(size=(2, p)) + rng.normal(size=(n, p)), weight


def kernel_of(fit, p):
    """D of the kernel that a fit predicts with."""
    kraus, metric = fit.kraus(), fit.metric()
    D = dense.learned_matrix(kraus, metric)
    if fit.settings.prediction == "entangled":
        return D
    m = kraus.shape[2]
    blocks = D.reshape(m, p, m, p)
    return np.kron(np.einsum("fogo->fg", blocks) / p, np.eye(p))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 5, 3), (9, 12, 4), (12, 3, 1)])
def test_ridge_over_the_targets_that_are_present(name, centred, shape):
    Phi, Y, weight = draw_missing(sum(shape), *shape)
    problem, _ = reduce_rows(Phi, np.where(weight > 0, Y, np.nan), weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.7, **SETTINGS[name]))
    D = kernel_of(fit, shape[2])
    coef, intercept, square = cells.observed_ridge(Phi, Y, weight, D, 0.7, centred)
    np.testing.assert_allclose(fit.linear.coef, coef, atol=1e-9)
    np.testing.assert_allclose(fit.linear.intercept, intercept, atol=1e-9)
    np.testing.assert_allclose(fit.rkhs_norm, np.sqrt(square), atol=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
def test_posterior_over_the_targets_that_are_present(name, centred):
    """Covariance of the function and degrees of freedom, from the Gram matrix of the targets."""
    n, m, p = 14, 5, 3
    Phi, Y, weight = draw_missing(5, n, m, p)
    problem, _ = reduce_rows(Phi, np.where(weight > 0, Y, np.nan), weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.7, **SETTINGS[name]))
    D = kernel_of(fit, p)
    # The features of every target are about the mean of its own rows.
    mean = np.array([np.average(Phi, axis=0, weights=w) for w in weight.T]) * centred  # (p, m)
    N, outputs, weights = cells.observed_design(Phi, weight)
    for row, o in zip(N, outputs, strict=True):
        row[o::p] -= mean[o]
    G, noise = N @ D @ N.T, 0.7 * np.diag(1 / weights)
    Z = np.random.default_rng(0).normal(size=(4, m))
    blocks = np.zeros((4, p, m * p))
    for i, z in enumerate(Z):
        for o in range(p):
            blocks[i, o, o::p] = z - mean[o]
    expected = np.array(
        [B @ (D - D @ N.T @ np.linalg.solve(G + noise, N @ D)) @ B.T for B in blocks]
    )
    for _, shared, spread in fit.posterior.unit.chunks(Z):
        found = spread @ spread.transpose(0, 2, 1) + shared[:, :, None] * np.eye(p)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    hat = np.diag(G @ np.linalg.inv(G + noise))
    degrees = [hat[outputs == o].sum() + centred for o in range(p)]
    np.testing.assert_allclose(fit.posterior.unit.degrees_of_freedom, degrees, rtol=1e-9)
    residuals = np.where(weight > 0, Y - fit.linear.predict(Phi), 0.0)
    left = (weight > 0).sum(axis=0) - np.array(degrees)
    variance = (
        np.sum(weight * residuals**2, axis=0) / left * (weight > 0).sum(axis=0) / weight.sum(axis=0)
    )
    np.testing.assert_allclose(fit.posterior.noise_variance, variance, rtol=1e-8)
    assert (fit.posterior.unit.relative_variance(Z) > 1.0).all()


def test_what_lies_outside_of_the_features_is_uncertain():
    Phi, Y, weight = draw_missing(7, 9, 12, 3)
    problem, _ = reduce_rows(Phi, np.where(weight > 0, Y, np.nan), weight, centred=True)
    fit = fit_problem(problem, FitSettings(alpha=0.1))
    outside = np.linalg.svd(Phi - Phi.mean(axis=0))[2][-1]
    near, far = fit.posterior.unit.relative_variance(np.vstack([Phi[0], Phi[0] + 100.0 * outside]))
    assert far > 10.0 * near


def test_a_matrix_that_rounding_made_indefinite_has_a_factor_still(rng):
    F = rng.normal(size=(6, 3))
    for scale in (1e-60, 1.0, 1e60):
        matrix = scale * (F @ F.T) - 1e-15 * scale * np.eye(6)
        factor = lower_factor(matrix)
        np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-9 * scale)
    with pytest.raises(ValueError, match="use a larger alpha"):
        lower_factor(-np.eye(3))
