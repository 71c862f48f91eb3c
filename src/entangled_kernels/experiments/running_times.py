"""How the time of one fit grows with the number of rows and of outputs."""

from __future__ import annotations

import warnings
from time import process_time
from typing import Any

from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ..datasets import make_bilinear
from ..estimators import EntangledKernelRidge, OutputKernelRidge
from ..storage import ExperimentResults, Record
from .compare import varied_figures
from .methods import METHODS
from .protocol import nmse
from .setup import Experiment, Figures, Setup

__all__ = ["RUNNING_TIMES"]

N, P = 100, 10
OVER_N = (50, 100, 200, 400, 800, 1600)
OVER_P = (5, 10, 20, 40, 80)


def run(setup: Setup) -> ExperimentResults:
    """One fit of each method at fixed settings, in this process, with one thread, whatever ``n_jobs``.

    Times are those of the processor, which other work on the machine does not lengthen.
    """
    models = _models(setup)
    repeats = 2 if setup.quick else 5
    settings = [("over n", n, P) for n in (OVER_N[:4] if setup.quick else OVER_N)]
    settings += [("over p", N, p) for p in (OVER_P[:4] if setup.quick else OVER_P)]
    records: list[Record] = []
    for done, (task, n, p) in enumerate(settings):
        setup.tell(done, len(settings), f"{task}, n={n}, p={p}")
        table = make_bilinear(n, p, random_state=setup.seed)
        for method, model in models.items():
            for split in range(repeats):
                keys = {"method": method, "task": task, "n": n, "p": p, "split": split}
                records.append(keys | _measure(clone(model), table))
    setup.tell(len(settings), len(settings), "done")
    meta = setup.meta(methods={name: METHODS[name] for name in models}, repeats=repeats)
    # The paper shows these results as curves, without figures to quote.
    return ExperimentResults(RUNNING_TIMES.name, RUNNING_TIMES.title, records, meta=meta)


def _models(setup: Setup) -> dict[str, Any]:
    fair = setup.protocol == "fair"
    learned: dict[str, Any] = {"fit_intercept": fair}
    if not fair:
        learned |= {"solver": "ascent", "init": "random", "shrinkage": 0.0, "random_state": setup.seed}
        learned |= {"max_iter": 20 if setup.quick else 200}
    return {
        "KRR": EntangledKernelRidge(shrinkage=1.0, fit_intercept=fair),
        "OKL": OutputKernelRidge(fit_intercept=fair),
        "EKL": EntangledKernelRidge(**learned),
        "ptrEKL": EntangledKernelRidge(prediction="partial_trace", **learned),
    }


def _measure(model: Any, table: Any) -> Record:
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        # A warning that steps are large, or that output kernel learning has not met its tolerance.
        warnings.simplefilter("ignore", category=UserWarning)
        start = process_time()
        model.fit(table.data, table.target)
        fitted = process_time()
        prediction = model.predict(table.data_test)
        done = process_time()
    return {
        "nmse": nmse(table.target_test, prediction),
        "fit_seconds": fitted - start,
        "predict_seconds": done - fitted,
    }


def figures(results: ExperimentResults) -> Figures:
    """Times over n and over p."""
    from ..plotting import RunningTimeDisplay

    titles = {"n": f"Time of one fit over rows, p = {P}", "p": f"Time of one fit over outputs, n = {N}"}
    return varied_figures(RunningTimeDisplay, results, titles)


RUNNING_TIMES = Experiment(
    name="running-times",
    title="Running times of one fit",
    about=(
        "Time to fit each method once, without selection, to bilinear data of ten inputs, with one thread: "
        "over rows at ten outputs, and over outputs at 100 rows. EKL is the closed form with the fair "
        "protocol, 200 steps of ascent from a random full-rank start with the paper's."
    ),
    run=run,
    figures=figures,
)
