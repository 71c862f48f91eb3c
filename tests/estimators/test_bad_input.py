"""Every bad argument is named, with what it got and what it needs; odd but valid tables work."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorFourierRidge,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
)
from entangled_kernels.estimators import NoveltyWarning, entangled_kernel_ridge
from entangled_kernels.learning.solvers import SOLVERS


@pytest.fixture
def rows(make_rows):
    return make_rows(20, 4, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "newton"}, "solver must be one of 'closed-form', .*, got 'newton'"),
        ({"prediction": "ptr"}, "prediction must be one of"),
        ({"alpha": 0}, "alpha must be a positive number, got 0"),
        ({"alpha": -1.0}, "alpha must be a positive number, got -1.0"),
        ({"alpha": np.nan}, "alpha must be a positive number, got nan"),
        ({"alpha": "big"}, "alpha must be a positive number, got 'big' of type str"),
        ({"alpha": True}, "alpha must be a positive number, got True"),
        ({"target_alpha": -0.1}, "target_alpha must be a number of at least 0, got -0.1"),
        ({"shrinkage": 1.5}, "shrinkage must be a number between 0 and 1, got 1.5"),
        ({"alignment_mix": -0.5}, "alignment_mix must be a number between 0 and 1, got -0.5"),
        ({"solver_params": 3}, "solver_params must be None or a dictionary"),
        ({"solver_params": {"steps": 3}}, "solver_params must have keys .*'steps'"),
        ({"solver_params": {"init": None}}, "init.* must be one of 'identity', 'random'"),
        ({"solver_params": {"max_iter": 0}}, "max_iter.* must be a whole number of at least 1"),
        ({"solver_params": {"max_iter": 2.5}}, "max_iter.* must be a whole number"),
        ({"solver_params": {"tol": -1}}, "tol.* must be a number of at least 0, got -1"),
        ({"rank": 13}, r"the full rank 12 \(4 features times 3 outputs\), got 13"),
        ({"rank": 0}, "rank must be None, a whole number of at least 1, .*, got 0"),
        ({"rank": 1.5}, "rank must be None, a whole number of at least 1, or a fraction"),
        ({"rank": "half"}, "rank must be None, a whole number"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False, got 'no'"),
        ({"feature_map": "rbf"}, "feature_map must be None or a transformer .* got 'rbf'"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_parameters(rows, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        EntangledKernelRidge(**settings).fit(*rows)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(rows, bad):
    X, Y = rows
    model = EntangledKernelRidge().fit(X, Y)
    spoilt_X, spoilt_Y = X.copy(), Y.copy()
    spoilt_X[3, 1] = spoilt_Y[2, 0] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        EntangledKernelRidge().fit(spoilt_X, Y)
    if np.isinf(bad):
        with pytest.raises(ValueError, match=r"Input y contains infinity .* in column 0"):
            EntangledKernelRidge().fit(X, spoilt_Y)
    spoilt_X[3, 0] = -bad
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            method(spoilt_X)


def test_not_finite_in_a_feature_that_is_not_used(rows):
    X, Y = rows
    X = np.hstack([X, np.ones((20, 1))])
    model = EntangledKernelRidge().fit(X, Y)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(19), r"sample_weight must be .* got shape \(19,\)"),
        (-np.ones(20), "sample_weight must be finite and not negative"),
        (np.full(20, np.nan), "sample_weight must be finite and not negative"),
        (np.zeros(20), "got zero weights only"),
        ("a", r"sample_weight must be a number.* got 'a'"),
        (np.full(20, 1e300), "sample_weight must be so small"),
        (1e300, "sample_weight must be so small"),
        (np.full((20, 3), 1e300), "sample_weight must be so small"),
        (np.eye(20)[0], "at least 2 rows of positive sample_weight are needed, got 1"),
    ],
)
def test_weights(rows, weight, message):
    with pytest.raises(ValueError, match=message):
        EntangledKernelRidge().fit(*rows, sample_weight=weight)


@pytest.mark.parametrize("unit", [1e-200, 1e-100, 1e100, 1e200])
def test_values_that_cannot_be_squared(rows, unit):
    X, Y = rows
    with pytest.raises(ValueError, match=r"X must have values between .* got .* as the largest"):
        EntangledKernelRidge().fit(X * unit, Y)
    with pytest.raises(ValueError, match="y must have values between"):
        EntangledKernelRidge().fit(X, Y * unit)
    with pytest.raises(ValueError, match="the output of feature_map must have values between"):
        EntangledKernelRidge(FunctionTransformer(lambda X: X * unit)).fit(X, Y)


def test_large_steps_are_announced(rows, monkeypatch):
    monkeypatch.setattr(entangled_kernel_ridge, "LARGE_STEP", 1000)
    with pytest.warns(UserWarning, match="multiplies matrices of 12 x 12"):
        EntangledKernelRidge(solver="ascent", solver_params={"max_iter": 1}).fit(*rows)
    EntangledKernelRidge(solver="ascent", rank=2, solver_params={"max_iter": 1}).fit(*rows)
    EntangledKernelRidge().fit(*rows)


@pytest.fixture(
    params=itertools.product(SOLVERS, ("entangled", "partial_trace"), (True, False)),
    ids=lambda param: "-".join(map(str, param)),
)
def fit(request):
    """Fit and look at what came out; warnings are errors in these tests, so none reaches the user either."""
    solver, prediction, fit_intercept = request.param

    def fit(X, Y):
        model = EntangledKernelRidge(
            solver=solver,
            prediction=prediction,
            fit_intercept=fit_intercept,
            solver_params={"max_iter": 20},
        ).fit(X, Y)
        assert np.isfinite(model.predict(X, return_std=True)).all()
        assert 0 <= model.alignment_ <= 1 + 1e-12
        return model

    return fit


def test_constant_targets(fit, rows):
    X, Y = rows
    model = fit(X, np.full_like(Y, 0.1))
    assert model.coef_.shape == (3, 4)
    if model.fit_intercept:
        np.testing.assert_allclose(model.predict(X), 0.1)
        assert model.alignment_ == 0
    else:
        # All targets are the same column.
        np.testing.assert_allclose(model.coef_ - model.coef_[0], 0.0, atol=1e-10)


def test_constant_features(fit, rows):
    X, Y = np.full_like(rows[0], 0.7), rows[1]
    model = fit(X, Y)
    # Rows that are all alike are predicted alike.
    np.testing.assert_allclose(model.predict(X) - model.predict(X)[0], 0.0, atol=1e-12)
    if model.fit_intercept:
        np.testing.assert_allclose(model.predict(X), np.tile(Y.mean(axis=0), (20, 1)))


def test_zero_table(fit, rows):
    X, Y = rows
    model = fit(np.zeros_like(X), np.zeros_like(Y))
    with pytest.warns(NoveltyWarning):
        assert not model.predict(X).any()


def test_duplicated_features(fit, rows):
    X, Y = rows
    model = fit(np.hstack([X, X]), Y)
    np.testing.assert_allclose(model.coef_[:, :4], model.coef_[:, 4:], atol=1e-8)


def test_duplicated_targets(fit, rows):
    X, Y = rows
    model = fit(X, np.hstack([Y, Y]))
    np.testing.assert_allclose(model.predict(X)[:, :3], model.predict(X)[:, 3:], atol=1e-8)


def test_two_samples(fit, rows):
    X, Y = rows
    model = fit(X[:2], Y[:2])
    assert model.full_rank_ >= 1
    # Two rows and an intercept: the model is the mean and one slope, so the mean of both is met.
    if model.fit_intercept:
        np.testing.assert_allclose(model.predict(X[:2]).mean(axis=0), Y[:2].mean(axis=0))


def test_units_of_the_targets_pass_through(fit, rows):
    X, Y = rows
    plain = fit(X, Y).predict(X)
    for unit in (1e-60, 1e60):
        np.testing.assert_allclose(fit(X, Y * unit).predict(X) / unit, plain, rtol=1e-6)


def test_feature_map_may_take_what_arrays_cannot_hold(rows):
    _, Y = rows
    colours = np.array([["red"], ["blue"], ["green"], ["blue"]] * 5, dtype=object)
    model = EntangledKernelRidge(OneHotEncoder()).fit(colours, Y)
    assert model.predict(colours).shape == (20, 3)
    assert model.coef_.shape == (3, 3)


ESTIMATORS = [
    EntangledKernelRidge(),
    EntangledKernelRidge(StandardScaler()),
    EntangledKernelRidgeCV(None, cv=2),
    EntangledKernelRidge(EvidenceFeatures()),
    OutputKernelRidge(),
    MultipleKernelRidge(),
    OperatorFourierRidge(),
    OperatorValuedKernelRidge(),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model)[:40])
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("oops", r"X must hold numbers, got text in .*'net load'"),
        (np.nan, r"contains NaN in column 'net load'; leave these rows out"),
        (np.inf, r"contains infinity .* in column 'net load'"),
        (pd.Timestamp("2024-03-12"), r"got dates or times in column 'net load'; leave them out"),
    ],
)
def test_columns_of_data_frames_are_named(rows, model, cell, sentence):
    frame, Y = pd.DataFrame(rows[0], columns=["a", "net load", "c", "d"]), rows[1]
    bad = frame.astype({"net load": object}) if isinstance(cell, str) else frame.copy()
    if isinstance(cell, pd.Timestamp):
        bad["net load"] = cell
    else:
        bad.loc[3, "net load"] = cell
    with pytest.raises(ValueError, match=sentence):
        clone(model).fit(bad, Y)
    fitted = clone(model).fit(frame, Y)
    with pytest.raises(ValueError, match=sentence):
        fitted.predict(bad)


@pytest.mark.parametrize(
    ("model", "cell", "what"),
    [
        # For others a NaN is a missing target.
        (OperatorFourierRidge(), np.nan, "NaN"),
        (OperatorFourierRidge(), np.inf, "infinity"),
        (MultipleKernelRidge(), np.inf, "infinity"),
        (MultiViewKernelRidge(), np.inf, "infinity"),
    ],
)
def test_columns_of_targets_are_named(rows, model, cell, what):
    Y = pd.DataFrame(rows[1], columns=["x", "y", "z"])
    Y.loc[2, "z"] = cell
    with pytest.raises(ValueError, match=f"y contains {what}.* in column 'z'; y must hold finite"):
        model.fit(rows[0], Y)
