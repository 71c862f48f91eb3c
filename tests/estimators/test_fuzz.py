"""Random calls of all public estimators and feature maps, silly arguments and data included."""

import pickle
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    TargetProcessFeatures,
)

from reference.random_calls import call_at_random


def check_call(seed):
    """Fail on any error that is no sentence, on predictions that are not finite, and on long calls."""
    begin = time.process_time()
    with np.errstate(all="ignore"):
        try:
            values = call_at_random(seed)
        except (ValueError, TypeError, NotFittedError) as error:
            # NumPy's LinAlgError is a ValueError, and no sentence.
            if isinstance(error, np.linalg.LinAlgError):
                raise
            return
    assert all(np.isfinite(value).all() for value in values), seed
    assert time.process_time() - begin < 60.0, seed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 180, 30))
def test_random_calls_give_numbers_or_raise_a_sentence(first):
    """A few of the calls of benchmarks/fuzz.py."""
    for seed in range(first, first + 30):
        check_call(seed)


@pytest.mark.parametrize("cv", [np.ones((2, 2)), [([0, 1], [99])], [(0.5, 1)], object()])
def test_splits_that_are_none_are_refused(cv, rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    with pytest.raises(ValueError, match="cv must be"):
        EntangledKernelRidgeCV(None, cv=cv).fit(X, Y)


@pytest.mark.parametrize("value", [1e-300, 1e300])
def test_penalties_that_cannot_be_squared_are_refused(value, rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    for model in (
        EntangledKernelRidge(alpha=value),
        EntangledKernelRidge(target_alpha=value),
        EntangledKernelRidgeCV(None, alphas=[value]),
        OperatorFourierRidge(alpha=value),
        OperatorFourierRidge(OperatorFourierFeatures(gamma=value)),
    ):
        with pytest.raises(ValueError, match=r"between 1e-70 and 1e\+70"):
            model.fit(X, Y)


@pytest.mark.parametrize("factor", [1e30, 1e65])
def test_processes_of_targets_take_rows_of_any_weight(factor, rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    weight = np.where(np.arange(12) < 6, factor, 1.0)
    Phi = TargetProcessFeatures(spread=0.0, random_state=0).fit_transform(X, Y, weight)
    assert np.isfinite(Phi).all()


@pytest.mark.parametrize(("d", "n_maps"), [(60, 5), (250, 3)])
def test_wide_tables_try_fewer_maps(d, n_maps, rng):
    X = rng.normal(size=(20, d))
    model = EntangledKernelRidgeCV(cv=2, param_grid={"shrinkage": [1.0]}, random_state=0)
    model.fit(X, X[:, :2] + 0.1 * rng.normal(size=(20, 2)))
    assert len(np.unique(model.cv_results_["param_feature_map"])) == n_maps


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pickle_keeps_all_results_and_no_doubles(weighted, rng):
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 50))
    weight = rng.uniform(0.5, 2.0, Y.shape) if weighted else None
    model = EntangledKernelRidgeCV(None, cv=3, random_state=0).fit(X, Y, weight)
    file = pickle.dumps(model)
    again = pickle.loads(file)
    assert again.cv_results_.keys() == model.cv_results_.keys()
    for name, column in model.cv_results_.items():
        np.testing.assert_array_equal(again.cv_results_[name], column)
        assert again.cv_results_[name].dtype == column.dtype
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), model.predict_interval(X, 0.8))
    one, other = again.best_estimator_, model.best_estimator_
    np.testing.assert_array_equal(one.predict_interval(X, 0.8), other.predict_interval(X, 0.8))
    if not weighted:
        assert len(file) < 12 * Y.nbytes
