"""The methods that are compared: what a plan fits, and that each selects on the given folds."""

import numpy as np
import pytest
from sklearn.datasets import load_linnerud
from sklearn.linear_model import Ridge

from entangled_kernels.experiments import PROTOCOLS, compare_methods
from entangled_kernels.experiments.agreement import SHARED
from entangled_kernels.experiments.methods import (
    DESCRIPTIONS,
    LAMBDAS,
    NEED_COMPLETE_TARGETS,
    Plan,
    fit_methods,
    shuffled_folds,
    tuned_learner,
)
from entangled_kernels.experiments.protocol import nmse, partitions


# The likelihood of so few rows may be flat.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_of_a_plan_is_fitted_and_predicts(make_rows):
    X, Y = make_rows(16, 3, 2)
    plan = Plan("paper", tuple(DESCRIPTIONS), n_steps=3)
    fitted = fit_methods(plan, X, X, Y, shuffled_folds(16, 0), 0)
    assert list(fitted) == list(plan.descriptions()) == list(DESCRIPTIONS)
    for method in fitted.values():
        prediction = np.asarray(method.predict(X[:5]))
        assert prediction.shape == (5, 2)
        assert np.isfinite(prediction).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_method_with_the_lower_cross_validated_error_is_picked(make_rows, protocol):
    X, Y = make_rows(16, 3, 2)
    variants = ("", ", early") if protocol == "paper" else ("",)
    names = [name + variant for variant in variants for name in ("EKL", "ptrEKL", SHARED)]
    fitted = fit_methods(Plan(protocol, tuple(names), n_steps=3), X, X, Y, shuffled_folds(16, 0), 0)
    for variant in variants:
        both = [fitted[name + variant] for name in ("EKL", "ptrEKL")]
        assert both[0].cv_error != both[1].cv_error
        best = min(both, key=lambda method: method.cv_error)
        np.testing.assert_array_equal(fitted[SHARED + variant].predict(X), best.predict(X))


def test_a_bound_on_the_rank_is_kept(make_rows):
    X, Y = make_rows(16, 4, 3)
    bounded = tuned_learner("EKL", X, Y, shuffled_folds(16, 0), 0, rank=0.2).fit(X, Y)
    assert len(bounded.kraus_) <= 0.2 * 4 * 3


def test_kernel_ridge_of_the_paper_is_ridge_selected_on_the_folds():
    X, Y = load_linnerud(return_X_y=True)
    results = compare_methods(
        X, Y, methods=("KRR",), train_sizes=(14,), repeats=1, protocol="paper"
    )
    _, train, test, seed = next(partitions(20, 14, 1, 0))
    X_train, Y_train = X[train], Y[train]
    weights = np.var(Y_train, axis=0)

    def held_out(alpha):
        errors = []
        for inner, outer in shuffled_folds(14, seed):
            model = Ridge(alpha=alpha, fit_intercept=False).fit(X_train[inner], Y_train[inner])
            errors.append(np.mean((Y_train[outer] - model.predict(X_train[outer])) ** 2 / weights))
        return np.mean(errors)

    best = Ridge(alpha=min(LAMBDAS, key=held_out), fit_intercept=False).fit(X_train, Y_train)
    assert results.records[0]["nmse"] == pytest.approx(
        nmse(Y[test], best.predict(X[test])), rel=1e-6
    )


def test_lambda_one_is_ridge_of_one(make_rows):
    X, Y = make_rows(16, 3, 2)
    plan = Plan("paper", ("KRR, lambda 1",))
    fitted = fit_methods(plan, X, X, Y, shuffled_folds(16, 0), 0)["KRR, lambda 1"]
    expected = Ridge(alpha=1.0, fit_intercept=False).fit(X, Y).predict(X)
    np.testing.assert_allclose(fitted.predict(X), expected, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_missing_targets_are_left_out_of_every_method(make_rows):
    """Every method is fitted to the rows that have a target."""
    X, Y = make_rows(24, 3, 2)
    Y[:4, 0] = np.nan
    Y[10, 1] = np.nan
    methods = (*NEED_COMPLETE_TARGETS, "gaussian-process", "KRR", "OKL", "ptrEKL")
    fitted = fit_methods(Plan("fair", methods), X, X, Y, None, 0)
    for name, method in fitted.items():
        assert np.isfinite(np.asarray(method.predict(X))).all(), name
    np.testing.assert_allclose(fitted["mean"].predict(X[:1])[0], np.nanmean(Y, axis=0))
    complete = fit_methods(Plan("fair", ("ridge",)), X[4:], X[4:], Y[4:, :1], None, 0)
    expected = np.ravel(complete["ridge"].predict(X))
    np.testing.assert_allclose(fitted["ridge"].predict(X)[:, 0], expected)
