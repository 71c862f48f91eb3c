import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning import FitSettings, RowSample, fit_problem, reduce_rows
from entangled_kernels.learning import posterior as posterior_module
from entangled_kernels.learning.posterior import leave_one_out

from reference import cells, dense

SETTINGS = [
    {"shrinkage": 0.3},
    {"shrinkage": 0.0, "prediction": "partial_trace"},
    {"shrinkage": 1.0},
    {"shrinkage": 0.0, "solver": "ascent", "solver_params": {"max_iter": 20}},
    {"shrinkage": 0.4, "solver": "ascent", "solver_params": {"max_iter": 20}, "rank": 2},
    {"shrinkage": 0.3, "prediction": "reduced_rank", "rank": 1},
]


def used_matrix(model, Phi, Y):
    m, p = model.coef_.shape[1], model.coef_.shape[0]
    D = dense.learned_matrix(
        model.kraus_, np.zeros((m, m)) if model.metric_ is None else model.metric_
    )
    if model.prediction == "entangled":
        return D
    D = dense.partial_trace_kernel(D, p)
    return D if model.prediction == "partial_trace" else in_directions(D, model, Phi, Y)


def in_directions(D, settings, Phi, Y, weight=None, centred=True):
    """A scalar kernel times the projection on the leading directions of the targets."""
    A, centred = D[:: Y.shape[1], :: Y.shape[1]], getattr(settings, "fit_intercept", centred)
    V = dense.leading_directions(Phi, Y, A, settings.alpha, settings.rank, weight, centred)
    return np.kron(A, V @ V.T)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(12, 3, 2), (6, 8, 2), (6, 3, 11)])
def test_covariance_is_the_dense_posterior(make_rows, rng, settings, fit_intercept, shape):
    n, m, p = shape
    Phi, Y = make_rows(n, m, p)
    Z = rng.normal(size=(7, m))
    model = EntangledKernelRidge(alpha=0.7, fit_intercept=fit_intercept, **settings).fit(Phi, Y)
    D = used_matrix(model, Phi, Y)
    hat = dense.hat_matrix(Phi, D, 0.7, p, fit_intercept)
    freedom = np.diag(hat).reshape(n, p).sum(axis=0) + fit_intercept
    residuals = Y - model.predict(Phi)
    noise = np.sum(residuals**2, axis=0) / (n - freedom)
    np.testing.assert_allclose(model.noise_variance_, noise, rtol=1e-6)
    prior = np.sqrt(noise / 0.7)
    expected = dense.posterior_covariance(Phi, D, 0.7, Z, p, fit_intercept) * np.outer(prior, prior)
    expected += np.diag(noise * (1 + fit_intercept / n))
    mean, cov = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(mean, model.predict(Z))
    np.testing.assert_allclose(cov, expected, rtol=1e-6, atol=1e-8 * expected.max())
    std = model.predict(Z, return_std=True)[1]
    np.testing.assert_allclose(std**2, np.diagonal(cov, axis1=1, axis2=2), rtol=1e-10)
    assert np.linalg.eigvalsh(cov).min() > 0


def test_kernel_ridge_case_is_a_gaussian_process(make_rows, rng):
    """With shrinkage=1 each output is scikit-learn's Gaussian process with the same noise and amplitude."""
    Phi, Y = make_rows(15, 3, 2)
    model = EntangledKernelRidge(shrinkage=1, alpha=2.0, fit_intercept=False).fit(Phi, Y)
    Z = rng.normal(size=(5, 3))
    std = model.predict(Z, return_std=True)[1]
    for o, noise in enumerate(model.noise_variance_):
        kernel = ConstantKernel(noise / 2.0, "fixed") * DotProduct(
            sigma_0=0, sigma_0_bounds="fixed"
        )
        peer = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(Phi, Y[:, o])
        mean, latent = peer.predict(Z, return_std=True)
        np.testing.assert_allclose(model.predict(Z)[:, o], mean, atol=1e-8)
        np.testing.assert_allclose(std[:, o], np.sqrt(latent**2 + noise), rtol=1e-8)


def test_chunks_change_nothing(make_rows, rng, monkeypatch):
    Phi, Y = make_rows(12, 3, 2)
    model = EntangledKernelRidge().fit(Phi, Y)
    whole = model.predict(Phi, return_cov=True)[1]
    monkeypatch.setattr(posterior_module, "_CHUNK_NUMBERS", 10)
    np.testing.assert_allclose(model.predict(Phi, return_cov=True)[1], whole, rtol=1e-12)


def test_scaling_weights_and_alpha_together_changes_nothing(make_rows, rng):
    Phi, Y = make_rows(20, 3, 2)
    weight = rng.uniform(0.5, 2, size=20)
    one = EntangledKernelRidge(alpha=1.0).fit(Phi, Y, weight)
    other = EntangledKernelRidge(alpha=10.0).fit(Phi, Y, 10 * weight)
    for first, second in zip(
        one.predict(Phi, return_std=True), other.predict(Phi, return_std=True), strict=True
    ):
        np.testing.assert_allclose(first, second, rtol=1e-9)


