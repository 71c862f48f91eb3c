"""Random calls of the kernel estimators, silly arguments included, and data in any unit."""

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorKernelVAR,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from entangled_kernels.kernels import CurlFreeKernel, KrausKernel, SeparableKernel

SILLY = [0, -1, 1e300, np.nan, np.inf, "x", None, [], True, 10**30, (1, 2), np.ones((2, 2))]
ALPHAS = [1.0, 0.1, 1e-3, 1e-8, 1e5, 1e-30, 1e-300, 1e300]
PENALTIES = ["frobenius", "schatten", "trace", "elastic", "cluster", "entrywise"]
BOTH = [True, False]
T = np.array([[1.0, 0.3], [0.3, 1.0]])
KERNELS = ["linear", "rbf", "poly", "laplacian", "sigmoid", "chi2", "precomputed"]
GROUPS = [None, ["linear", "rbf"], {"a": [0]}, [("a", "rbf", [0]), ("b", "linear", slice(None))]]
SOLVING = {"solver_params": [None, {"max_iter": 30}, {"max_iter": 1}, {"tol": 0.01}]}
SPACES = {
    OutputKernelRidge: {
        "kernel": KERNELS,
        "gamma": [None, 0.1, 1e8],
        "alpha": ALPHAS,
        "penalty": PENALTIES,
        "constraint": BOTH,
        "rank": [None, None, 1, 2],
        "output_kernel": [None, None, T],
        "fit_intercept": BOTH,
        **SOLVING,
    },
    OutputKernelRidgeCV: {
        "kernel": KERNELS,
        "alphas": [None, [1.0, 0.1], [1e-300]],
        "penalty": ["frobenius", "trace", ["frobenius", "schatten"]],
        "constraint": BOTH,
        "cv": [2, 3, [([0, 1], [2])], np.ones((2, 2))],
        "scoring": ["nmse", "r2"],
        "solver_params": [{"max_iter": 20}],
    },
    MultipleKernelRidge: {
        "kernels": GROUPS,
        "alpha": ALPHAS,
        "norm": [1.0, 1.5, 50.0],
        "output_kernel": ["identity", "diagonal", "shared", "own", T, [np.eye(2), T]],
        "normalize": BOTH,
        "fit_intercept": BOTH,
        **SOLVING,
    },
    MultiViewKernelRidge: {
        "views": GROUPS,
        "alpha": ALPHAS,
        "eta": ALPHAS,
        "sparse": BOTH,
        **SOLVING,
    },
    MultiViewKernelClassifier: {"views": GROUPS, "alpha": ALPHAS, "sparse": BOTH, **SOLVING},
    OperatorKernelVAR: {
        "kernel": ["hadamard", "additive"],
        "lags": [1, 2],
        "alpha": ALPHAS,
        "gamma": [None, 0.0, 1e8],
        "output_gamma": [None, 0.0, 1e8],
        "penalty": ["frobenius", "schatten", "elastic", "entrywise"],
        **SOLVING,
    },
    OperatorValuedKernelRidge: {
        "kernel": [
            None,
            SeparableKernel("rbf", T),
            SeparableKernel("sigmoid", T),
            SeparableKernel("linear", T) + SeparableKernel("rbf", T),
            CurlFreeKernel(2),
            KrausKernel(np.ones((1, 2, 2))),
        ],
        "alpha": ALPHAS,
        "solver": ["auto", "cg", "dense", "kronecker"],
        "indefinite": ["error", "krein"],
        "max_iter": [1000, 5],
        "fit_intercept": BOTH,
    },
    OperatorFourierRidge: {
        "features": [None, OperatorFourierFeatures("curl_free", gamma=0.5)],
        "alpha": ALPHAS,
        "fit_intercept": BOTH,
    },
}


