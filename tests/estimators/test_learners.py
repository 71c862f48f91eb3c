"""What all learners around the entangled ones promise: scikit-learn, frames, pickles, copies, errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

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
from entangled_kernels.kernels import SeparableKernel

VIEWS = {"first": [0, 1], "second": [2], "third": [3]}
SHARP = {"solver_params": {"tol": 1e-7, "max_iter": 20_000}}
HADAMARD, ADDITIVE = OperatorKernelVAR(), OperatorKernelVAR("additive", lags=2)


@parametrize_with_checks(
    [
        OperatorValuedKernelRidge(),
        OperatorValuedKernelRidge(fit_intercept=True),
        OutputKernelRidge(),
        OutputKernelRidge("rbf", rank=1, fit_intercept=False),
        OutputKernelRidge(penalty="cluster"),
        OutputKernelRidgeCV(),
        OutputKernelRidgeCV("rbf", rank=1, cv=2, scoring="r2"),
        OutputKernelRidgeCV(penalty=["frobenius", "trace"], constraint=True, cv=2),
        MultipleKernelRidge(),
        MultipleKernelRidge(
            [("all", "linear", slice(None)), "rbf"], norm=2.0, output_kernel="diagonal"
        ),
        MultipleKernelRidge(output_kernel="shared"),
        MultipleKernelRidge(output_kernel="own", solver_params={"tol": 0.01, "max_iter": 20000}),
        MultiViewKernelRidge(),
        MultiViewKernelRidge(sparse=True),
        MultiViewKernelClassifier(),
        OperatorFourierRidge(),
        OperatorFourierRidge(
            OperatorFourierFeatures(gamma=0.1, random_state=1), fit_intercept=False
        ),
        HADAMARD,
        ADDITIVE,
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


LEARNERS = {
    "operator-valued": OperatorValuedKernelRidge(fit_intercept=True),
    "output kernel": OutputKernelRidge(**SHARP),
    "output kernel of rank 1": OutputKernelRidge("rbf", rank=1, **SHARP),
    "search": OutputKernelRidgeCV(alphas=[1.0], cv=3, **SHARP),
    "kernels": MultipleKernelRidge(VIEWS, solver_params={"tol": 1e-5}),
    "output kernels": MultipleKernelRidge(VIEWS, output_kernel="own", solver_params={"tol": 1e-5}),
    "views": MultiViewKernelRidge(VIEWS, **SHARP),
    "sparse views": MultiViewKernelRidge(VIEWS, sparse=True, solver_params={"tol": 1e-5}),
    "Fourier features": OperatorFourierRidge(OperatorFourierFeatures(random_state=0)),
}
EACH = pytest.mark.parametrize("name", LEARNERS)


@pytest.fixture
def rows(make_rows):
    return make_rows(24, 4, 3)


@EACH
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_in_and_out(rows, name, library):
    X, Y = rows
    plain = clone(LEARNERS[name]).fit(X, Y).predict(X)
    inputs, targets = ["a", "b", "c", "d"], ["u", "v", "w"]
    frame = library.DataFrame(dict(zip(inputs, X.T, strict=True)))
    table = library.DataFrame(dict(zip(targets, Y.T, strict=True)))
    model = clone(LEARNERS[name]).set_output(predict=library.__name__)
    model = clone(model).fit(frame, table)
    assert list(model.feature_names_in_) == inputs
    assert list(model.target_names_) == targets
    prediction = model.predict(frame[4:9])
    assert isinstance(prediction, library.DataFrame)
    assert list(prediction.columns) == targets
    # A frame has another layout in memory, and a search ends within its tolerance of the optimum.
    np.testing.assert_allclose(prediction.to_numpy(), plain[4:9], rtol=1e-4)
    if library is pd:
        assert list(prediction.index) == [4, 5, 6, 7, 8]
    series = model.fit(frame, table["v"]).predict(frame)
    assert isinstance(series, library.Series)
    assert series.name == "v"
    model.set_output(predict="default").fit(X, Y)
    assert not hasattr(model, "target_names_")
    assert isinstance(model.predict(X), np.ndarray)


@EACH
def test_pickles_one_target_and_searches(rows, name):
    X, Y = rows
    model = clone(LEARNERS[name])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-12)
    assert clone(model).fit(X, Y[:, 0]).predict(X).shape == (24,)
    assert clone(model).fit(X, Y[:, :1]).predict(X).shape == (24, 1)
    if hasattr(model, "alpha"):
        search = GridSearchCV(clone(model), {"alpha": [0.1, 1.0]}, cv=2).fit(X, Y)
        assert search.best_params_["alpha"] in (0.1, 1.0)


@EACH
def test_weights_count_copies(rows, name, rng):
    X, Y = rows
    copies = rng.integers(1, 4, size=24)
    model, many = clone(LEARNERS[name]), np.repeat(np.arange(24), copies)
    if name == "search":
        fold = np.arange(24) % 3
        splits = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(3)]
        model.set_params(cv=splits)
    weighted = model.fit(X, Y, copies).predict(X)
    if name == "search":
        splits = [
            (np.flatnonzero(fold[many] != i), np.flatnonzero(fold[many] == i)) for i in range(3)
        ]
        model.set_params(cv=splits)
    np.testing.assert_allclose(model.fit(X[many], Y[many]).predict(X), weighted, atol=1e-4)
    one = model.set_params(cv=3) if name == "search" else model
    np.testing.assert_array_equal(one.fit(X, Y, 1.0).predict(X), one.fit(X, Y).predict(X))


@pytest.mark.parametrize(
    "model",
    [
        OutputKernelRidge("rbf", alpha=0.1, rank=2),
        OutputKernelRidge("rbf", penalty="trace", alpha=0.1),
        MultipleKernelRidge(VIEWS, alpha=1e-3, output_kernel="own"),
        MultipleKernelRidge(VIEWS, alpha=1e-3),
        MultiViewKernelRidge(VIEWS, alpha=1e-3, eta=1e-3),
        OperatorKernelVAR(alpha=1e-3),
    ],
    ids=repr,
)
def test_a_search_that_runs_out_of_steps_warns(rows, model):
    X, Y = rows
    model = clone(model).set_params(solver_params={"max_iter": 1, "tol": 1e-9})
    with pytest.warns(ConvergenceWarning, match=r"after max_iter=1 steps; raise max_iter or tol"):
        model.fit(X, Y)
    assert (model.converged_, model.stop_reason_) == (False, "max_iter")
    if not isinstance(model, OperatorKernelVAR):
        hidden = np.where(np.arange(72).reshape(24, 3) % 5 == 0, np.nan, Y)
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            model.fit(X, hidden)
        assert model.duality_gap_ > 0.0


ROWS, CELLS = np.ones(24), np.ones((24, 3))
RIDGES = [clone(LEARNERS[name]) for name in ("output kernel", "kernels", "views")]


@pytest.mark.parametrize(
    "model", [OperatorValuedKernelRidge(), *RIDGES], ids=lambda m: repr(m)[:20]
)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, Y[:-1], None), "inconsistent numbers of samples"),
        (lambda X, Y: (X, Y[:, :0], None), "y must have at least one column"),
        (lambda X, Y: (X, None, None), "requires y to be passed"),
        (lambda X, Y: (X, Y * np.nan, None), r"missing values \(NaN\) only"),
        (lambda X, Y: (X, Y, ROWS[:3]), r"sample_weight .* shape \(24,\) or \(24, 3\), got"),
        (lambda X, Y: (X, Y, CELLS[:, :2]), r"sample_weight .* got shape \(24, 2\)"),
        (lambda X, Y: (X, Y, -ROWS), "sample_weight must be finite and not negative"),
        (lambda X, Y: (X, Y, 0 * ROWS), "zero weights only"),
        (lambda X, Y: (X, Y, 1e300 * ROWS), "sample_weight .*; divide all weights"),
        (lambda X, Y: (X, Y, 1e308 * CELLS), "sample_weight .*; divide all weights"),
        (lambda X, Y: (X, Y, "x"), "sample_weight must be a number"),
    ],
)
def test_targets_and_weights_that_are_refused(rows, model, change, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(*change(*rows))


MATRICES = [np.eye(3), np.eye(3), np.tri(3)]
BAD = [
    (OperatorValuedKernelRidge, {"kernel": "rbf"}, "kernel must"),
    (OperatorValuedKernelRidge, {"kernel": SeparableKernel("rbf", np.eye(2))}, "n_outputs=3"),
    (OperatorValuedKernelRidge, {"alpha": 0.0}, "alpha must"),
    (OperatorValuedKernelRidge, {"fit_intercept": "no"}, "fit_intercept must"),
    (OperatorValuedKernelRidge, {"solver": "newton"}, "solver must"),
    (OperatorValuedKernelRidge, {"solver": "low_rank"}, "needs a kernel in Kraus form"),
    (OperatorValuedKernelRidge, {"indefinite": True}, "indefinite must"),
    (OperatorValuedKernelRidge, {"tol": -1}, "tol must"),
    (OperatorValuedKernelRidge, {"max_iter": 0.5}, "max_iter must"),
    (OutputKernelRidge, {"kernel": "rbff"}, "kernel must be one of .*'rbf'"),
    (OutputKernelRidge, {"kernel": None}, "kernel must"),
    (OutputKernelRidge, {"kernel": "precomputed"}, "X must be a square matrix"),
    (OutputKernelRidge, {"kernel": lambda x, z: -np.dot(x, z)}, "kernel must be positive semi"),
    (OutputKernelRidge, {"kernel_params": {"scale": 1}}, "kernel_params must have keys"),
    (OutputKernelRidge, {"alpha": 0}, "alpha must"),
    (OutputKernelRidge, {"alpha": [1, 2]}, "alpha must"),
    (OutputKernelRidge, {"rank": 0}, "rank must"),
    (OutputKernelRidge, {"rank": 0.5}, "rank must"),
    (OutputKernelRidge, {"rank": 4}, "rank must be at most the number of targets, 3, got 4"),
    (OutputKernelRidge, {"penalty": "nuclear"}, "penalty must be one of .*'trace'"),
    (OutputKernelRidge, {"penalty": ["trace"]}, "penalty must"),
    (OutputKernelRidge, {"penalty": "cluster", "rank": 2}, "rank must be None"),
    (OutputKernelRidge, {"rank": 2, "constraint": True}, "rank must be None"),
    (OutputKernelRidge, {"constraint": 1}, "constraint must"),
    (OutputKernelRidge, {"penalty_params": {"l1_ratio": 1.0}}, "l1_ratio must"),
    (OutputKernelRidge, {"penalty_params": {"level_bounds": (2, 3)}}, "level_bounds must"),
    (OutputKernelRidge, {"penalty_params": {"level_bounds": 1.0}}, "level_bounds must"),
    (OutputKernelRidge, {"fit_intercept": "no"}, "fit_intercept must"),
    (OutputKernelRidge, {"solver_params": {"max_iter": 0}}, "max_iter.* must"),
    (OutputKernelRidge, {"solver_params": {"tol": -1}}, "tol.* must"),
    (OutputKernelRidge, {"solver_params": {"steps": 3}}, "solver_params must have keys"),
    (OutputKernelRidge, {"solver_params": [3]}, "solver_params must"),
    (OutputKernelRidge, {"output_kernel": "identity"}, "output_kernel must"),
    (OutputKernelRidge, {"output_kernel": np.eye(2)}, r"output_kernel must .* \(3, 3\)"),
    (OutputKernelRidge, {"output_kernel": np.tri(3)}, "output_kernel must .* symmetric"),
    (OutputKernelRidge, {"output_kernel": -np.eye(3)}, "output_kernel must be positive semi"),
    (OutputKernelRidgeCV, {"penalty": ["trace", "nuclear"]}, "penalty must"),
    (OutputKernelRidgeCV, {"penalty": []}, "penalty must hold at least one"),
    (OutputKernelRidgeCV, {"alphas": []}, "alphas must"),
    (OutputKernelRidgeCV, {"alphas": [1.0, -1.0]}, "alphas must .* got -1"),
    (OutputKernelRidgeCV, {"alphas": [1.0, 0.0]}, "alphas must"),
    (OutputKernelRidgeCV, {"alphas": [np.nan, 1.0]}, "alphas must"),
    (OutputKernelRidgeCV, {"alphas": [np.inf]}, "alphas must"),
    (OutputKernelRidgeCV, {"alphas": 1.0}, "alphas must"),
    (OutputKernelRidgeCV, {"alphas": "auto"}, "alphas must"),
    (OutputKernelRidgeCV, {"scoring": "accurate"}, "scoring|accurate"),
    (OutputKernelRidgeCV, {"scoring": lambda *_: np.nan}, "scoring=.* not finite for alpha"),
    (OutputKernelRidgeCV, {"cv": 25}, "cv=25 needs at least 25 rows, got n_samples=24"),
    (OutputKernelRidgeCV, {"cv": np.ones((2, 2))}, "cv must"),
    (OutputKernelRidgeCV, {"cv": [1, 2]}, "cv must"),
    (OutputKernelRidgeCV, {"cv": [([0, 1], [99])]}, "cv must"),
    (OutputKernelRidgeCV, {"cv": [([0.5], [1])]}, "cv must"),
    (OutputKernelRidgeCV, {"cv": []}, "cv must"),
    (MultipleKernelRidge, {"alpha": 0}, "alpha must"),
    (MultipleKernelRidge, {"norm": 0.5}, "norm must"),
    (MultipleKernelRidge, {"normalize": 1}, "normalize must"),
    (MultipleKernelRidge, {"fit_intercept": None}, "fit_intercept must"),
    (MultipleKernelRidge, {"output_kernel": "full"}, "output_kernel must be one of 'identity'"),
    (MultipleKernelRidge, {"output_kernel": np.eye(2)}, "output_kernel must"),
    (MultipleKernelRidge, {"output_kernel": -np.eye(3)}, "output_kernel must"),
    (MultipleKernelRidge, {"output_kernel": [("a", "rbf", [0])]}, "output_kernel must"),
    (MultipleKernelRidge, {"output_kernel": MATRICES[:1]}, "one matrix for each of 2 kernels"),
    (
        MultipleKernelRidge,
        {"kernels": VIEWS, "output_kernel": MATRICES},
        r"output_kernel\[2\] must",
    ),
    (MultipleKernelRidge, {"kernels": {"a": [9]}}, "group 'a' must name columns"),
    (MultiViewKernelRidge, {"views": {"none": []}}, "views: group 'none' must have at least"),
    (MultiViewKernelRidge, {"eta": 0}, "eta must"),
    (MultiViewKernelRidge, {"sparse": 1}, "sparse must"),
    (OperatorKernelVAR, {"kernel": "linear"}, "kernel must"),
    (OperatorKernelVAR, {"penalty": "trace"}, "penalty must"),
    (OperatorKernelVAR, {"lags": 0}, "lags must"),
    (OperatorKernelVAR, {"lags": 23}, r"X must have at least lags \+ 2 = 25 steps"),
    (OperatorKernelVAR, {"alpha": -1}, "alpha must"),
    (OperatorKernelVAR, {"gamma": -1}, "gamma must"),
    (OperatorKernelVAR, {"norm": 0.5}, "norm must"),
    (OperatorFourierRidge, {"features": "curl_free"}, "features must"),
    (OperatorFourierRidge, {"features": OperatorFourierFeatures("curl_free")}, "y must have 4"),
    (OperatorFourierRidge, {"alpha": 0}, "alpha must"),
]


@pytest.mark.parametrize(("kind", "settings", "message"), BAD)
def test_bad_parameters_are_named(rows, kind, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**settings).fit(*rows)


@pytest.mark.parametrize("name", ["schatten", "entrywise"])
@pytest.mark.parametrize("exponent", [0.5, 1.5, 1, "x"])
def test_exponents_that_a_penalty_does_not_have(rows, name, exponent):
    model = OutputKernelRidge(penalty=name, penalty_params={"exponent": exponent})
    if name == "schatten" and exponent in (1, 1.5):
        assert model.fit(*rows).converged_
        return
    with pytest.raises((TypeError, ValueError), match="exponent must be"):
        model.fit(*rows)
