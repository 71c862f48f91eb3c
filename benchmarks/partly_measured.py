"""Targets measured in part: intervals, conditioning on given targets, missing training targets, and speed.

Inputs and targets are standardised on the training rows. Of a table with more than 40 targets every
k-th is kept. nMSE is the mean over targets of the squared error divided by the variance of the
target in the test rows. Half of the targets is a random half, then the other half, so that every
target is predicted once given targets that are not it. All methods see the same splits, halves and
blanks.

Four tables are read from --data-home, from ENTANGLED_KERNELS_DATA, or from ../shared/data; one that
is not there is left out and named. The others come with scikit-learn. partly_measured_figures.py
draws the results.
"""

import argparse
import json
import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
)
from entangled_kernels.uncertainty.calibration import joint_quantile

from measure import RESULTS, print_table, write_json

SIZES = (20, 40, 100)
# Beside those at n = 100, since few rows are quick, and differ more from split to split.
MORE_SPLITS = {20: 4, 40: 2}
LARGEST_TEST, SMALLEST_TEST, MOST_TARGETS = 500, 8, 40
COVERAGE = 0.9
LEVELS = (0.5, 0.8, 0.9, 0.95)
CHEAP = ("alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "color_intensity", "hue")
EXTRA_INPUTS = ("ridge", "kernel ridge", "extra trees")


def gaussian():
    return make_pipeline(StandardScaler(), Nystroem(random_state=0))


def kernel_ridge(seed):
    return EntangledKernelRidgeCV(
        gaussian(), selection="best", random_state=seed, param_grid={"shrinkage": (1.0,)}
    )


def extra_inputs(seed):
    """Methods that take measured targets as inputs, by name."""
    makers = (
        RidgeCV(np.logspace(-3, 4, 22)),
        kernel_ridge(seed),
        ExtraTreesRegressor(200, random_state=seed),
    )
    return dict(zip(EXTRA_INPUTS, makers, strict=True))


def tables(data_home):
    """Inputs (n, d) and targets (n, p) by name of the table."""
    wine = load_wine()
    cheap = np.isin(wine.feature_names, CHEAP)
    diabetes = load_diabetes(scaled=False)
    cancer = load_breast_cancer().data
    found = {
        "wine": (wine.data[:, cheap], wine.data[:, ~cheap]),
        "diabetes": (
            diabetes.data[:, :4],
            np.column_stack([diabetes.data[:, 4:], diabetes.target]),
        ),
        "breast cancer": (cancer[:, :20], cancer[:, 20:]),
        "digits 1, 7": halves_of_images(1, 7),
        "digits 3, 8": halves_of_images(3, 8),
    }
    gestures = partial(fetch_uwave, classes=(1, 2, 3))
    for name, fetch in {
        "concrete": fetch_concrete_slump,
        "sarcos": fetch_sarcos,
        "weather": fetch_canadian_weather,
        "uwave X, Y": partial(gestures, inputs="X", outputs="Y"),
        "uwave Y, Z": partial(gestures, inputs="Y", outputs="Z"),
        "uwave Z, X": partial(gestures, inputs="Z", outputs="X"),
    }.items():
        try:
            found[name] = fetch(data_home=data_home, download_if_missing=False, return_X_y=True)
        except OSError as error:
            print(f"left out: {name}: {error}")
    return {name: (X, Y[:, :: -(-Y.shape[1] // MOST_TARGETS)]) for name, (X, Y) in found.items()}


def halves_of_images(*digits):
    """The upper half of images of some digits, and pixels of the lower half that seldom stay the same."""
    images, labels = load_digits(return_X_y=True)
    images = images[np.isin(labels, digits)]
    upper, lower = images[:, :32], images[:, 32:]
    most_common = [np.unique(pixel, return_counts=True)[1].max() for pixel in lower.T]
    return upper, lower[:, np.array(most_common) <= 0.8 * len(lower)]


def draw_split(X, Y, n, split):
    """Training and test rows, standardised on the former; None where too few are left to test on."""
    if len(X) - n < SMALLEST_TEST:
        return None
    order = np.random.default_rng([split, n]).permutation(len(X))
    train, test = order[:n], order[n : n + LARGEST_TEST]

    def scale(table):
        mean, spread = table[train].mean(axis=0), table[train].std(axis=0)
        table = (table - mean) / np.where(spread > 0, spread, 1.0)
        return table[train], table[test]

    (X_train, X_test), (Y_train, Y_test) = scale(X), scale(Y)
    return X_train, Y_train, X_test, Y_test


def target_errors(Y, prediction):
    """Squared error of every target over its variance, NaN for one that does not vary."""
    variance = Y.var(axis=0)
    return np.where(variance > 1e-12, np.mean((Y - prediction) ** 2, axis=0), np.nan) / np.maximum(
        variance, 1e-12
    )


def two_halves(p, rng):
    half = np.zeros(p, dtype=bool)
    half[rng.permutation(p)[: p // 2]] = True
    return half, ~half


def run_split(name, n, split, rows):
    """One record: errors and coverages of all methods on one split."""
    X, Y, X_test, Y_test = rows
    p, rng = Y.shape[1], np.random.default_rng([split, n, 1])
    record = {"table": name, "n": n, "p": p, "d": X.shape[1], "split": split, "test": len(X_test)}
    halves, measured = two_halves(p, rng), rng.random(Y.shape) < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EntangledKernelRidgeCV(random_state=split).fit(X, Y)
        record |= interval_record(model, X_test, Y_test, halves)
        record |= given_record(model, X, Y, X_test, Y_test, halves, split)
        record |= blank_record(X, Y, X_test, Y_test, measured, split)
    return record


def interval_record(model, X, Y, halves):
    """Coverage and width of intervals, beside one width for all inputs."""
    record = {}
    for joint in (False, True):
        kind = "joint" if joint else "marginal"
        lower, upper = model.predict_interval(X, COVERAGE, joint=joint)
        record[f"{kind} coverage"], record[f"{kind} width"] = covered(Y, lower, upper, joint)
        parts = []
        for half in halves:
            lower, upper = model.predict_interval(
                X, COVERAGE, given=np.where(half, Y, np.nan), joint=joint
            )
            parts.append(covered(Y[:, ~half], lower[:, ~half], upper[:, ~half], joint))
        own = np.array([np.sum(~half) for half in halves]) if not joint else None
        record[f"{kind} coverage, given half"] = np.average(
            [part[0] for part in parts], weights=own
        )
        record[f"{kind} width, given half"] = np.average([part[1] for part in parts], weights=own)
    mean, width = model.predict(X), constant_widths(model.model_.residuals)
    found = covered(Y, mean - width, mean + width, False)
    return record | {"constant coverage": found[0], "constant width": found[1]}


def covered(Y, lower, upper, joint):
    """Share of cells, or of rows, that lie in their intervals, and the mean width."""
    inside = (lower <= Y) & (upper >= Y)
    return float(np.mean(inside.all(axis=1) if joint else inside)), float(np.mean(upper - lower))


def constant_widths(residuals):
    """Half widths (p,) that do not depend on the input: one quantile of residuals over their deviations."""
    weight = residuals.weight
    unit = np.sqrt(np.average(residuals.values**2, axis=0, weights=weight))
    scores = np.abs(residuals.values) / np.where(unit > 0, unit, 1.0)
    p = scores.shape[1]
    return unit * joint_quantile(
        scores.reshape(-1, 1), np.repeat(weight, p), residuals.n_rows, COVERAGE
    )


def given_record(model, X, Y, X_test, Y_test, halves, seed):
    """Errors not knowing any target, and given half of them."""
    plain = kernel_ridge(seed).fit(X, Y)
    folds = KFold(5, shuffle=True, random_state=seed)
    residuals = Y - cross_val_predict(kernel_ridge(seed), X, Y, cv=folds)
    covariance, _ = ledoit_wolf(residuals, assume_centered=True)
    errors = {
        method: np.full(Y.shape[1], np.nan) for method in ("given half", "prototype", *EXTRA_INPUTS)
    }
    base = plain.predict(X_test)
    for half in halves:
        found = {
            "given half": model.predict(X_test, given=np.where(half, Y_test, np.nan))[:, ~half]
        }
        step = np.linalg.solve(covariance[np.ix_(half, half)], covariance[np.ix_(half, ~half)])
        found["prototype"] = base[:, ~half] + (Y_test - base)[:, half] @ step
        with_half = np.hstack([X, Y[:, half]]), np.hstack([X_test, Y_test[:, half]])
        for method, other in extra_inputs(seed).items():
            predicted = other.fit(with_half[0], Y[:, ~half]).predict(with_half[1])
            found[method] = predicted.reshape(len(X_test), -1)
        for method, prediction in found.items():
            errors[method][~half] = target_errors(Y_test[:, ~half], prediction)
    errors["not knowing"] = target_errors(Y_test, model.predict(X_test))
    errors["kernel ridge, not knowing"] = target_errors(Y_test, base)
    return {f"nMSE {method}": float(np.nanmean(own)) for method, own in errors.items()}


def blank_record(X, Y, X_test, Y_test, measured, seed):
    """Errors with about half of the training targets missing, on Gaussian features of median width."""
    # Five rows at least for every target, so that folds can be made of them.
    for target in np.flatnonzero(measured.sum(axis=0) < 5):
        measured[:5, target] = True
    ours = partial(EntangledKernelRidgeCV, gaussian(), random_state=seed)
    alone = [
        kernel_ridge(seed).fit(X[own], y[own]).predict(X_test)
        for own, y in zip(measured.T, Y.T, strict=True)
    ]
    predictions = {
        "blanks": ours().fit(X, np.where(measured, Y, np.nan)).predict(X_test),
        "complete": ours().fit(X, Y).predict(X_test),
        "blanks, kernel ridge per target": np.column_stack(alone),
    }
    return {
        f"nMSE {method}": float(np.nanmean(target_errors(Y_test, found)))
        for method, found in predictions.items()
    }


RATIOS = {
    "given / not knowing": ("given half", "not knowing"),
    "/ prototype": ("given half", "prototype"),
    "/ ridge": ("given half", "ridge"),
    "/ kernel ridge": ("given half", "kernel ridge"),
    "/ extra trees": ("given half", "extra trees"),
    "prototype / its not knowing": ("prototype", "kernel ridge, not knowing"),
}
BLANK_RATIOS = {
    "blanks / kernel ridge per target": ("blanks", "blanks, kernel ridge per target"),
    "blanks / complete": ("blanks", "complete"),
}
COVERAGES = (
    "marginal coverage",
    "marginal coverage, given half",
    "joint coverage",
    "joint coverage, given half",
    "constant coverage",
)
WIDTHS = (
    "marginal width",
    "constant width",
    "marginal width, given half",
    "joint width",
    "joint width, given half",
)


def by_table(records, columns):
    """One row for every table and n; columns are functions of its records."""
    keys = sorted({(r["n"], r["table"]) for r in records})
    rows = []
    for n, table in keys:
        own = [r for r in records if (r["n"], r["table"]) == (n, table)]
        row = {"n": n, "table": table, "p": own[0]["p"], "splits": len(own)}
        rows.append(row | {name: float(column(own)) for name, column in columns.items()})
    return rows


def mean_of(name):
    return lambda own: np.mean([r[name] for r in own])


def ratio_of(over, under):
    """Geometric mean over splits of the ratio of nMSE."""
    return lambda own: np.exp(
        np.mean([np.log(r[f"nMSE {over}"] / r[f"nMSE {under}"]) for r in own])
    )


def summarise(rows, columns, *, geometric, worst):
    """Means over tables and the worst table, for every n and all."""
    found = []
    for n in [*sorted({row["n"] for row in rows}), "all"]:
        own = [row for row in rows if n in ("all", row["n"])]
        line = {"n": n, "tables": len(own)}
        for name in columns:
            values = np.array([row[name] for row in own])
            mean = np.exp(np.mean(np.log(values))) if geometric else np.mean(values)
            last = worst(values) if worst else None
            line[name] = f"{mean:.3f}" if last is None else f"{mean:.3f} ({last:.3f})"
        found.append(line)
    return found


def report(records, tables_of):
    coverages = by_table(records, {name: mean_of(name) for name in COVERAGES})
    widths = by_table(records, {name: mean_of(name) for name in WIDTHS})
    given = by_table(records, {name: ratio_of(*pair) for name, pair in RATIOS.items()})
    blanks = by_table(records, {name: ratio_of(*pair) for name, pair in BLANK_RATIOS.items()})
    for name, title, rows, columns, geometric, worst in (
        ("coverage", "(a) coverage of 90% intervals", coverages, COVERAGES, False, min),
        ("width", "(a) mean width, in deviations of the target", widths, WIDTHS, False, None),
        ("given", "(b) nMSE given half of the targets, ratios", given, RATIOS, True, max),
        (
            "blanks",
            "(c) nMSE with half of the cells blank, ratios",
            blanks,
            BLANK_RATIOS,
            True,
            max,
        ),
    ):
        tables_of[name] = rows
        tables_of[f"{name}, means"] = summarise(rows, columns, geometric=geometric, worst=worst)
        print_table(title, rows)
        print_table("means over tables (worst table)", tables_of[f"{name}, means"])


def simulated(draws, n=200, n_test=500, d=6, p=6):
    """(d) Coverage on rows of a linear model with a known covariance of the noise, n = 200."""
    estimators = {
        "EntangledKernelRidge": EntangledKernelRidge(),
        "EntangledKernelRidgeCV": EntangledKernelRidgeCV(None, random_state=0),
    }
    hits = {}
    for draw in range(draws):
        rng = np.random.default_rng([draw, 2])
        coef, root = rng.normal(size=(d, p)), rng.normal(size=(2, p))
        X = rng.normal(size=(n + n_test, d))
        noise = rng.normal(size=(n + n_test, 2)) @ root + 0.7 * rng.normal(size=(n + n_test, p))
        Y = X @ coef + noise
        half = two_halves(p, rng)[0]
        X_test, Y_test = X[n:], Y[n:]
        for name, estimator in estimators.items():
            estimator.fit(X[:n], Y[:n])
            for given in (None, np.where(half, Y_test, np.nan)):
                other = np.ones(p, dtype=bool) if given is None else ~half
                for joint in (False, True):
                    kind = (
                        "half given" if given is not None else "none given",
                        "joint" if joint else "each",
                    )
                    for level in LEVELS:
                        lower, upper = estimator.predict_interval(
                            X_test, level, given=given, joint=joint
                        )
                        share, _ = covered(
                            Y_test[:, other], lower[:, other], upper[:, other], joint
                        )
                        hits.setdefault((name, *kind), {}).setdefault(level, []).append(share)
    return [
        {"estimator": name, "targets": given, "intervals": kind, "draws": draws}
        | {f"{level:g}": float(np.mean(found[level])) for level in LEVELS}
        | {
            "largest standard error": max(
                float(np.std(own) / np.sqrt(draws)) for own in found.values()
            )
        }
        for (name, given, kind), found in hits.items()
    ]


def process_seconds(function, repeats=3):
    """Least time of the processor over some calls."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def speed(quick):
    """(e) Time of the processor of predicting with many patterns, and of fitting with blanks."""
    rng = np.random.default_rng(0)
    n, p, n_patterns = (10_000, 20, 100) if quick else (100_000, 20, 1000)
    features = Nystroem(gamma=0.05, n_components=300, random_state=0)

    def rows(n, p, d=10):
        X = rng.normal(size=(n, d))
        return X, np.tanh(X @ rng.normal(size=(d, 5))) @ rng.normal(size=(5, p)) + rng.normal(
            size=(n, p)
        )

    X, Y = rows(n, p)
    patterns = np.unique(rng.random((2 * n_patterns, p)) < 0.5, axis=0)[:n_patterns]
    given = np.where(patterns[rng.integers(len(patterns), size=n)], Y, np.nan)
    predicting = []
    for name, feature_map in (("linear", None), ("Nystroem(300)", features)):
        model = EntangledKernelRidge(feature_map).fit(X[:2000], Y[:2000])
        line = {"features": name, "rows": n, "targets": p, "patterns": len(patterns)}
        line["predict s"] = process_seconds(partial(model.predict, X))
        line["given s"] = process_seconds(partial(model.predict, X, given=given))
        mapped = (
            0.0
            if feature_map is None
            else process_seconds(partial(model.feature_map_.transform, X))
        )
        line["feature map s"] = mapped
        line["given, less feature map s"] = line["given s"] - mapped
        line["predict_interval s"] = process_seconds(
            partial(model.predict_interval, X, given=given), 1
        )
        predicting.append(line)
    X, Y = rows(2000, 10)
    blank = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    fitting = []
    for name, estimator in (
        ("EntangledKernelRidge", EntangledKernelRidge(features)),
        ("EntangledKernelRidgeCV", EntangledKernelRidgeCV(features, random_state=0)),
    ):
        whole, parts = (process_seconds(partial(estimator.fit, X, own)) for own in (Y, blank))
        line = {"estimator": name, "rows": 2000, "targets": 10, "features": 300}
        fitting.append(line | {"complete s": whole, "30% blank s": parts, "ratio": parts / whole})
    return predicting, fitting


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--splits", type=int, default=6, help="at n = 100; 4 and 2 more at n = 20 and 40"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--tables", nargs="+", help="names of tables; all by default")
    parser.add_argument("--parts", nargs="+", default=["tables", "simulated", "speed"])
    parser.add_argument("--draws", type=int, default=80, help="simulated tables")
    parser.add_argument(
        "--quick", action="store_true", help="one split of n = 20, six draws, fewer rows"
    )
    parser.add_argument("--data-home", default=os.environ.get("ENTANGLED_KERNELS_DATA"))
    parser.add_argument(
        "--name", default="partly_measured", help="name of the file in benchmarks/results"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.splits, options.draws = [20], 1, 6
    home = options.data_home or str(Path(__file__).parents[2] / "shared" / "data")
    # Parts that were run before stay in the file, and are shown again.
    path = RESULTS / f"{options.name}.json"
    found = json.loads(path.read_text())["tables"] if path.exists() and not options.quick else {}
    if "tables" in options.parts:
        run_tables(options, home, found)
    if "simulated" in options.parts:
        found["simulated"] = simulated(options.draws)
    if "speed" in options.parts:
        found["predicting"], found["fitting"] = speed(options.quick)
    if "records" in found:
        report(found["records"], found)
    for name, title in (
        ("simulated", "(d) coverage on simulated rows, n = 200"),
        ("predicting", "(e) predict with many patterns of measured targets, time of the processor"),
        ("fitting", "(e) fit with blanks, time of the processor"),
    ):
        if name in found:
            print_table(title, found[name])
    write_json(options.name, found)


def run_tables(options, home, found):
    more = {} if options.quick else MORE_SPLITS
    tasks = [
        (name, n, split, rows)
        for name, (X, Y) in tables(home).items()
        if not options.tables or name in options.tables
        for n in options.sizes
        for split in range(options.splits + more.get(n, 0))
        if (rows := draw_split(X, Y, n, split)) is not None
    ]
    tasks.sort(key=lambda task: task[2])
    start, found["records"] = time.perf_counter(), []
    jobs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(run_split)(*task) for task in tasks
    )
    for done, record in enumerate(jobs, start=1):
        found["records"].append(record)
        # What there is so far is kept, since a whole run takes long.
        if done % 20 == 0 or done == len(tasks):
            print(f"{done} of {len(tasks)} after {time.perf_counter() - start:.0f} s", flush=True)
            write_json(options.name, found)


if __name__ == "__main__":
    main()
