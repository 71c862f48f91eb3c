"""The methods compared: what a plan fits, and that each chooses on the folds it is given."""

import numpy as np
import pytest
from sklearn.datasets import load_linnerud
from sklearn.linear_model import Ridge

from entangled_kernels.experiments import METHODS, PROTOCOLS, compare_methods
from entangled_kernels.experiments.agreement import SHARED
from entangled_kernels.experiments.methods import (
    COMMON_METHODS,
    LAMBDAS,
    PICKED,
    Plan,
    fit_methods,
)
from entangled_kernels.experiments.protocol import folds_of, nmse, partitions


# The likelihood of so few rows may be flat.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_method_of_a_plan_is_fitted_and_predicts(make_rows, protocol):
    X, Y = make_rows(16, 3, 2)
    plan = Plan(protocol, tuple(METHODS), n_steps=3, fixed=True)
    fitted = list(fit_methods(plan, X, X, Y, folds_of(16, 0), 0))
    assert {one.label for one in fitted} == set(plan.labels())
    assert {one.label for one in fitted if one.takes_inputs} == set(COMMON_METHODS)
    for one in fitted:
        prediction = np.asarray(one.predict(X[:5]))
        assert prediction.shape == (5, 2)
        assert np.isfinite(prediction).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_row_in_common_is_the_one_with_the_lower_cross_validated_error(make_rows, protocol):
    X, Y = make_rows(16, 3, 2)
    plan = Plan(protocol, ("KRR", "EKL", "ptrEKL"), n_steps=3, picked=True)
    fitted = {one.label: one for one in fit_methods(plan, X, X, Y, folds_of(16, 0), 0)}
    assert set(fitted) == set(plan.labels())
    forms = ("", ", early") if protocol == "paper" else ("",)
    assert {SHARED + form for form in forms} == set(fitted) & set(PICKED)
    for form in forms:
        both = [fitted[name + form] for name in ("EKL", "ptrEKL")]
        assert both[0].cv_error != both[1].cv_error
        best = min(both, key=lambda one: one.cv_error)
        np.testing.assert_array_equal(fitted[SHARED + form].predict(X), best.predict(X))


def test_a_bound_on_the_rank_is_kept(make_rows):
    X, Y = make_rows(16, 4, 3)
    bounded, full = (
        {one.label: one for one in fit_methods(Plan(rank=rank), X, X, Y, folds_of(16, 0), 0)}
        for rank in (0.2, None)
    )
    chosen = bounded["EKL"].predict.__self__
    assert chosen.param_grid["rank"] == [0.2]
    np.testing.assert_array_equal(bounded["KRR"].predict(X), full["KRR"].predict(X))


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
        for inner, outer in folds_of(14, seed):
            model = Ridge(alpha=alpha, fit_intercept=False).fit(X_train[inner], Y_train[inner])
            errors.append(np.mean((Y_train[outer] - model.predict(X_train[outer])) ** 2 / weights))
        return np.mean(errors)

    best = Ridge(alpha=min(LAMBDAS, key=held_out), fit_intercept=False).fit(X_train, Y_train)
    assert results.records[0]["nmse"] == pytest.approx(
        nmse(Y[test], best.predict(X[test])), rel=1e-6
    )


def test_lambda_one_is_ridge_of_one(make_rows):
    X, Y = make_rows(16, 3, 2)
    plan = Plan("paper", ("KRR",), fixed=True)
    fitted = {one.label: one for one in fit_methods(plan, X, X, Y, folds_of(16, 0), 0)}
    expected = Ridge(alpha=1.0, fit_intercept=False).fit(X, Y).predict(X)
    np.testing.assert_allclose(fitted["KRR, lambda 1"].predict(X), expected, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_missing_targets_are_left_out_of_every_method(make_rows):
    """A method is fitted to the rows that have a target."""
    X, Y = make_rows(24, 3, 2)
    Y[:4, 0] = np.nan
    Y[10, 1] = np.nan
    for one in fit_methods(Plan("fair", tuple(METHODS)), X, X, Y, folds_of(24, 0), 0):
        assert np.isfinite(np.asarray(one.predict(X))).all(), one.label
    plan = Plan("fair", ("mean", "ridge"))
    mean, ridge = fit_methods(plan, X, X, Y, folds_of(24, 0), 0)
    assert np.allclose(mean.predict(X[:1]), np.nanmean(Y, axis=0))
    alone = next(fit_methods(Plan("fair", ("ridge",)), X[4:], X[4:], Y[4:, :1], folds_of(20, 0), 0))
    assert np.allclose(ridge.predict(X)[:, 0], np.ravel(alone.predict(X)))