def draw_inputs(rng):
    X = rng.normal(size=(rng.choice([1, 2, 3, 8, 20]), rng.integers(1, 4)))
    kind = rng.integers(7)
    if kind == 0:
        X[:, 0] = 3.0
    elif kind == 1:
        X *= 10.0 ** rng.integers(-200, 200)
    elif kind == 2:
        X *= 10.0 ** rng.uniform(-10, 10, X.shape[1])
    elif kind == 3:
        X[:] = X[0]
    elif kind == 4:
        X += 1e8
    return X


def draw_targets(rng, n):
    Y = rng.normal(size=(n, rng.integers(1, 4)))
    kind = rng.integers(8)
    if kind == 0:
        Y[:, 0] = 2.0
    elif kind == 1:
        Y *= 10.0 ** rng.integers(-200, 200)
    elif kind == 2:
        Y *= 10.0 ** rng.uniform(-10, 10, Y.shape[1])
    elif kind == 3:
        Y[:] = 0.0
    elif kind == 4:
        Y[rng.random(Y.shape) < 0.3] = np.nan
    elif kind == 5:
        Y += 1e9
    return Y


def draw_weights(rng, shape):
    kind = rng.integers(8)
    if kind < 4:
        return None
    if kind == 4:
        return 10.0 ** rng.uniform(-30, 30, shape[0])
    if kind == 5:
        return np.full(shape[0], 10.0 ** rng.integers(-300, 308))
    return rng.uniform(0, 1, shape) * (rng.random(shape) < 0.8)


def fit_and_predict(seed):
    """Fit a random estimator to random data; return what it predicts for these rows."""
    rng = np.random.default_rng(seed)
    kind = list(SPACES)[seed % len(SPACES)]
    pick = {
        name: SILLY[rng.integers(len(SILLY))]
        if rng.random() < 0.02
        else values[rng.integers(len(values))]
        for name, values in SPACES[kind].items()
    }
    model, X = kind(**pick), draw_inputs(rng)
    if kind is OperatorKernelVAR:
        model.fit(X)
        return [model.one_step(X), model.forecast(2), model.jacobian(X), model.granger_]
    if kind is MultiViewKernelClassifier:
        model.fit(X, rng.integers(0, 3, len(X)), draw_weights(rng, (len(X),)))
        return [model.decision_function(X)]
    Y = draw_targets(rng, len(X))
    X = X @ X.T if pick.get("kernel") == "precomputed" else X
    model.fit(X, Y, draw_weights(rng, (len(X),) if kind is OperatorFourierRidge else Y.shape))
    return [model.predict(X)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_calls_predict_or_raise_a_sentence(first):
    for seed in range(first, first + 20):
        begin = time.process_time()
        with np.errstate(all="ignore"):
            try:
                values = fit_and_predict(seed)
            except (ValueError, TypeError, NotFittedError) as error:
                # NumPy's LinAlgError is a ValueError, and no sentence.
                if isinstance(error, np.linalg.LinAlgError):
                    raise
                continue
        assert all(np.isfinite(value).all() for value in values), seed
        assert time.process_time() - begin < 60.0, seed


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


@pytest.mark.parametrize("kind", list(SPACES))
def test_weights_that_overflow_are_refused_by_name(kind, rng):
    if kind is OperatorKernelVAR:
        return
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    for weights in (np.full(12, 1e300), np.full(12, 1e308)):
        with pytest.raises(ValueError, match="sample_weight"):
            kind().fit(X, y, weights)


def test_inputs_that_ended_in_other_errors(rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MultiViewKernelRidge(alpha=1e-300).fit(X, 0 * Y)
    np.testing.assert_array_equal(model.predict(X), 0.0)
    for cv in (np.ones((2, 2)), []):
        with pytest.raises(ValueError, match="cv must"):
            OutputKernelRidgeCV(cv=cv).fit(X, Y)
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


def test_a_constant_kernel_adds_nothing(rng):
    X = np.column_stack([rng.normal(size=20), np.full(20, 0.1)])
    model = MultipleKernelRidge({"a": [0], "constant": [1]}).fit(X, X[:, 0])
    np.testing.assert_allclose(model.contributions(X)[1], 0.0, atol=1e-10)
