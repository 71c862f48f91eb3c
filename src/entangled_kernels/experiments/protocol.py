"""One protocol for all experiments: partitions, folds, features, errors and records."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ..features import median_distance
from ..io import ExperimentResults, Record, software_versions
from ..linalg import Array, Index
from ..parameters import check_groups
from ..plotting.cells import PageTable
from ..selection import Split, group_splits, time_splits
from .methods import COMMON_METHODS, N_FOLDS, REFERENCES, Plan, fit_methods

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "PROTOCOLS",
    "Case",
    "Experiment",
    "Figures",
    "PageTable",
    "Partition",
    "Progress",
    "RowScheme",
    "Rows",
    "Setup",
    "fit_features",
    "improvement",
    "nmse",
    "partitions",
    "row_scheme",
    "run_cases",
    "run_parallel",
]

Progress = Callable[[int, int, str], None]
# By name; matplotlib is optional.
Figures: TypeAlias = "dict[str, Figure]"

PROTOCOLS = {
    "paper": "raw data, no intercept, one grid of lambdas for kernels of unit-norm Q",
    "fair": "inputs and targets standardised on the training rows, an intercept, kernels of one "
    "scale, one grid of scale-free alphas",
}


@dataclass(frozen=True)
class Setup:
    """How to run an experiment.

    Attributes
    ----------
    protocol : {"fair", "paper"}
        As described in `PROTOCOLS`. Both select on the same folds for every method.
    quick : bool
        Fewer partitions and steps, as a test and not for results to quote.
    seed : int
        The same seed gives the same results, except times, for any ``n_jobs``.
    n_jobs : int or None
        Processes; None means 1.
    data_home : path or None
        Folder of the tables, as in `entangled_kernels.datasets`.
    progress : callable or None
        Called with the number of parts that are done, the number of all, and the current part.
    """

    protocol: str = "fair"
    quick: bool = False
    seed: int = 0
    n_jobs: int | None = None
    data_home: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(
                f"protocol must be {' or '.join(map(repr, PROTOCOLS))}, got {self.protocol!r}"
            )

    def report(self, done: int, total: int, what: str) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress(done, total, what)

    def meta(self, **more: Any) -> dict[str, Any]:
        """The settings that are needed to repeat the run."""
        return {
            "protocol": self.protocol,
            "quick": self.quick,
            "seed": self.seed,
            "versions": software_versions("joblib"),
            **more,
        }


class Experiment(NamedTuple):
    """One table or figure of the paper.

    Attributes
    ----------
    name, title : str
    about : str
        Two or three sentences for readers.
    run : callable
        ``run(setup) -> ExperimentResults``.
    figures : callable
        ``figures(results) -> dict`` of matplotlib figures by name, drawn from the results alone.
    tables : callable
        ``tables(results) -> list`` of `PageTable`, made from the results alone.
    one_protocol : bool
        Whether both protocols are the same.
    """

    name: str
    title: str
    about: str
    run: Callable[[Setup], ExperimentResults]
    figures: Callable[[ExperimentResults], Figures]
    tables: Callable[[ExperimentResults], list[PageTable]] = lambda results: []
    one_protocol: bool = False


Part = TypeVar("Part")
Result = TypeVar("Result")

MAX_COMPONENTS = 300


class Rows(NamedTuple):
    """Training and test rows."""

    X: Array
    Y: Array
    X_test: Array
    Y_test: Array


class Case(NamedTuple):
    """One partition of the rows, and what is fitted on it.

    Attributes
    ----------
    keys : dict
        The setting in the records: n, split and so on.
    rows : Rows
    plan : Plan
    seed : int
        For folds and random starts.
    features : str or transformer
        As in `fit_features`.
    folds : sequence of splits or None
        Of the training rows, for selection of settings; None for shuffled folds.
    """

    keys: Record
    rows: Rows
    plan: Plan
    seed: int
    features: Any = "linear"
    folds: Sequence[Split] | None = None

    def __str__(self) -> str:
        words = {"n": "{} training rows", "split": "split number {}"}
        return ", ".join(
            words.get(key, f"{key} {{}}").format(value) for key, value in self.keys.items()
        )


def nmse(Y: Array, prediction: Array) -> float:
    """Mean over outputs of the mean squared error over the variance of the output in these rows.

    Missing values of Y and outputs that are constant in these rows are left out.

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
    """The normalised improvement nI over a reference error; positive is better.

    It is the difference of the errors over their geometric mean.

    Examples
    --------
    >>> improvement(0.25, 1.0)
    1.5
    """
    return (reference - error) / float(np.sqrt(reference * error))


