import numpy as np
import pytest

from entangled_kernels.learning import FitSettings, RowSample, fit_problem, reduce_rows
from entangled_kernels.learning.completion import reduce_cell_rows
from entangled_kernels.learning.leave_one_out import leave_one_out

from reference import cells as dense
from reference.dense import learned_matrix

SETTINGS = [
    {},
    {"shrinkage": 1.0},
    {"prediction": "partial_trace"},
    {"solver": "ascent", "rank": 5, "max_iter": 10},
]


def draw(n, m, p):
    rng = np.random.default_rng(n + m + p)
    Phi = rng.normal(size=(n, m))
    return Phi, Phi[:, :2] @ rng.normal(size=(2, p)) + rng.normal(size=(n, p)), rng


def sample_of(Phi, Y, weight=None):
    return RowSample.of(Phi, Y, np.arange(len(Y), dtype=np.uint64), weight)


def refitted(fit, Phi, Y, weight, alpha, centred):
    """Residuals from fits without each row, all with the same kernel."""
    n, p = Y.shape
    kraus, metric = fit.kraus(), fit.metric()
    D = learned_matrix(kraus, metric)
    if fit.settings.prediction == "partial_trace":
        m = Phi.shape[1]
        D = np.kron(np.einsum("fogo->fg", D.reshape(m, p, m, p)) / p, np.eye(p))
    left = np.full((n, p), np.nan)
    for i in range(n):
        others = np.arange(n) != i
        coef, intercept, _ = dense.observed_ridge(Phi[others], Y[others], weight[others], D, alpha, centred)
        left[i] = np.where(weight[i] > 0, Y[i] - (coef @ Phi[i] + intercept), np.nan)
    return left


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 4, 3), (8, 12, 5)])
def test_residuals_are_those_of_fits_without_the_row(settings, centred, shape):
    Phi, Y, rng = draw(*shape)
    weight = rng.uniform(0.5, 2.0, size=shape[0])
    problem, _ = reduce_rows(Phi, Y, weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.8, **settings))
    found = leave_one_out(fit, sample_of(Phi, Y, weight))
    cells = np.repeat(weight[:, None], shape[2], axis=1)
    expected = refitted(fit, Phi, Y, cells, 0.8, centred)
    np.testing.assert_allclose(found.values, expected, rtol=1e-7, atol=1e-8)
    assert found.n_rows == shape[0]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("unit", [[1.0, 1.0, 1.0], [100.0, 1.0, 0.01]])
def test_rows_with_blanks_and_weights_of_cells(settings, centred, unit):
    Phi, Y, rng = draw(16, 4, 3)
    weight = (rng.random(Y.shape) > 0.35).astype(float)
    weight[:3] = 1.0
    weight *= unit
    Y = np.where(weight > 0, Y, np.nan)
    problem, cells, _ = reduce_cell_rows(Phi, np.nan_to_num(Y), weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.8, **settings), cells=cells)
    found = leave_one_out(fit, sample_of(Phi, Y, weight))
    expected = refitted(fit, Phi, Y, weight, 0.8, centred)
    counted = weight.any(axis=1)
    np.testing.assert_allclose(found.values, expected[counted], rtol=1e-7, atol=1e-8)


def test_relative_variance_is_that_without_the_row():
    """Of one target with the linear kernel it is 1 + x^T (C + alpha)^-1 x, plus one over the rows."""
    Phi, Y, _ = draw(12, 3, 1)
    problem, _ = reduce_rows(Phi, Y, None, centred=False)
    fit = fit_problem(problem, FitSettings(alpha=0.5, shrinkage=1.0))
    found = leave_one_out(fit, sample_of(Phi, Y)).relative_variance
    for i in range(12):
        others = np.arange(12) != i
        C = Phi[others].T @ Phi[others] + 0.5 * np.eye(3)
        np.testing.assert_allclose(found[i], 1.0 + Phi[i] @ np.linalg.solve(C, Phi[i]), rtol=1e-9)
