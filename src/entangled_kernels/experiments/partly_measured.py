"""Comparison of methods when some targets of new rows are measured and the others predicted."""

from __future__ import annotations

import warnings
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ..estimators import EntangledKernelRidgeCV
from ..io import ExperimentResults, Record
from ..linalg import Array, Index
from .methods import tuned_learner
from .protocol import Partition, Progress, Rows, Setup, partitions, run_parallel

__all__ = ["OURS", "compare_partly_measured", "measured_sets"]

OURS = "entangled"
METHODS = {
    OURS: "EntangledKernelRidgeCV, fitted once; measured targets are given to predict",
    "ridge": "RidgeCV, an alpha for each target; measured targets are further inputs, a fit per set",
    "PLS": "PLSRegression, number of components by cross-validation; likewise",
    "extra-trees": "ExtraTreesRegressor, 100 trees; likewise",
}


def compare_partly_measured(
    X: Any,
    Y: Any,
    *,
    n_train: int = 40,
    repeats: int = 4,
    most: int = 3,
    coverage: float = 0.9,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    name: str = "partly-measured",
    title: str = "Some targets measured, the others predicted",
) -> ExperimentResults:
    """Predict targets of unseen rows of which some are measured, over random partitions.

    Parameters
    ----------
    X : data frame of shape (n_rows, n_inputs)
    Y : data frame of shape (n_rows, p)
        Complete.
    n_train : int, default=40
        Training rows; all others are tested on.
    repeats : int, default=4
        Partitions.
    most : int, default=3
        Largest number of measured targets, less than p.
    coverage : float, default=0.9
        Of the intervals.
    seed : int, default=0
    n_jobs : int or None, default=None
        Processes; results do not depend on it.
    progress : callable, optional
        Called with the number of partitions done, the number of all, and the name of the work.
    name, title : str
        Of the results.

    Returns
    -------
    ExperimentResults
        Records with the keys method, known (number of measured targets), split, nmse (of the
        targets that are not measured, mean over the sets of measured ones), fits and fit_seconds
        (of processor time). Those of `OURS` also have coverage and joint_coverage (shares of test
        cells inside their intervals, and of test rows inside joint ones), width (of intervals, in
        deviations of the target), and left and left_suggested: the error of all targets, zero for
        measured ones, for these sets and for the targets that `suggest_measurements` names. Arrays
        ``information``, of the models, and ``removed``, the shares of error removed on test rows,
        both (p, p) means over partitions.

    Notes
    -----
    All targets are put into a circle in random order, and every k neighbours are a set. So every
    target is measured in k of p sets, and errors with different k are averages over the same
    targets.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels.experiments.partly_measured import compare_partly_measured
    >>> X, Y = load_linnerud(return_X_y=True, as_frame=True)
    >>> results = compare_partly_measured(X, Y, n_train=12, repeats=1, most=1)
    >>> [(row["known"], row["method"]) for row in results.summary(by=("known", "method"))][:2]
    [(0, 'entangled'), (0, 'ridge')]
    """
    p = Y.shape[1]
    if not 0 < most < p:
        raise ValueError(f"most must be from 1 to {p - 1}, one less than the targets, got {most!r}")
    if not 5 <= n_train <= len(X) - 2:
        raise ValueError(
            f"n_train must be from 5 to {len(X) - 2}, two less than the rows, got {n_train!r}"
        )
    setup = Setup(seed=seed, n_jobs=n_jobs, progress=progress)
    inputs, targets = X.to_numpy(dtype=np.float64), Y.to_numpy(dtype=np.float64)
    splits = list(partitions(len(X), n_train, repeats, seed))
    measured = run_parallel(partial(_measure, inputs, targets, most, coverage), splits, setup, name)
    records = sorted(
        (record for split in measured for record in split.records),
        key=lambda record: record["known"],
    )
    meta = setup.meta(
        train_rows=n_train,
        repeats=repeats,
        coverage=coverage,
        methods=METHODS,
        rows=len(X),
        inputs=list(map(str, X.columns)),
        targets=list(map(str, Y.columns)),
    )
    arrays = {
        "information": np.mean([split.information for split in measured], axis=0),
        "removed": np.mean([split.removed for split in measured], axis=0),
    }
    return ExperimentResults(name, title, records, meta=meta, arrays=arrays)


def measured_sets(p: int, k: int, rng: np.random.Generator) -> list[Index]:
    """p sets of k of p targets, each target in k of the sets; one empty set for k = 0.

    Examples
    --------
    >>> import numpy as np
    >>> sets = measured_sets(5, 2, np.random.default_rng(0))
    >>> np.bincount(np.concatenate(sets)).tolist()
    [2, 2, 2, 2, 2]
    """
    if k == 0:
        return [np.array([], dtype=np.intp)]
    circle = rng.permutation(p)
    return [np.sort(np.roll(circle, -start)[:k]) for start in range(p)]


