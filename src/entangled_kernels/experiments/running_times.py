"""Time to train and to predict with random kernels of every class, over rows and over outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..io import ExperimentResults, Record
from ..kernels import factorize
from ..linalg import (
    Array,
    BlockOperator,
    DenseOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
)
from .protocol import Experiment, Figures, PageTable, Setup

__all__ = ["COMPLEXITY", "RUNNING_TIMES", "random_kernels"]

N, P = 40, 10
OVER_N = (20, 40, 80, 160)
OVER_P = (5, 10, 20, 40)
SHARES = {"100%": 1.0, "75%": 0.75, "50%": 0.5}
# Timings of one draw; the median is kept.
N_TIMINGS = 5
# Shorter work, in seconds, is repeated within one timing.
SHORTEST = 0.002

Operators = tuple[BlockOperator, BlockOperator]

# The paper's complexities of training and of prediction for t points.
COMPLEXITY = {
    "unstructured": ("n^3 p^3", "t n p^2"),
    "scalar": ("n^3", "t n p"),
    "separable": ("n^3 + p^3", "t n p + t p^2"),
    "entangled": ("r^3 + m n p^2", "(t + n + r) m p"),
    "partial trace": ("m^3 + m n p", "(t + n) m p"),
}


def random_kernels(n: int, p: int, rng: np.random.Generator) -> dict[str, Callable[[], Operators]]:
    """Functions that make random kernel matrices for training and for prediction, by name.

    Entangled and partial-trace kernels have m features and r Kraus operators, m = share * n and
    r = share * m p.
    """

    def features(m: int) -> tuple[Array, Array]:
        return rng.standard_normal((n, m)), rng.standard_normal((n, m))

    def unstructured() -> Operators:
        B, test = rng.standard_normal((n * p, n * p)), rng.standard_normal((n, p, n, p))
        blocks = (B @ B.T / (n * p)).reshape(n, p, n, p)
        # (n, p, n, p) -> (n, n, p, p)
        return DenseOperator(blocks.swapaxes(1, 2)), DenseOperator(test.swapaxes(1, 2))

    def kronecker(T: Array) -> Operators:
        B, test = features(n)
        return KroneckerOperator(B @ B.T / n, T), KroneckerOperator(test, T)

    def separable() -> Operators:
        B = rng.standard_normal((p, p))
        return kronecker(B @ B.T / p)

    def entangled(share: float) -> Operators:
        m = max(1, round(share * n))
        Phi, Psi = features(m)
        Q = rng.standard_normal((m * p, max(1, round(share * m * p)))) / m
        return LowRankOperator(Phi, Phi, Q, p), LowRankOperator(Psi, Phi, Q, p)

    def partial_trace(share: float) -> Operators:
        Phi, Psi = features(max(1, round(share * n)))
        return LowRankKroneckerOperator(Phi, Phi, np.eye(p)), LowRankKroneckerOperator(
            Psi, Phi, np.eye(p)
        )

    makers: dict[str, Callable[[], Operators]] = {
        "unstructured": unstructured,
        "scalar": lambda: kronecker(np.eye(p)),
        "separable": separable,
    }
    for name, maker in {"entangled": entangled, "partial trace": partial_trace}.items():
        makers |= {f"{name} {label}": partial(maker, share) for label, share in SHARES.items()}
    return makers


def run(setup: Setup) -> ExperimentResults:
    """Time random kernels of every class in this process, with one thread, for any protocol.

    Times are processor times, which do not depend on other work on the machine.
    """
    n_draws = 2 if setup.quick else 5
    settings = [("over n", n, P) for n in (OVER_N[:3] if setup.quick else OVER_N)]
    settings += [("over p", N, p) for p in (OVER_P[:3] if setup.quick else OVER_P)]
    records: list[Record] = []
    for done, (task, n, p) in enumerate(settings):
        setup.report(done, len(settings), f"{task}, n={n}, p={p}")
        for split in range(n_draws):
            rng = np.random.default_rng([setup.seed, n, p, split])
            for method, make in random_kernels(n, p, rng).items():
                keys = {"method": method, "task": task, "n": n, "p": p, "split": split}
                records.append(keys | _measure(*make(), rng))
    setup.report(len(settings), len(settings), "done")
    methods = {name: f"{name} kernel" for name in ("unstructured", "scalar", "separable")}
    methods |= {
        f"{name} {label}": f"{name} kernel, m = {share:g} n"
        + (f", r = {share:g} m p" if name[0] == "e" else "")
        for name in ("entangled", "partial trace")
        for label, share in SHARES.items()
    }
    meta = setup.meta(methods=methods, draws=n_draws, timings=N_TIMINGS)
    # The paper shows these results as curves, without numbers.
    return ExperimentResults(RUNNING_TIMES.name, RUNNING_TIMES.title, records, meta=meta)


def _measure(train: BlockOperator, test: BlockOperator, rng: np.random.Generator) -> Record:
    n, p = train.n_rows, train.n_outputs
    R, c = rng.standard_normal((n, p, 1)), rng.standard_normal((n * p, 1))
    with threadpool_limits(limits=1, user_api="blas"):
        fit = _median_seconds(lambda: factorize(train)[0].solve(R, 1.0))
        predict = _median_seconds(lambda: test @ c)
    return {"fit_seconds": fit, "predict_seconds": predict}


def _median_seconds(work: Callable[[], Any]) -> float:
    """Median of several timings, each with enough repeats to be measured."""
    repeats = max(1, int(SHORTEST / max(_seconds(work, 1), 1e-6)))
    return float(np.median([_seconds(work, repeats) for _ in range(N_TIMINGS)]))


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    start = process_time()
    for _ in range(repeats):
        work()
    # With a coarse clock the difference may be zero.
    return max((process_time() - start) / repeats, 1e-9)


def figures(results: ExperimentResults) -> Figures:
    """Times to train and to predict over n and over p."""
    from ..plotting import RunningTimeDisplay
    from .compare import varied_figures

    drawn: Figures = {}
    for metric, verb in {"fit_seconds": "train", "predict_seconds": "predict"}.items():
        titles = {
            "n": f"Time to {verb} over rows, p = {P}",
            "p": f"Time to {verb} over outputs, n = {N}",
        }
        drawn_over = varied_figures(RunningTimeDisplay, results, titles, metric=metric)
        drawn |= {
            f"{results.name}-{verb}-{name.rpartition('-')[2]}": figure
            for name, figure in drawn_over.items()
        }
    return drawn


def tables(results: ExperimentResults) -> list[PageTable]:
    """The paper's complexities with the measured powers of n and p."""

    def power(method: str, x: str, metric: str) -> float:
        times: dict[int, list[float]] = {}
        for record in results.records:
            if record["method"] == method and record["task"] == f"over {x}":
                times.setdefault(record[x], []).append(record[metric])
        near, far = sorted(times)[-2:]
        return float(np.log(np.median(times[far]) / np.median(times[near])) / np.log(far / near))

    rows = []
    for method in dict.fromkeys(record["method"] for record in results.records):
        train, predict = COMPLEXITY[method.rstrip("0123456789%").strip()]
        fitted = [
            power(method, x, metric)
            for metric in ("fit_seconds", "predict_seconds")
            for x in ("n", "p")
        ]
        rows.append([method, train, *fitted[:2], predict, *fitted[2:]])
    columns = ["kernel", "train (paper)", "power of n", "power of p", "predict (paper)"]
    return [
        PageTable(
            [*columns, "power of n, predicting", "power of p, predicting"],
            rows,
            "Orders of time, and the powers of n and p between the two largest sizes",
            "m and r grow with n, and r with p; t = n.",
            2,
        )
    ]


RUNNING_TIMES = Experiment(
    name="running-times",
    title="Running times with random kernels",
    about=(
        "Random kernel matrices and random coefficients: time to solve the ridge system and to "
        "predict n new points, with one thread, over rows at ten outputs and over outputs at 40 "
        "rows. Entangled and partial-trace kernels have m and r at 100%, 75% and 50%. Every draw "
        "is timed five times, and the median kept. Both protocols are the same here."
    ),
    run=run,
    figures=figures,
    tables=tables,
    one_protocol=True,
)
