"""Random calls of every public estimator and feature map, silly parameters and data included.

`call_at_random(seed)` raises an error, or returns arrays of numbers, which must be finite.
"""

import pickle
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GroupKFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelClassifier,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorKernelVAR,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
    TargetProcessFeatures,
)
from entangled_kernels.kernels import CurlFreeKernel, KrausKernel, SeparableKernel

T = np.array([[1.0, 0.3], [0.3, 1.0]])
SQUARE = np.ones((2, 2))
SILLY = [0, -1, 1e300, np.nan, np.inf, "x", None, [], {}, True, 10**30, (1, 2), SQUARE, object()]
ALPHAS = [1.0, 1.0, 0.1, 0.1, 1e-3, 1e-8, 1e-16, 1e5, 1e-30, 1e-60, 1e60, 1e300]
BOTH = [True, False]
COUNTS = [1, 2, 5, 50, 10**30]
REACH = [None, None, 0.0, 1.0, 1e300]
SHARES = [0.0, 0.25, 0.5, 1.0]
PENALTIES = ["frobenius", "schatten", "trace", "elastic", "cluster", "entrywise"]
KERNELS = ["linear", "rbf", "rbf", "poly", "laplacian", "sigmoid", "chi2", "precomputed"]
VIEWS = [None, ["linear", "rbf"], {"a": [0]}, [("a", "rbf", [0]), ("b", "linear", slice(None))]]
SPLITS = [
    2,
    2,
    3,
    3,
    5,
    LeaveOneOut(),
    TimeSeriesSplit(2),
    GroupKFold(2),
    ShuffleSplit(2, random_state=0),
    [([0, 1], [2])],
    [([0, 1, 1, 2], [2, -1])],
    [],
    SQUARE,
]
ENCODER = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["text"]), remainder="passthrough"
)
OTHER_MAPS = [
    None,
    None,
    StandardScaler(),
    MaxAbsScaler(),
    Nystroem(n_components=5, random_state=0),
    ForestFeatures(5, random_state=0),
    make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()),
    ENCODER,
]
CLASSIFIERS = (EntangledKernelClassifier, MultiViewKernelClassifier)
SCALES = [None, None, None, None, "log", StandardScaler()]
SOLVING = {"solver_params": [None, {"max_iter": 30}, {"max_iter": 1}, {"tol": 0.01}]}
COMMON = {"fit_intercept": BOTH, "target_transform": SCALES, "random_state": [0, 1]}

