"""One protocol for all experiments: partitions, folds, features, errors, records."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ..features import median_distance
from ..io import Record
from ..linalg import Array, Index
from ..selection import Split
from .methods import REFERENCES, Plan, fit_methods
from .setup import Setup

__all__ = [
    "Case",
    "Partition",
    "Rows",
    "fit_features",
    "folds_of",
    "improvement",
    "nmse",
    "partitions",
    "run_cases",
    "run_parallel",
]

Part = TypeVar("Part")
Found = TypeVar("Found")

N_FOLDS = 5
MAX_COMPONENTS = 300


class Rows(NamedTuple):
    """Training and test rows."""

    X: Array
    Y: Array
    X_test: Array
    Y_test: Array


class Case(NamedTuple):
    """One partition with everything to be fitted on it.

    Attributes
    ----------
    keys : dict
        What the records say of it: n, split and whatever else varies.
    rows : Rows
    plan : Plan
    seed : int
        Of folds and random starts.
    features : str or transformer
        As in `fit_features`.
    folds : sequence of splits or None
        Of the training rows, on which methods choose their settings; None for shuffled ones.
    """

    keys: Record
    rows: Rows
    plan: Plan
    seed: int
    features: Any = "linear"
    folds: Sequence[Split] | None = None

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.keys.items())


def nmse(Y: Array, prediction: Array) -> float:
    """Mean over outputs of the squared error divided by the variance of the output, in the rows given.

    Missing values of Y are left out, and outputs that are constant in these rows.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> nmse(Y, Y.mean(axis=0))
    1.0
    """
    with warnings.catch_warnings():
        # An output may be missing in all test rows.
        warnings.simplefilter("ignore", RuntimeWarning)
        variance = np.nanvar(Y, axis=0)
        error = np.nanmean((Y - prediction) ** 2, axis=0)
    varies = variance > 0.0
    if not varies.any():
        raise ValueError("all outputs are constant in the test rows; take more test rows")
    return float(np.mean(error[varies] / variance[varies]))


def improvement(error: float, reference: float) -> float:
    """Return nI, the difference to a reference error over the geometric mean of the two; positive is better.

    Examples
    --------
    >>> improvement(0.25, 1.0)
    1.5
    """
    return (reference - error) / float(np.sqrt(reference * error))


class Partition(NamedTuple):
    """Training and test rows, drawn at random, with a number and a seed for what is random on them."""

    number: int
    train: Index
    test: Index
    seed: int


def partitions(n_rows: int, n: int, n_splits: int, seed: int) -> Iterator[Partition]:
    """Random partitions with n training rows."""
    for split in range(n_splits):
        sequence = np.random.SeedSequence([seed, n, split])
        order = np.random.default_rng(sequence).permutation(n_rows)
        yield Partition(split, order[:n], order[n:], int(sequence.generate_state(1)[0]) % 2**31)


def folds_of(n: int, seed: int) -> list[Split]:
    """Five shuffled folds, or as many as there are rows."""
    return list(KFold(min(N_FOLDS, n), shuffle=True, random_state=seed).split(np.zeros((n, 1))))


def fit_features(features: Any, X: Array, X_test: Array, seed: int) -> tuple[Array, Array]:
    """Features of training and test rows, fitted on the former.

    ``"linear"`` are the inputs themselves, ``"rbf"`` those of a Gaussian kernel as wide as the median
    distance between rows (all rows as landmarks, up to 300), ``"fourier"`` 300 random features
    of the same kernel; anything else is a transformer.
    """
    if isinstance(features, str) and features == "linear":
        return X, X_test
    if isinstance(features, str):
        gamma = median_distance(X) ** -2
        maps = {
            "rbf": Nystroem(gamma=gamma, n_components=min(len(X), MAX_COMPONENTS), random_state=seed),
            "fourier": RBFSampler(gamma=gamma, n_components=MAX_COMPONENTS, random_state=seed),
        }
        if features not in maps:
            raise ValueError(
                f"features must be 'linear', 'rbf', 'fourier' or a transformer, got {features!r}"
            )
        fitted = maps[features].fit(X)
    else:
        fitted = clone(features).fit(X)
    return np.asarray(fitted.transform(X)), np.asarray(fitted.transform(X_test))


def run_cases(cases: Sequence[Case], setup: Setup) -> list[Record]:
    """Records of all cases, in their order; the same whatever the number of jobs, but for the times."""
    return [record for own in run_parallel(_measure, cases, setup) for record in own]


def run_parallel(
    measure: Callable[[Part], Found], parts: Sequence[Part], setup: Setup, what: str | None = None
) -> list[Found]:
    """What is found of all parts, in their order, with progress told in the parts' own words or in others."""
    found: list[Found] = []
    with Parallel(n_jobs=effective_n_jobs(setup.n_jobs), return_as="generator") as parallel:
        for done, own in enumerate(parallel(delayed(measure)(part) for part in parts)):
            setup.tell(done, len(parts), str(parts[done]) if what is None else what)
            found.append(own)
    setup.tell(len(parts), len(parts), "done")
    return found


def _measure(case: Case) -> list[Record]:
    """Fit all methods to a partition and measure them, in processor time."""
    # One thread, so that sums are in one order wherever the case runs; ends of grids are no news here.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        rows = _standardised(case.rows) if case.plan.protocol == "fair" else case.rows
        Phi, Phi_test = fit_features(case.features, rows.X, rows.X_test, case.seed)
        folds = folds_of(len(rows.Y), case.seed) if case.folds is None else case.folds
        records = []
        for fitted in fit_methods(case.plan, rows.X, Phi, rows.Y, folds, case.seed):
            start = process_time()
            prediction = np.asarray(fitted.predict(rows.X_test if fitted.takes_inputs else Phi_test))
            seconds = process_time() - start
            error = nmse(rows.Y_test, prediction.reshape(rows.Y_test.shape))
            records.append(
                {
                    "method": fitted.label,
                    **case.keys,
                    "nmse": error,
                    "ni": None,
                    "fit_seconds": fitted.fit_seconds,
                    "predict_seconds": seconds,
                }
            )
    return _with_improvement(records, list(case.plan.labels()))


def _with_improvement(records: list[Record], order: list[str]) -> list[Record]:
    errors = {record["method"]: record["nmse"] for record in records}
    reference = next((errors[name] for name in REFERENCES if name in errors), None)
    for record in records:
        record["ni"] = None if reference is None else improvement(record["nmse"], reference)
    return sorted(records, key=lambda record: order.index(record["method"]))


def _standardised(rows: Rows) -> Rows:
    """Every column in units of its deviation about its mean in the training rows."""
    inputs, targets = StandardScaler().fit(rows.X), StandardScaler().fit(rows.Y)
    return Rows(
        inputs.transform(rows.X),
        targets.transform(rows.Y),
        inputs.transform(rows.X_test),
        targets.transform(rows.Y_test),
    )
