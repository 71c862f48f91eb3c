"""Kernel estimators with weights and data in any unit, and with arguments at the edge."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorKernelVAR,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from entangled_kernels.kernels import SeparableKernel

BOTH = [True, False]


@pytest.fixture
def table(rng):
    X = rng.normal(size=(30, 3))
    Y = np.tanh(X @ rng.normal(size=(3, 4))) + 0.1 * rng.normal(size=(30, 4))
    return X, Y, rng.uniform(0.5, 2.0, 30)


SEARCH = OutputKernelRidgeCV("rbf", gamma=0.3, cv=3)
UNITS = 10.0 ** np.linspace(-8, 8, 4)


@pytest.mark.parametrize("constraint", BOTH)
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_search_ignores_factors_of_weights_targets_and_scaled_inputs(table, factor, constraint):
    X, Y, w = table
    model = SEARCH.set_params(constraint=constraint)
    deviation = 1e-6 * Y.std(axis=0)
    expected = model.fit(X, Y, w).predict(X)
    assert (np.abs(model.fit(X, Y, factor * w).predict(X) - expected) < deviation).all()
    assert (
        np.abs(model.fit(X, factor**2 * Y, w).predict(X) / factor**2 - expected) < deviation
    ).all()
    scaled = make_pipeline(StandardScaler(), model)
    expected = scaled.fit(X, Y).predict(X)
    assert (
        np.abs(scaled.fit(100 * factor * X, Y).predict(100 * factor * X) - expected) < deviation
    ).all()


@pytest.mark.parametrize(
    "model",
    [
        OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(4), gamma=1 / 3), alpha=0.1),
        OperatorValuedKernelRidge(
            SeparableKernel("rbf", np.eye(4), gamma=1 / 3), alpha=0.1, solver="dense"
        ),
        OutputKernelRidge("rbf", alpha=0.1, output_kernel=np.eye(4), fit_intercept=False),
        MultipleKernelRidge(["rbf"], alpha=0.1, normalize=False, fit_intercept=False),
    ],
    ids=["kronecker", "dense", "output_kernel", "multiple_kernels"],
)
@pytest.mark.parametrize("unit", [1e-12, 1e12, UNITS], ids=["small", "large", "units"])
def test_given_penalties_agree_with_kernel_ridge_in_any_unit(table, model, unit):
    X, Y, w = table
    for factor in (1e-6, 1.0, 1e6):
        reference = KernelRidge(alpha=0.1, kernel="rbf").fit(X, Y, factor * w).predict(X)
        predicted = model.fit(X, unit * Y, factor * w).predict(X) / unit
        assert (np.abs(predicted - reference) < 1e-6 * Y.std(axis=0)).all()


@pytest.mark.parametrize(
    "model",
    [
        OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(4), gamma=1 / 3), alpha=0.1),
        OperatorValuedKernelRidge(
            SeparableKernel("rbf", np.eye(4), gamma=1 / 3), alpha=0.1, solver="cg"
        ),
        OutputKernelRidge("rbf", alpha=0.1, output_kernel=np.eye(4), fit_intercept=False),
        MultipleKernelRidge(["rbf"], alpha=0.1, normalize=False, fit_intercept=False),
        MultipleKernelRidge(
            ["rbf"], alpha=0.1, normalize=False, fit_intercept=False, output_kernel=[np.eye(4)]
        ),
    ],
    ids=["masked", "cg", "output_kernel", "weights", "listed"],
)
@pytest.mark.parametrize("missing", [False, True])
def test_targets_in_units_of_their_own_are_kernel_ridge_of_each(table, model, missing, rng):
    """Over 16 decades, complete or on the rows that each target has."""
    X, Y, _ = table
    if missing:
        Y = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    predicted = model.fit(X, UNITS * Y).predict(X) / UNITS
    for target, values in zip(Y.T, predicted.T, strict=True):
        rows = np.isfinite(target)
        reference = KernelRidge(alpha=0.1, kernel="rbf").fit(X[rows], target[rows]).predict(X)
        np.testing.assert_allclose(values, reference, atol=1e-8)


def test_inputs_that_ended_in_other_errors(rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MultiViewKernelRidge(alpha=1e-300).fit(X, 0 * Y)
    np.testing.assert_array_equal(model.predict(X), 0.0)
    huge = {"tol": 1e300}
    assert np.isfinite(OutputKernelRidge(solver_params=huge).fit(X, Y).predict(X)).all()
    chi2 = OutputKernelRidge("chi2").fit(np.abs(X), Y)
    assert np.isfinite(chi2.predict(np.abs(X))).all()
    for gamma in (np.ones((2, 2)), "x"):
        with pytest.raises(TypeError, match="gamma must be a number"):
            OutputKernelRidge("rbf", gamma=gamma).fit(X, Y)
    for kind in (MultiViewKernelRidge, MultipleKernelRidge, OutputKernelRidge):
        with pytest.raises(ValueError, match="X must have values"):
            kind().fit(1e160 * X, Y)
    with pytest.raises(ValueError, match="the fit overflows"):
        MultiViewKernelRidge(alpha=1e-300, eta=1e-300).fit(X, Y)
    huge = OutputKernelRidge(
        alpha=1e300,
        gamma=1e8,
        constraint=True,
        fit_intercept=False,
        penalty="elastic",
        solver_params={"max_iter": 1},
    )
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="the fit overflows"):
        huge.fit(X, Y)


def test_a_constant_kernel_adds_nothing(rng):
    X = np.column_stack([rng.normal(size=20), np.full(20, 0.1)])
    model = MultipleKernelRidge({"a": [0], "constant": [1]}).fit(X, X[:, 0])
    np.testing.assert_allclose(model.contributions(X)[1], 0.0, atol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_calls_that_ended_in_divisions_by_zero():
    series = np.zeros((20, 1))
    assert np.isfinite(OperatorKernelVAR(alpha=1e-60).fit(series).one_step(series)).all()
    X, weight = np.arange(20.0).reshape(10, 2), np.where(np.arange(10) < 2, 0.0, 1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        OutputKernelRidgeCV("rbf", cv=[([0, 1], [2, 3])], constraint=True).fit(X, X, weight)
