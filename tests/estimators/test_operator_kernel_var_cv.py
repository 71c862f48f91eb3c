import numpy as np
import pytest
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import OperatorKernelVAR, OperatorKernelVARCV

from reference.autoregression import sparse_series


@parametrize_with_checks(
    [OperatorKernelVARCV(cv=2), OperatorKernelVARCV("additive", alphas=[0.1, 1.0], cv=2)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def series(rng):
    return sparse_series(rng, p=3, steps=50)[0]


@pytest.mark.parametrize("kernel", ["hadamard", "additive"])
def test_against_refitting(kernel, series):
    """Every alpha on every time-ordered split, from the definition of the score."""
    model = OperatorKernelVARCV(kernel, alphas=[0.01, 1.0, 100.0], cv=3, lags=2).fit(series)
    splits = list(TimeSeriesSplit(3).split(series))
    for number, alpha in enumerate((0.01, 1.0, 100.0)):
        for i, (train, test) in enumerate(splits):
            fit = OperatorKernelVAR(kernel, alpha=alpha, lags=2).fit(series[train])
            context = series[train[-1] - 1 : test[-1] + 1]
            error = np.mean(((series[test] - fit.one_step(context)) / fit.scale_) ** 2)
            assert model.cv_results_[f"split{i}_test_score"][number] == pytest.approx(1 - error)
    best = int(np.argmax(model.cv_results_["mean_test_score"]))
    assert model.alpha_ == (0.01, 1.0, 100.0)[best]
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    again = OperatorKernelVAR(kernel, alpha=model.alpha_, lags=2).fit(series)
    np.testing.assert_array_equal(model.forecast(4), again.forecast(4))
    np.testing.assert_array_equal(model.granger_, again.granger_)


def test_splits_keep_to_the_order_of_time(series):
    with pytest.raises(ValueError, match="cv must test on steps after all it learns from"):
        OperatorKernelVARCV(cv=KFold(3)).fit(series)
    given = [(np.arange(30), np.arange(30, 40)), (np.arange(40), np.arange(40, 50))]
    assert OperatorKernelVARCV(cv=given, alphas=[1.0]).fit(series).n_splits_ == 2
    with pytest.raises(ValueError, match=r"cv=40 leaves .* of n_samples = 50 steps to learn from"):
        OperatorKernelVARCV(cv=40, lags=12).fit(series)
    with pytest.raises(ValueError, match="cannot split n_samples = 50 steps"):
        OperatorKernelVARCV(cv=60).fit(series)


def test_bad_alphas(series):
    with pytest.raises(ValueError, match="alphas must hold at least one value"):
        OperatorKernelVARCV(alphas=[]).fit(series)
    with pytest.raises(ValueError, match="alphas must be a positive number, got -1"):
        OperatorKernelVARCV(alphas=[-1.0]).fit(series)
