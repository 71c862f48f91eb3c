import numpy as np
import pytest

from entangled_kernels.learning import FitSettings, fit_problem
from entangled_kernels.learning.completion import reduce_cell_rows

from reference import cells as dense
from reference.dense import learned_matrix

SETTINGS = {
    "mixed": {},
    "partial trace": {"prediction": "partial_trace"},
    "kernel ridge": {"shrinkage": 1.0},
    "operators alone": {"shrinkage": 0.0, "alignment_mix": 1.0},
    "ascent": {"solver": "ascent", "rank": 4, "max_iter": 20},
    "lbfgs": {"solver": "lbfgs", "rank": 3, "shrinkage": 0.0, "max_iter": 20},
    "full rank": {"solver": "ascent", "rank": None, "max_iter": 5},
}


def draw(seed, n, m, p, blanks=0.4):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m)) + 1.0
    weight = np.where(rng.random((n, p)) < blanks, 0.0, rng.uniform(0.5, 2.0, size=(n, p)))
    weight[:2] = 1.0
    return Phi, Phi[:, :2] @ rng.normal(size=(2, p)) + rng.normal(size=(n, p)), weight


def kernel_of(fit, p):
    """D of the kernel that a fit predicts with."""
    kraus, metric = fit.kraus(), fit.metric()
    D = learned_matrix(kraus, metric)
    if fit.settings.prediction == "entangled":
        return D
    m = kraus.shape[2]
    blocks = D.reshape(m, p, m, p)
    return np.kron(np.einsum("fogo->fg", blocks) / p, np.eye(p))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 5, 3), (9, 12, 4), (12, 3, 1)])
def test_ridge_over_measured_cells(name, centred, shape):
    Phi, Y, weight = draw(sum(shape), *shape)
    problem, cells, _ = reduce_cell_rows(Phi, np.where(weight > 0, Y, 0.0), weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.7, **SETTINGS[name]), cells=cells)
    D = kernel_of(fit, shape[2])
    coef, intercept, square = dense.observed_ridge(Phi, Y, weight, D, 0.7, centred)
    np.testing.assert_allclose(fit.linear.coef, coef, atol=1e-9)
    np.testing.assert_allclose(fit.linear.intercept, intercept, atol=1e-9)
    np.testing.assert_allclose(fit.rkhs_norm, np.sqrt(square), atol=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
def test_posterior_over_measured_cells(name, centred):
    """Covariance of the function and degrees of freedom, from the Gram matrix of the cells."""
    n, m, p = 14, 5, 3
    Phi, Y, weight = draw(5, n, m, p)
    problem, cells, _ = reduce_cell_rows(Phi, np.where(weight > 0, Y, 0.0), weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.7, **SETTINGS[name]), cells=cells)
    D = kernel_of(fit, p)
    # The features of every target are about the mean of its own rows.
    mean = np.array([np.average(Phi, axis=0, weights=w) for w in weight.T]) * centred  # (p, m)
    N, outputs, weights = dense.observed_design(Phi, weight)
    for row, o in zip(N, outputs, strict=True):
        row[o::p] -= mean[o]
    G, noise = N @ D @ N.T, 0.7 * np.diag(1 / weights)
    Z = np.random.default_rng(0).normal(size=(4, m))
    blocks = np.zeros((4, p, m * p))
    for i, z in enumerate(Z):
        for o in range(p):
            blocks[i, o, o::p] = z - mean[o]
    expected = np.array([B @ (D - D @ N.T @ np.linalg.solve(G + noise, N @ D)) @ B.T for B in blocks])
    for _, shared, spread in fit.posterior.unit.chunks(Z):
        found = spread @ spread.transpose(0, 2, 1) + shared[:, :, None] * np.eye(p)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    hat = np.diag(G @ np.linalg.inv(G + noise))
    degrees = [hat[outputs == o].sum() + centred for o in range(p)]
    np.testing.assert_allclose(fit.posterior.unit.degrees_of_freedom, degrees, rtol=1e-9)
    residuals = np.where(weight > 0, Y - fit.linear.predict(Phi), 0.0)
    left = (weight > 0).sum(axis=0) - np.array(degrees)
    variance = np.sum(weight * residuals**2, axis=0) / left * (weight > 0).sum(axis=0) / weight.sum(axis=0)
    np.testing.assert_allclose(fit.posterior.noise_variance, variance, rtol=1e-8)
    assert (fit.relative_variance(Z) > 1.0).all()


def test_what_lies_outside_of_the_features_is_uncertain():
    Phi, Y, weight = draw(7, 9, 12, 3)
    problem, cells, _ = reduce_cell_rows(Phi, np.where(weight > 0, Y, 0.0), weight, centred=True)
    fit = fit_problem(problem, FitSettings(alpha=0.1), cells=cells)
    outside = np.linalg.svd(Phi - Phi.mean(axis=0))[2][-1]
    near, far = fit.relative_variance(np.vstack([Phi[0], Phi[0] + 100.0 * outside]))
    assert far > 10.0 * near