class Partition(NamedTuple):
    """Training and test rows, with the number of the partition and a seed for methods."""

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


def fit_features(features: Any, X: Array, X_test: Array, seed: int) -> tuple[Array, Array]:
    """Features of training and test rows, fitted on the training rows.

    ``"linear"`` means the inputs, ``"rbf"`` Nystroem features of a Gaussian kernel whose width is
    the median distance between rows (all rows as landmarks, at most 300), ``"fourier"`` 300 random
    features of the same kernel; anything else is a transformer.
    """
    if isinstance(features, str):
        if features == "linear":
            return X, X_test
        kernel = {"gamma": median_distance(X) ** -2, "random_state": seed}
        maps = {
            "rbf": Nystroem(n_components=min(len(X), MAX_COMPONENTS), **kernel),
            "fourier": RBFSampler(n_components=MAX_COMPONENTS, **kernel),
        }
        if features not in maps:
            raise ValueError(
                f"features must be 'linear', 'rbf', 'fourier' or a transformer, got {features!r}"
            )
        features = maps[features]
    feature_map = clone(features).fit(X)
    return np.asarray(feature_map.transform(X)), np.asarray(feature_map.transform(X_test))


def run_cases(cases: Sequence[Case], setup: Setup) -> list[Record]:
    """Records of all cases in order; except for times they do not depend on the number of jobs."""
    return list(chain.from_iterable(run_parallel(_measure, cases, setup)))


def run_parallel(
    measure: Callable[[Part], Result], parts: Sequence[Part], setup: Setup, what: str | None = None
) -> list[Result]:
    """Results of all parts in order; progress reports the part, or ``what``."""
    results: list[Result] = []
    words = [*(str(part) if what is None else what for part in parts), "done"]
    setup.report(0, len(parts), words[0])
    with Parallel(n_jobs=effective_n_jobs(setup.n_jobs), return_as="generator") as parallel:
        for result in parallel(delayed(measure)(part) for part in parts):
            results.append(result)
            setup.report(len(results), len(parts), words[len(results)])
    return results


def _measure(case: Case) -> list[Record]:
    """Fit all methods to a partition; errors, and seconds of processor time."""
    # With one thread sums have the same order in every process. Nobody can act on warnings that a
    # selected value is at the end of its grid.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        rows = _standardised(case.rows) if case.plan.protocol == "fair" else case.rows
        Phi, Phi_test = fit_features(case.features, rows.X, rows.X_test, case.seed)
        records: list[Record] = []
        fitted_methods = fit_methods(case.plan, rows.X, Phi, rows.Y, case.folds, case.seed)
        for method, fitted in fitted_methods.items():
            start = process_time()
            prediction = fitted.predict(rows.X_test if method in COMMON_METHODS else Phi_test)
            seconds = process_time() - start
            error = nmse(rows.Y_test, np.reshape(prediction, rows.Y_test.shape))
            record = {"method": method, **case.keys, "nmse": error, "ni": None}
            times = {"fit_seconds": fitted.fit_seconds, "predict_seconds": seconds}
            records.append(record | times)
    errors = {record["method"]: record["nmse"] for record in records}
    reference = next((errors[name] for name in REFERENCES if name in errors), None)
    if reference is not None:
        for record in records:
            record["ni"] = improvement(record["nmse"], reference)
    return records