class _Measured(NamedTuple):
    """Results of one partition."""

    records: list[Record]
    information: Array
    removed: Array


def _measure(X: Array, Y: Array, most: int, coverage: float, partition: Partition) -> _Measured:
    """All methods and sets on one partition, columns standardised on the training rows."""
    train, test = partition.train, partition.test
    X, Y = (
        (values - values[train].mean(axis=0)) / np.maximum(values[train].std(axis=0), 1e-300)
        for values in (X, Y)
    )
    rows = Rows(X[train], Y[train], X[test], Y[test])
    rng = np.random.default_rng(partition.seed)
    sets = {known: measured_sets(Y.shape[1], known, rng) for known in range(most + 1)}
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        start = process_time()
        model = EntangledKernelRidgeCV(random_state=partition.seed).fit(rows.X, rows.Y)
        seconds = process_time() - start
        records, removed = _measure_ours(model, rows, sets, coverage)
        records[0] |= {"fits": 1, "fit_seconds": seconds}
        for method in METHODS:
            if method != OURS:
                for known, measured in sets.items():
                    record = _measure_other(method, rows, measured, partition.seed)
                    records.append({"method": method, "known": known, **record})
    records = [{"split": partition.number, **record} for record in records]
    return _Measured(records, model.information_, removed)


def _measure_ours(
    model: EntangledKernelRidgeCV, rows: Rows, sets: dict[int, list[Index]], coverage: float
) -> tuple[list[Record], Array]:
    """Records of our model; share of every target's error that measuring each other removes."""
    X, Y = rows.X_test, rows.Y_test
    p = Y.shape[1]
    alone = _errors(Y, model.predict(X))
    order = _suggested_order(model, X[:1])
    removed, records = np.eye(p), []
    for known, chosen in sets.items():
        errors, inside, inside_jointly, widths = [], [], [], []
        for measured in chosen:
            given, others = _only(Y, measured), np.setdiff1d(np.arange(p), measured)
            error = _errors(Y, model.predict(X, given=given))
            errors.append(error[others].mean())
            lower, upper = model.predict_interval(X, coverage, given=given)
            inside.append(((lower <= Y) & (upper >= Y))[:, others].mean())
            widths.append((upper - lower)[:, others].mean())
            lower, upper = model.predict_interval(X, coverage, given=given, joint=True)
            inside_jointly.append(((lower <= Y) & (upper >= Y)).all(axis=1).mean())
            if known == 1:
                removed[measured[0]] = 1.0 - error / alone
        suggested = _errors(Y, model.predict(X, given=_only(Y, order[:known])))
        record = {"method": OURS, "known": known, "fits": 0, "fit_seconds": 0.0}
        record["nmse"] = np.mean(errors)
        record |= {"coverage": np.mean(inside), "joint_coverage": np.mean(inside_jointly)}
        record |= {"width": np.mean(widths), "left": np.mean(errors) * (p - known) / p}
        records.append(record | {"left_suggested": suggested.mean()})
    return records, removed


def _measure_other(method: str, rows: Rows, sets: list[Index], seed: int) -> Record:
    """Error of a method that gets the measured targets as inputs, fitted to every set anew."""
    errors, start = [], process_time()
    for measured in sets:
        others = np.setdiff1d(np.arange(rows.Y.shape[1]), measured)
        X = np.hstack([rows.X, rows.Y[:, measured]])
        X_test = np.hstack([rows.X_test, rows.Y_test[:, measured]])
        model = tuned_learner(method, X, rows.Y, None, seed).fit(X, rows.Y[:, others])
        prediction = np.asarray(model.predict(X_test)).reshape(len(X_test), -1)
        errors.append(_errors(rows.Y_test[:, others], prediction).mean())
    return {"nmse": np.mean(errors), "fits": len(sets), "fit_seconds": process_time() - start}


def _errors(Y: Array, prediction: Any) -> Array:
    """Mean squared error of every target, over its variance."""
    variance = np.maximum(Y.var(axis=0), np.finfo(float).tiny)
    return np.asarray(np.mean((Y - prediction) ** 2, axis=0) / variance)


def _only(Y: Array, targets: Index) -> Array:
    """Y with all but some targets missing."""
    given = np.full(Y.shape, np.nan)
    given[:, targets] = Y[:, targets]
    return given


def _suggested_order(model: EntangledKernelRidgeCV, X: Array) -> Index:
    """Indices of the targets in the order in which the model would measure them."""
    order, _ = model.suggest_measurements(X)
    # The names of targets without names.
    names = [f"output{index}" for index in range(order.shape[1])]
    return np.array([names.index(name) for name in order[0]], dtype=np.intp)
