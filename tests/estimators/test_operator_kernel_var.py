import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from entangled_kernels import OperatorKernelVAR

from reference.autoregression import sparse_series

KINDS = pytest.mark.parametrize("kernel", ["hadamard", "additive"])


@pytest.fixture
def series(rng):
    return sparse_series(rng, p=4, steps=60)[0] * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 0.0, -3.0]


@KINDS
def test_the_network_is_found(kernel, rng):
    """AUROC of the influences off the diagonal, p = 10, 150 steps, two parents each."""
    for seed in range(3):
        X, network = sparse_series(np.random.default_rng(seed))
        model = OperatorKernelVAR(kernel).fit(X)
        off = ~np.eye(10, dtype=bool)
        assert roc_auc_score(network[off], model.granger_[off]) >= 0.95
        assert model.converged_
        assert model.duality_gap_ <= 1e-6 * model.objective_


@KINDS
@pytest.mark.parametrize("lags", [1, 3])
def test_jacobian_against_differences(kernel, lags, series):
    """In the units of the series: the next step when a step before it is a little different."""
    model = OperatorKernelVAR(kernel, lags=lags, alpha=0.1).fit(series)
    J = model.jacobian(series)
    assert J.shape == (61 - lags, 4, 4, lags)
    at = 20
    for j in range(4):
        for k in range(lags):
            step = 1e-4 * model.scale_[j]
            ends = []
            for sign in (1, -1):
                moved = series[at : at + lags].copy()
                moved[lags - 1 - k, j] += sign * step
                ends.append(model.forecast(1, moved)[0])
            slope = (ends[0] - ends[1]) / (2 * step)
            size = model.scale_ / model.scale_[j]
            np.testing.assert_allclose(J[at, :, j, k] / size, slope / size, atol=1e-7)


@KINDS
def test_forecasts_repeat_one_step(kernel, series):
    model = OperatorKernelVAR(kernel, lags=2).fit(series[:50])
    path = np.vstack([series[48:50], model.forecast(4)])
    np.testing.assert_allclose(model.one_step(path), model.forecast(4), atol=1e-10)
    np.testing.assert_allclose(model.forecast(3, series), model.forecast(3, series[-2:]))
    one = model.one_step(series)
    assert one.shape == (58, 4)
    error = np.mean(((series[2:] - one) / model.scale_) ** 2)
    assert model.score(series) == pytest.approx(1 - error)


def test_units_do_not_matter(series):
    plain = OperatorKernelVAR().fit(series)
    scaled = OperatorKernelVAR().fit(series * 100.0 + 7.0)
    np.testing.assert_allclose(scaled.granger_, plain.granger_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(scaled.forecast(3), plain.forecast(3) * 100.0 + 7.0, rtol=1e-6)


@pytest.mark.parametrize("penalty", ["frobenius", "schatten", "elastic", "entrywise"])
def test_penalties(penalty, series):
    model = OperatorKernelVAR(penalty=penalty).fit(series)
    assert model.duality_gap_ <= 1e-6 * model.objective_
    assert np.linalg.eigvalsh(model.output_kernel_)[0] > -1e-10


@KINDS
def test_odd_series(kernel, rng):
    x = np.column_stack([rng.normal(size=30), np.full(30, 7.0)])
    model = OperatorKernelVAR(kernel).fit(x)
    np.testing.assert_allclose(model.forecast(3)[:, 1], 7.0)
    one = OperatorKernelVAR(kernel).fit(x[:, :1])
    assert one.granger_.shape == (1, 1)
    assert np.isfinite(OperatorKernelVAR(kernel).fit(x[:3]).forecast(2)).all()


def test_bad_series(series):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        OperatorKernelVAR().fit(series[:1])
    model = OperatorKernelVAR(lags=3).fit(series)
    with pytest.raises(ValueError, match="X must have at least 3 steps with lags=3, got 2"):
        model.forecast(1, series[:2])
    with pytest.raises(ValueError, match="X must have at least 4 steps with lags=3, got 3"):
        model.one_step(series[:3])
    with pytest.raises(ValueError, match="steps must be a whole number of at least 1"):
        model.forecast(0)
    with pytest.raises(NotFittedError):
        OperatorKernelVAR().forecast(1)
    with pytest.warns(ConvergenceWarning, match="has not converged to tol=1e-09"):
        OperatorKernelVAR(alpha=0.001, solver_params={"max_iter": 2, "tol": 1e-09}).fit(series)


@pytest.mark.parametrize("kernel", ["hadamard", "additive"])
def test_a_grid_search_over_later_steps_chooses_alpha(series, kernel):
    """Scores are those of fits to earlier steps on the later steps of a split."""
    cv = TimeSeriesSplit(3)
    search = GridSearchCV(OperatorKernelVAR(kernel), {"alpha": [0.01, 1.0, 100.0]}, cv=cv).fit(
        series
    )
    train, test = list(cv.split(series))[-1]
    for number, alpha in enumerate([0.01, 1.0, 100.0]):
        score = OperatorKernelVAR(kernel, alpha=alpha).fit(series[train]).score(series[test])
        assert search.cv_results_["split2_test_score"][number] == pytest.approx(score, rel=1e-6)
    assert search.best_params_["alpha"] < 100.0
    assert search.best_estimator_.forecast(2).shape == (2, series.shape[1])
