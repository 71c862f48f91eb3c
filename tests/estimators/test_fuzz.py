"""Random calls of the entangled estimators and the feature maps, silly arguments and data included."""

import pickle
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import LeaveOneOut, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    TargetProcessFeatures,
)

SILLY = [
    0,
    -1,
    1e300,
    np.nan,
    np.inf,
    "x",
    None,
    [],
    {},
    True,
    10**30,
    (1, 2),
    np.ones((2, 2)),
    object(),
]
ALPHAS = [1.0, 0.1, 1e-3, 1e-8, 1e5, 1e-30, 1e-60, 1e60, 1e300]
BOTH = [True, False]
COUNTS = [1, 2, 5, 50, 10**30]
REACH = [None, None, 0.0, 1.0, 1e300]
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
        "gamma": [None, 0.5, 1e-300, 1e300],
        "n_frequencies": [1, 5, 50],
    },
}
OTHERS = [
    None,
    StandardScaler(),
    Nystroem(n_components=5, random_state=0),
    ForestFeatures(5, random_state=0),
]
COMMON = {
    "fit_intercept": BOTH,
    "target_transform": [None, None, None, None, "log", StandardScaler()],
    "random_state": [0, 1],
}
SOLVERS = ["closed-form", "closed-form", "ascent", "lbfgs"]
SHARES = [0.0, 0.25, 0.5, 1.0]
RANKS = [None, None, 1, 2, 0.5]
ESTIMATORS = {
    EntangledKernelRidge: {
        "alpha": ALPHAS,
        "shrinkage": SHARES,
        "alignment_mix": SHARES,
        "target_alpha": [0.0, 0.1, 1e-60, 1e60],
        "prediction": ["entangled", "partial_trace"],
        "rank": RANKS,
        "solver": SOLVERS,
        "solver_params": [None, {"max_iter": 5}, {"init": "random", "max_iter": 3}],
        **COMMON,
    },
    EntangledKernelRidgeCV: {
        "alphas": [None, None, [1.0, 0.1], [1e-300], [1e300]],
        "param_grid": [
            None,
            {"shrinkage": [1.0]},
            {"shrinkage": [0.0], "rank": [1]},
            {"solver": ["ascent"], "solver_params": [{"max_iter": 4}]},
        ],
        "cv": [2, 3, 5, LeaveOneOut(), TimeSeriesSplit(2), [([0, 1], [2])], np.ones((2, 2))],
        "scoring": ["nmse", "mse"],
        "selection": ["average", "best", "one_se"],
        **COMMON,
    },
    OperatorFourierRidge: {"alpha": ALPHAS, "fit_intercept": BOTH},
}


def draw(rng, kind, values):
    """One of this kind, with random parameters, now and then a silly one."""
    pick = {
        name: SILLY[rng.integers(len(SILLY))]
        if rng.random() < 0.02
        else some[rng.integers(len(some))]
        for name, some in values.items()
    }
    return kind(**pick)


def draw_map(rng):
    kind = list(MAPS)[rng.integers(len(MAPS))]
    return draw(rng, kind, MAPS[kind])


def draw_table(rng, n, width):
    """Numbers of any scale, with constant columns, repeated rows, and missing or infinite values."""
    table = rng.normal(size=(n, width))
    kind = rng.integers(14)
    if kind == 0:
        table[:, 0] = 3.0
    elif kind == 1:
        table *= 10.0 ** rng.integers(-300, 300)
    elif kind == 2:
        table *= 10.0 ** rng.uniform(-10, 10, width)
    elif kind == 3:
        table[:] = table[0]
    elif kind == 4:
        table += 1e9
    elif kind == 5:
        table[rng.random(table.shape) < 0.3] = np.nan
    elif kind == 6:
        table[0, 0] = [np.inf, 1e308, -1e300][rng.integers(3)]
    elif kind == 7:
        table[:] = 0.0
    return table


def draw_weights(rng, shape):
    kind = rng.integers(12)
    if kind < 5 or kind > 8:
        return None
    if kind == 5:
        return 10.0 ** rng.uniform(-30, 30, shape[0])
    if kind == 6:
        return np.full(shape[0], 10.0 ** rng.integers(-300, 308))
    if kind == 7:
        return np.where(np.arange(shape[0]) == 0, 1e300, 1.0)
    shape = shape if kind == 8 else shape[:1]
    return rng.uniform(0, 1, shape) * (rng.random(shape) < 0.8)


def call_at_random(seed):
    """Fit a random estimator or map to random data; return what it gives for these rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 8, 20, 30, 40, 70]))
    X, Y = draw_table(rng, n, rng.integers(1, 5)), draw_table(rng, n, rng.integers(1, 4))
    Y = np.exp(Y) if rng.random() < 0.2 and np.nanmax(np.abs(Y)) < 50.0 else Y
    weights = draw_weights(rng, Y.shape)
    if rng.random() < 0.2:
        feature_map = draw_map(rng)
        return [feature_map.fit(X, Y).transform(X)]
    kind = list(ESTIMATORS)[rng.choice(3, p=[0.5, 0.4, 0.1])]
    model = draw(rng, kind, ESTIMATORS[kind])
    if kind is OperatorFourierRidge:
        model.set_params(features=draw(rng, OperatorFourierFeatures, MAPS[OperatorFourierFeatures]))
        weights = weights if weights is None or weights.ndim == 1 else weights[:, 0]
        return [model.fit(X, Y, weights).predict(X)]
    other = OTHERS[rng.integers(len(OTHERS))] if rng.random() < 0.5 else draw_map(rng)
    model.set_params(feature_map=other)
    if kind is EntangledKernelRidgeCV and rng.random() < 0.2:
        model.set_params(feature_map=[other, None] if rng.random() < 0.5 else "auto")
    model.fit(X, Y, weights)
    found = [model.predict(X)]
    action = rng.integers(6)
    if action == 0:
        found.append(model.predict(X, return_std=True)[1])
    elif action == 1:
        found += model.predict_interval(X, 0.8)
    elif action == 2:
        found.append(model.predict(X, given=np.where(rng.random(Y.shape) < 0.5, Y, np.nan)))
    elif action == 3:
        found.append(model.novelty(X))
    elif action == 4:
        model.partial_fit(X, Y)
        found.append(model.predict(X))
    return found


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
@pytest.mark.parametrize("first", range(0, 150, 15))
def test_random_calls_give_numbers_or_raise_a_sentence(first):
    for seed in range(first, first + 15):
        check_call(seed)


@pytest.mark.parametrize("cv", [np.ones((2, 2)), [([0, 1], [99])], [(0.5, 1)], object()])
def test_splits_that_are_none_are_refused(cv, rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    with pytest.raises(ValueError, match="cv must be"):
        EntangledKernelRidgeCV(None, cv=cv).fit(X, Y)


def test_splits_are_of_the_whole_table_where_rows_are_left_out(rng):
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    Y[3] = np.nan
    halves = [np.arange(12) % 2 == 0, np.arange(12) % 2 == 1]
    masks = EntangledKernelRidgeCV(None, cv=[halves, halves[::-1]]).fit(X, Y)
    numbers = [tuple(np.flatnonzero(half) for half in halves) for halves in (halves, halves[::-1])]
    listed = EntangledKernelRidgeCV(None, cv=numbers).fit(X, Y)
    np.testing.assert_array_equal(masks.predict(X), listed.predict(X))


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