MAPS = {
    EvidenceFeatures: {
        "noise": [0.1, 1e-300, 1e300],
        "n_components": COUNTS,
        "max_rows": COUNTS[1:],
        "warp": BOTH,
        "reach": REACH,
    },
    ColumnWidthFeatures: {
        "shape": ["matern", "gaussian", "exponential"],
        "spread": [None, 0.0, 0.3, 1e-300, 1e300],
        "n_components": COUNTS,
        "max_rows": COUNTS[1:],
        "warp": BOTH,
        "reach": REACH,
        "max_inputs": [None, 1],
    },
    ForestFeatures: {
        "n_estimators": [1, 5, 20],
        "min_samples_leaf": [1, 2, 5, 10**30],
        "n_components": COUNTS,
        "max_rows": COUNTS[1:],
    },
    TargetProcessFeatures: {
        "spread": [0.6, 0.0, 1e-300, 1e300],
        "n_components": COUNTS,
        "max_rows": COUNTS[1:],
        "reach": REACH,
        "max_targets": [None, 2],
        "max_inputs": [None, 1],
    },
    OperatorFourierFeatures: {
        "kernel": ["decomposable", "curl_free", "divergence_free"],
        "gamma": [None, None, 0.5, 0.5, 1e-60, 1e-300, 1e60],
        "n_frequencies": [1, 5, 50],
    },
}
ENTANGLED = {
    EntangledKernelRidge: {
        "alpha": ALPHAS,
        "shrinkage": SHARES,
        "alignment_mix": SHARES,
        "target_alpha": [0.0, 0.1, 1e-60, 1e60],
        "prediction": ["entangled", "partial_trace", "reduced_rank"],
        "rank": [None, None, 1, 2, 0.5],
        "solver": ["closed-form", "closed-form", "ascent", "lbfgs"],
        "solver_params": [None, {"max_iter": 5}, {"init": "random", "max_iter": 3}],
        **COMMON,
    },
    EntangledKernelRidgeCV: {
        "alphas": [None, None, None, [1.0, 0.1], [1e-60], [1e300]],
        "param_grid": [
            None,
            {"shrinkage": [1.0]},
            {"shrinkage": [0.0], "rank": [1]},
            {"solver": ["ascent"], "solver_params": [{"max_iter": 4}]},
        ],
        "cv": SPLITS,
        "scoring": ["nmse", "mse"],
        "selection": ["average", "best", "one_se"],
        **COMMON,
    },
}
OTHERS = {
    OperatorFourierRidge: {
        "features": [None, OperatorFourierFeatures("curl_free", gamma=0.5)],
        "alpha": ALPHAS,
        "fit_intercept": BOTH,
    },
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
        "alphas": [None, None, [1.0, 0.1], [1e-60], [1e-300]],
        "penalty": ["frobenius", "trace", ["frobenius", "schatten"]],
        "constraint": BOTH,
        "cv": SPLITS,
        "scoring": ["nmse", "r2"],
        "solver_params": [{"max_iter": 20}],
    },
    MultipleKernelRidge: {
        "kernels": VIEWS,
        "alpha": ALPHAS,
        "norm": [1.0, 1.5, 50.0],
        "output_kernel": ["identity", "diagonal", "shared", "own", T, [np.eye(2), T]],
        "normalize": BOTH,
        "fit_intercept": BOTH,
        **SOLVING,
    },
    MultiViewKernelRidge: {
        "views": VIEWS,
        "alpha": ALPHAS,
        "eta": ALPHAS,
        "sparse": BOTH,
        **SOLVING,
    },
    MultiViewKernelClassifier: {"views": VIEWS, "alpha": ALPHAS, "sparse": BOTH, **SOLVING},
    EntangledKernelClassifier: {
        "feature_map": OTHER_MAPS,
        "coding": ["signs", "balanced"],
        "class_weight": [None, "balanced", {0: 2.0}],
        "cv": SPLITS,
        "selection": ["average", "best", "one_se"],
        "random_state": [0, 1],
    },
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
}
SPACES = ENTANGLED | OTHERS | MAPS
# The entangled estimators can do most, and are drawn more often.
SLOW = ["ascent", "lbfgs", "LeaveOneOut", "'auto'"]
KINDS = [*SPACES, *ENTANGLED, *ENTANGLED]


def pick(rng, values):
    return values[rng.integers(len(values))]


def draw_estimator(rng, kind):
    """One of this kind, with random parameters, now and then a silly one."""
    some = {
        name: pick(rng, SILLY) if rng.random() < 0.02 else pick(rng, values)
        for name, values in SPACES[kind].items()
    }
    model = kind(**some)
    if kind in ENTANGLED:
        maps = draw_estimator(rng, pick(rng, list(MAPS)[:4])), pick(rng, OTHER_MAPS)
        model.set_params(feature_map=pick(rng, maps))
        if kind is EntangledKernelRidgeCV and rng.random() < 0.2:
            model.set_params(feature_map=pick(rng, ["auto", list(maps), [None, None], [None]]))
            if isinstance(model.feature_map, str):
                model.set_params(cv=2, random_state=pick(rng, [0, 1]))
    return model


