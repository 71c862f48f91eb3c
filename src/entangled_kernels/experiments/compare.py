"""Comparison of methods on any table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from ..io import ExperimentResults
from ..linalg import Array
from .methods import EARLY, METHODS, PAPER_METHODS, Plan
from .protocol import Case, Figures, Progress, Rows, RowScheme, Setup, row_scheme, run_cases

__all__ = [
    "class_figures",
    "compare_methods",
    "error_figures",
    "table_cases",
    "time_figures",
    "varied_figures",
]


def compare_methods(
    X: Any,
    Y: Any,
    *,
    methods: Sequence[str] = PAPER_METHODS,
    train_sizes: Sequence[int] = (20, 40),
    repeats: int = 10,
    features: Any = "linear",
    protocol: str = "fair",
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    groups: Any = None,
    times: Any = None,
    name: str = "comparison",
    title: str = "Comparison of methods",
) -> ExperimentResults:
    """Compare methods on a table, over partitions into training and test rows.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_inputs)
    Y : array-like or data frame of shape (n_rows, n_outputs) or (n_rows,)
        NaN where a target is missing; with the paper's protocol none may be.
    methods : sequence of str
        Keys of `METHODS`.
    train_sizes : sequence of int, default=(20, 40)
        Numbers of training rows; the others are test rows. With groups, the whole groups that fit.
    repeats : int, default=10
        Partitions for each size.
    features : {"linear", "rbf", "fourier"} or transformer, default="linear"
        Features for the methods of the paper, fitted on the training rows: the inputs, Nystroem
        features of a Gaussian kernel of median width, or random features of that kernel.
    protocol : {"fair", "paper"}, default="fair"
    seed : int, default=0
    n_jobs : int or None, default=None
        Processes; results do not depend on it.
    progress : callable, optional
        Called with the number of parts that are done, the number of all, and the current part.
    groups : array-like of shape (n_rows,), optional
        Rows of one group are all training rows or all test rows, and in one fold.
    times : array-like of shape (n_rows,), optional
        Test rows are later than training rows, and held-out rows of a fold later than its training
        rows. The rows after the first training rows are divided into one interval of time for each
        repeat, which is predicted from the training rows just before it.
    name, title : str
        Of the results.

    Returns
    -------
    ExperimentResults
        Records with the keys method, n, split, nmse, ni (normalised improvement over kernel ridge,
        None when it is not among the methods), fit_seconds (selection included) and
        predict_seconds, of processor time.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels.experiments import compare_methods
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> results = compare_methods(X, Y, methods=("KRR", "ptrEKL"), train_sizes=(12,), repeats=2)
    >>> [(row["method"], row["count"]) for row in results.summary()]
    [('KRR', 2), ('ptrEKL', 2)]
    """
    setup = Setup(protocol=protocol, seed=seed, n_jobs=n_jobs, progress=progress)
    chosen = _check_methods(methods)
    if protocol == "paper":
        chosen += tuple(name for name in EARLY if name.partition(",")[0] in chosen)
    plan = Plan(protocol, chosen)
    inputs = check_array(X, dtype=np.float64, input_name="X")
    missing: Any = "allow-nan" if protocol == "fair" else True
    targets = check_array(
        Y, dtype=np.float64, ensure_2d=False, input_name="Y", ensure_all_finite=missing
    ).reshape(len(inputs), -1)
    check_consistent_length(inputs, targets)
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats!r}")
    scheme = row_scheme(len(inputs), groups, times)
    cases = table_cases(
        inputs, targets, train_sizes, repeats, plan, setup, features=features, scheme=scheme
    )
    records = run_cases(cases, setup)
    meta = setup.meta(
        repeats=repeats,
        train_sizes=[int(n) for n in train_sizes],
        methods=plan.descriptions(),
        rows=len(inputs),
        inputs=inputs.shape[1],
        outputs=targets.shape[1],
        **({} if scheme.by == "rows" else {"held_out": scheme.by}),
        features=features if isinstance(features, str) else repr(features),
    )
    return ExperimentResults(name, title, records, meta=meta)


def table_cases(
    X: Array,
    Y: Array,
    train_sizes: Sequence[int],
    n_splits: int,
    plan: Plan,
    setup: Setup,
    *,
    features: Any = "linear",
    scheme: RowScheme | None = None,
    **keys: Any,
) -> list[Case]:
    """Cases of all training sizes and partitions of a table."""
    scheme = RowScheme() if scheme is None else scheme
    cases = []
    for n in map(int, train_sizes):
        if not 3 <= n <= len(X) - 2:
            raise ValueError(
                f"train_sizes must be from 3 to {len(X) - 2}, two less than the rows there are, "
                f"got {n}"
            )
        for partition in scheme.partitions(len(X), n, n_splits, setup.seed):
            split, train, test, seed = partition
            rows = Rows(X[train], Y[train], X[test], Y[test])
            key = {"n": n, **keys, "split": split}
            cases.append(Case(key, rows, plan, seed, features, scheme.folds(train, seed)))
    return cases


def error_figures(results: ExperimentResults) -> Figures:
    """Errors and improvements over kernel ridge."""
    from ..plotting import ComparisonDisplay

    return {
        f"{results.name}-{metric}": ComparisonDisplay.from_results(results, metric=metric).figure_
        for metric in ("nmse", "ni")
    }


def class_figures(results: ExperimentResults) -> Figures:
    """Errors of each class over training rows and over rank, and with lambda 1 if it was used."""
    from ..plotting import ComparisonDisplay

    full = [record for record in results.records if record["rank"] == "100%"]
    # The paper's records have the method without the suffix.
    lambda_one = [
        record | {"method": record["method"].removesuffix(", lambda 1")}
        for record in full
        if record["method"].endswith(", lambda 1")
    ]
    size = next((record["n"] for record in results.records if record["rank"] != "100%"), None)
    ranked = [r for r in results.records if r["n"] == size and r["method"] in ("EKL", "ptrEKL")]
    drawn = {}
    for kind, records, x, ending, setting in (
        ("nmse", [r for r in full if "," not in r["method"]], "n", "", ("rank", "100%")),
        ("lambda", lambda_one, "n", ", lambda 1", ("rank", "100%")),
        ("rank", ranked, "rank", f", n = {size}", ("n", size)),
    ):
        if records:
            key, value = setting
            paper = [record for record in results.paper if record[key] == value]
            shown = replace(results, records=records, paper=paper)
            drawn[f"{results.name}-{kind}"] = ComparisonDisplay.from_results(
                shown, x=x, facet="task", title=f"{results.title}{ending}"
            ).figure_
    return drawn


def time_figures(results: ExperimentResults) -> Figures:
    """Errors, and seconds of selection and fit."""
    from ..plotting import ComparisonDisplay, RunningTimeDisplay

    return {
        f"{results.name}-nmse": ComparisonDisplay.from_results(results).figure_,
        f"{results.name}-times": RunningTimeDisplay.from_results(results).figure_,
    }


def varied_figures(
    display: Any, results: ExperimentResults, titles: dict[str, str], **options: Any
) -> Figures:
    """A figure for each setting that was varied, with its title."""
    drawn = {}
    for x, title in titles.items():
        shown = replace(results, records=[r for r in results.records if r["task"] == f"over {x}"])
        drawn[f"{results.name}-{x}"] = display.from_results(
            shown, x=x, title=title, **options
        ).figure_
    return drawn


def _check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    if not methods or set(methods) - set(METHODS):
        raise ValueError(f"methods must be some of {', '.join(METHODS)}, got {list(methods)!r}")
    return tuple(dict.fromkeys(methods))