def test_intervals_cover(rng):
    """About 95% of new observations lie within two deviations, also where outputs differ in scale."""
    X, maps = rng.normal(size=(400, 5)), rng.normal(size=(5, 3)) * [1.0, 100.0, 0.01]
    Y = X @ maps + rng.normal(size=(400, 3)) * [0.5, 50.0, 0.002]
    model = EntangledKernelRidge().fit(X[:100], Y[:100])
    mean, std = model.predict(X[100:], return_std=True)
    cover = np.mean(np.abs(Y[100:] - mean) < 1.96 * std, axis=0)
    assert (np.abs(cover - 0.95) < 0.05).all()


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("unit", [1e-4, 1e4, 1e8])
def test_unit_of_the_features_does_not_matter(make_rows, settings, unit):
    """Features times a unit, and alpha times its square, are the same model."""
    Phi, Y = make_rows(12, 3, 2)
    plain = EntangledKernelRidge(alpha=0.7, **settings).fit(Phi, Y).predict(Phi, return_std=True)[1]
    model = EntangledKernelRidge(alpha=0.7 * unit**2, **settings).fit(Phi * unit, Y)
    np.testing.assert_allclose(model.predict(Phi * unit, return_std=True)[1], plain, rtol=1e-8)


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_ridge_to_speak_of_is_least_squares(make_rows, settings):
    Phi, Y = make_rows(30, 3, 2)
    model = EntangledKernelRidge(alpha=1e-14, **{**settings, "rank": None}).fit(Phi, Y)
    std = model.predict(Phi, return_std=True)[1]
    A = np.column_stack([np.ones(30), Phi])
    squares = np.linalg.lstsq(A, Y, rcond=None)[1]
    if settings["shrinkage"] > 0:
        leverage = np.sum(A * np.linalg.solve(A.T @ A, A.T).T, axis=1)
        np.testing.assert_allclose(std**2, np.outer(1 + leverage, squares / 26), rtol=1e-4)
    assert np.isfinite(std).all()


def test_far_from_the_data_is_less_sure(make_rows):
    Phi, Y = make_rows(12, 3, 2)
    model = EntangledKernelRidge().fit(Phi, Y)
    near = model.predict(Phi.mean(axis=0, keepdims=True), return_std=True)[1]
    far = model.predict(Phi.mean(axis=0, keepdims=True) + 100, return_std=True)[1]
    assert (far > near).all()


def test_one_dimensional_target(make_rows):
    Phi, Y = make_rows(12, 3, 1)
    flat, column = EntangledKernelRidge().fit(Phi, Y[:, 0]), EntangledKernelRidge().fit(Phi, Y)
    for option in ("return_std", "return_cov"):
        value = flat.predict(Phi, **{option: True})[1]
        assert value.shape == (12,)
        np.testing.assert_allclose(value, column.predict(Phi, **{option: True})[1].reshape(12))


def test_both_at_once_is_an_error(make_rows):
    Phi, Y = make_rows(12, 3, 2)
    with pytest.raises(ValueError, match="return_std and return_cov"):
        EntangledKernelRidge().fit(Phi, Y).predict(Phi, return_std=True, return_cov=True)


FITS = [
    {},
    {"shrinkage": 1.0},
    {"prediction": "partial_trace"},
    {"prediction": "reduced_rank", "rank": 2},
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
    D = dense.learned_matrix(kraus, metric)
    if fit.settings.prediction != "entangled":
        D = dense.partial_trace_kernel(D, p)
    if fit.settings.prediction == "reduced_rank":
        D = in_directions(D, fit.settings, Phi, Y, weight[:, 0], centred)
    left = np.full((n, p), np.nan)
    for i in range(n):
        others = np.arange(n) != i
        coef, intercept, _ = cells.observed_ridge(
            Phi[others], Y[others], weight[others], D, alpha, centred
        )
        left[i] = np.where(weight[i] > 0, Y[i] - (coef @ Phi[i] + intercept), np.nan)
    return left


@pytest.mark.parametrize("settings", FITS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 4, 3), (8, 12, 5)])
def test_residuals_are_those_of_fits_without_the_row(settings, centred, shape):
    Phi, Y, rng = draw(*shape)
    weight = rng.uniform(0.5, 2.0, size=shape[0])
    problem, _ = reduce_rows(Phi, Y, weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.8, **settings))
    found = leave_one_out(fit, sample_of(Phi, Y, weight))
    weights = np.repeat(weight[:, None], shape[2], axis=1)
    expected = refitted(fit, Phi, Y, weights, 0.8, centred)
    np.testing.assert_allclose(found.values, expected, rtol=1e-7, atol=1e-8)
    assert found.n_rows == shape[0]


@pytest.mark.parametrize(
    "settings", [own for own in FITS if own.get("prediction") != "reduced_rank"]
)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("unit", [[1.0, 1.0, 1.0], [100.0, 1.0, 0.01]])
def test_missing_targets_and_weights_of_targets(settings, centred, unit):
    Phi, Y, rng = draw(16, 4, 3)
    weight = (rng.random(Y.shape) > 0.35).astype(float)
    weight[:3] = 1.0
    weight *= unit
    Y = np.where(weight > 0, Y, np.nan)
    problem, _ = reduce_rows(Phi, Y, weight, centred=centred)
    fit = fit_problem(problem, FitSettings(alpha=0.8, **settings))
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


@pytest.mark.parametrize("centred", [True, False])
def test_scaling_weights_and_alpha_together_changes_nothing_with_missing_targets(centred):
    Phi, Y, rng = draw(20, 4, 3)
    Y = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    weight = rng.uniform(0.5, 2.0, size=20)
    variances = []
    for factor in (1.0, 10.0):
        problem, _ = reduce_rows(Phi, Y, factor * weight, centred=centred)
        variances.append(fit_problem(problem, FitSettings(alpha=factor)).posterior.variance(Phi))
    np.testing.assert_allclose(variances[1], variances[0], rtol=1e-9)