def _standardised(rows: Rows) -> Rows:
    """Columns with mean 0 and deviation 1 in the training rows."""
    inputs, targets = StandardScaler().fit(rows.X), StandardScaler().fit(rows.Y)
    return Rows(
        inputs.transform(rows.X),
        targets.transform(rows.Y),
        inputs.transform(rows.X_test),
        targets.transform(rows.Y_test),
    )


# Fewer training rows in time order do not make two folds.
MIN_TIMED_ROWS = 6


class RowScheme(NamedTuple):
    """How rows are held out: at random, by groups, or by time.

    Attributes
    ----------
    by : {"rows", "groups", "time"}
    values : ndarray of shape (n_rows,) or None
        Groups or times.
    """

    by: str = "rows"
    values: NDArray[Any] | None = None

    def partitions(self, n_rows: int, n: int, n_splits: int, seed: int) -> Iterator[Partition]:
        """Partitions with n training rows; with groups, the whole groups that fit in n."""
        if self.values is None:
            yield from partitions(n_rows, n, n_splits, seed)
        elif self.by == "groups":
            yield from self._of_groups(self.values, n, n_splits, seed)
        else:
            yield from self._in_time(self.values, n, n_splits, seed)

    def _of_groups(
        self, values: NDArray[Any], n: int, n_splits: int, seed: int
    ) -> Iterator[Partition]:
        """Training rows are whole groups, added in random order as long as they fit."""
        _, member, sizes = np.unique(values, return_inverse=True, return_counts=True)
        # Here `partition.train` is a random order of all groups.
        for partition in partitions(len(sizes), len(sizes), n_splits, seed):
            taken, left = np.zeros(len(sizes), dtype=bool), n
            for group in partition.train:
                taken[group] = sizes[group] <= left
                left -= int(sizes[group]) if taken[group] else 0
            if taken.sum() < 2:
                raise ValueError(
                    f"train_sizes must have room for at least 2 groups, got {n} rows, and groups "
                    f"of {sizes.min()} to {sizes.max()} rows"
                )
            known = taken[member.reshape(-1)]
            yield partition._replace(train=np.flatnonzero(known), test=np.flatnonzero(~known))

    def _in_time(
        self, values: NDArray[Any], n: int, n_splits: int, seed: int
    ) -> Iterator[Partition]:
        """Test rows are intervals of time, each after its training rows."""
        order = np.argsort(values, kind="stable")
        size = (len(order) - n) // n_splits
        if size < 2:
            raise ValueError(
                f"repeats must leave at least 2 test rows for each of {n_splits} intervals of the "
                f"{len(order) - n} rows after the first {n}; use fewer repeats or training rows"
            )
        for partition in partitions(len(order), n, n_splits, seed):
            start = len(order) - (n_splits - partition.number) * size
            train, test = order[start - n : start], order[start : start + size]
            before = train[values[train] < values[test[0]]]
            if len(before) < MIN_TIMED_ROWS:
                raise ValueError(
                    f"train_sizes must leave at least {MIN_TIMED_ROWS} rows of times before the test rows, "
                    f"got {len(before)} of {n}; use larger ones"
                )
            yield partition._replace(train=before, test=test)

    def folds(self, train: Index, seed: int) -> list[Split] | None:
        """Folds of training rows, as indices into them; None for shuffled folds."""
        if self.values is None:
            return None
        values = self.values[train]
        if self.by == "groups":
            return group_splits(values, min(N_FOLDS, len(np.unique(values))), random_state=seed)
        return time_splits(len(values), min(N_FOLDS, len(values) // 2 - 1), values)


def row_scheme(n_rows: int, groups: Any = None, times: Any = None) -> RowScheme:
    """The scheme for groups or times of rows, after a check."""
    if groups is not None and times is not None:
        raise ValueError("groups and times hold out different rows; give one of them")
    if groups is not None:
        return RowScheme("groups", check_groups(groups, n_rows))
    if times is None:
        return RowScheme()
    values = np.asarray(times)
    if values.shape != (n_rows,) or not np.isfinite(values.astype(np.float64)).all():
        raise ValueError(
            f"times must hold one number for each of {n_rows} rows, got shape {values.shape}"
        )
    return RowScheme("time", values)