def draw_table(rng, n, width):
    """Numbers of any scale, with constant columns, repeated rows, missing and infinite values."""
    table = rng.normal(size=(n, width))
    kind = rng.integers(24)
    if kind == 0:
        table[:, 0] = 3.0
    elif kind == 1:
        table *= 10.0 ** rng.integers(-300, 300)
    elif kind == 2:
        table *= 10.0 ** rng.uniform(-10, 10, width)
    elif kind == 3:
        table[:] = table[:1]
    elif kind == 4:
        table += 1e9
    elif kind == 5:
        table[rng.random(table.shape) < 0.3] = np.nan
    elif kind == 6:
        table[:1, 0] = pick(rng, [np.inf, 1e308, -1e300, 1e60])
    elif kind == 7:
        table[:] = 0.0
    elif kind == 8:
        table[n // 2 :] = table[: n - n // 2]
    return table


def draw_container(rng, table):
    """The same numbers as another kind of table."""
    kind = rng.integers(24)
    with np.errstate(all="ignore"):
        if kind == 0:
            return table.astype(np.float32)
        if kind == 1:
            return np.clip(np.nan_to_num(table), -1e9, 1e9).astype(int)
        if kind == 2:
            return csr_array(np.where(np.abs(table) < 0.7, 0.0, table))
    if kind == 3:
        return table.tolist()
    if kind == 4:
        return table.astype(object)
    if kind == 5:
        return table > 0.0
    if kind in (6, 7):
        names = [f"c{number}" for number in range(table.shape[1])]
        frame = pd.DataFrame(table, columns=names)
        if rng.random() < 0.4:
            frame["text"] = rng.choice(["a", "b", "a long text"], len(table))
        if rng.random() < 0.2:
            frame["text"] = pd.Categorical(rng.choice(["a", None], len(table)))
        return frame
    if kind == 8:
        return np.array([["a", "b"]] * len(table))
    if kind == 9:
        return table[:, 0]
    return table


def draw_weights(rng, shape):
    kind = rng.integers(24)
    if kind == 0:
        return 10.0 ** rng.uniform(-30, 30, shape[0])
    if kind == 1:
        return np.full(shape[0], 10.0 ** rng.integers(-300, 308))
    if kind == 2:
        return np.where(np.arange(shape[0]) == 0, 1e300, 1.0)
    if kind == 3:
        return pick(rng, [0.0, 2, -1.0, np.nan, "x", np.zeros(shape[0]), np.ones(shape[0] + 1)])
    if kind == 4:
        return rng.integers(0, 2, shape[0])
    if kind > 6:
        return None
    shape = shape if kind == 5 else shape[:1]
    return rng.uniform(0, 1, shape) * (rng.random(shape) < 0.8)


@dataclass
class Call:
    """A model, the table it is fitted on, new rows, and what its answers are."""

    rng: np.random.Generator
    model: object
    X: object
    Y: object
    weight: object
    new: object
    numbers: list = field(default_factory=list)

    def keep(self, *values):
        self.numbers += [
            np.asarray(value.toarray() if hasattr(value, "toarray") else value) for value in values
        ]


def draw_call(seed):
    rng = np.random.default_rng(seed)
    kind = pick(rng, KINDS)
    model = draw_estimator(rng, kind)
    n = int(rng.choice([0, 1, 2, 3, 8, 12, 20, 30, 40, 70], p=[0.02, 0.04, 0.04, *[0.9 / 7] * 7]))
    d, p = int(rng.choice([1, 2, 2, 3, 4, 4, 90])), int(rng.choice([1, 2, 2, 2, 3, 3, 50]))
    if kind is OperatorKernelVAR or any(word in str(model.get_params()) for word in SLOW):
        n, d, p = min(n, 20), min(d, 4), min(p, 3)
    table = draw_table(rng, n, d)
    X = draw_container(rng, table)
    Y = draw_table(rng, n, p)
    if rng.random() < 0.2 and n and np.nanmax(np.abs(Y)) < 50.0:
        Y = np.exp(Y)
    weight = draw_weights(rng, Y.shape)
    if rng.random() < 0.2:
        Y = draw_container(rng, Y)
    new = X if rng.random() < 0.6 else draw_table(rng, int(rng.choice([0, 1, 2, 30])), d)
    if str(getattr(model, "kernel", None)) == "precomputed" and rng.random() < 0.8:
        with np.errstate(all="ignore"):
            X = table @ table.T
        new = X
    if kind in CLASSIFIERS:
        Y = rng.integers(0, 3, n) if rng.random() < 0.9 else Y
    return Call(rng, model, X, Y, weight, new)


def call_at_random(seed):
    """Fit a random estimator to random data and use it; return all numbers that it gives."""
    call = draw_call(seed)
    kind = type(call.model)
    if kind in MAPS:
        _use_map(call)
    elif kind is OperatorKernelVAR:
        _use_autoregression(call)
    elif kind in ENTANGLED:
        _use_entangled(call)
    else:
        _use_learner(call)
    return call.numbers


def _use_map(call):
    arguments = () if isinstance(call.model, OperatorFourierFeatures) else (call.weight,)
    call.keep(call.model.fit(call.X, call.Y, *arguments).transform(call.new))


def _use_autoregression(call):
    model = call.model.fit(call.X)
    call.keep(model.one_step(call.X), model.forecast(2), model.jacobian(call.X), model.granger_)


def _use_learner(call):
    model, rng = call.model, call.rng
    if isinstance(model, OutputKernelRidgeCV) and rng.random() < 0.3:
        model.fit(call.X, call.Y, call.weight, groups=rng.integers(0, 4, np.shape(call.X)[0]))
    else:
        model.fit(call.X, call.Y, call.weight)
    if type(model) in CLASSIFIERS:
        call.keep(model.decision_function(call.new))
        if isinstance(model, EntangledKernelClassifier):
            call.keep(model.predict_proba(call.new))
        return
    call.keep(model.predict(call.new))
    if isinstance(model, OperatorFourierRidge) and rng.random() < 0.3:
        call.keep(model.partial_fit(call.X, call.Y, call.weight).predict(call.new))
    # Rows without a target, or without weight, have no residuals.
    if isinstance(model, OperatorValuedKernelRidge) and call.weight is None and rng.random() < 0.3:
        call.keep(model.loo_residuals())
    if isinstance(model, MultipleKernelRidge) and rng.random() < 0.3:
        call.keep(model.contributions(call.new))


def _use_entangled(call):
    model, rng = call.model, call.rng
    n = np.shape(call.X)[0]
    how = rng.integers(6)
    if how == 0:
        half = slice(0, n // 2), slice(n // 2, n)
        for rows in half:
            some = [_rows(table, rows) for table in (call.X, call.Y, call.weight)]
            model.partial_fit(*some, forget=pick(rng, [1.0, 0.9, 1e-3, 1e-300]))
    elif how == 1:
        model.fit_batches([(call.X, call.Y), (call.X, call.Y, call.weight)])
    elif how == 2 and isinstance(model, EntangledKernelRidgeCV):
        groups = pick(rng, [rng.integers(0, 4, n), np.zeros(n), [None] * n, ["a", "b"] * (n // 2)])
        model.fit(call.X, call.Y, call.weight, groups)
    else:
        model.fit(call.X, call.Y, call.weight)
    call.keep(model.predict(call.new))
    action = rng.integers(12)
    n_new, p = np.shape(call.new)[0], len(model.coef_)
    given = np.where(rng.random((n_new, p)) < 0.5, rng.normal(size=(n_new, p)), np.nan)
    if action == 0:
        call.keep(model.predict(call.new, return_std=True)[1])
    elif action == 1:
        call.keep(*model.predict_interval(call.new, pick(rng, [0.5, 0.8, 0.999])))
        call.keep(*model.predict_interval(call.new, given=given, joint=True))
    elif action == 2:
        call.keep(model.predict(call.new, given=given))
        call.keep(model.predict(call.new, return_cov=True, given=given)[1])
    elif action == 3:
        call.keep(model.novelty(call.new))
    elif action == 4:
        call.keep(model.partial_fit(call.X, call.Y).predict(call.new))
    elif action == 5:
        explanation = model.explain(call.new, method=pick(rng, ["auto", "permutation"]))
        call.keep(explanation.effect, explanation.size)
    elif action == 6:
        model.suggest_measurements(call.new, given)
        call.keep(model.residual_covariance_)
    elif action == 7:
        call.keep(model.predict_mean(call.new))
    elif action == 8:
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(call.new), model.predict(call.new))
    elif action == 9 and isinstance(model, EntangledKernelRidgeCV):
        model.held_out_predictions()
    elif action == 10:
        call.keep(model.project(call.new))


def _rows(table, rows):
    if table is None or np.ndim(table) == 0:
        return table
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
