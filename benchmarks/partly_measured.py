"""Partly measured targets: intervals, given targets, missing training targets, and speed.

Inputs and targets are standardised on the training rows. If a table has more than 40 targets, every
k-th is kept. nMSE is the mean over targets of the squared error divided by the variance of the
target in the test rows. A random half of the targets is given, then the other half, so that every
target is predicted once. All methods get the same splits, halves and missing targets.

Four tables are read from --data-home, ENTANGLED_KERNELS_DATA or ../shared/data, or downloaded; one
that cannot be read is left out, with a message. The others come with scikit-learn.
partly_measured_figures.py draws the results.

    python benchmarks/partly_measured.py [--quick] [--tables NAME ...] [--parts tables simulated speed]
"""

import argparse
import json
import time
import warnings
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_diabetes, load_digits, load_wine
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

from measure import RESULTS, print_table, processor_seconds, write_json
from tables import breast_cancer, fetch_available, split_rows, standardise, target_errors

SIZES = (20, 40, 100)
# More splits with few rows, which are quick, and whose errors vary more.
MORE_SPLITS = {20: 4, 40: 2}
MOST_TARGETS = 40
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
    by_name = {
        "wine": (wine.data[:, cheap], wine.data[:, ~cheap]),
        "diabetes": (
            diabetes.data[:, :4],
            np.column_stack([diabetes.data[:, 4:], diabetes.target]),
        ),
        "breast cancer": breast_cancer(),
        "digits 1, 7": halves_of_images(1, 7),
        "digits 3, 8": halves_of_images(3, 8),
    }
    gestures = partial(fetch_uwave, classes=(1, 2, 3))
    fetchers = {
        "concrete": fetch_concrete_slump,
        "sarcos": fetch_sarcos,
        "weather": fetch_canadian_weather,
        "uwave X, Y": partial(gestures, inputs="X", outputs="Y"),
        "uwave Y, Z": partial(gestures, inputs="Y", outputs="Z"),
        "uwave Z, X": partial(gestures, inputs="Z", outputs="X"),
    }
    by_name |= fetch_available(fetchers, data_home)
    return {name: (X, Y[:, :: -(-Y.shape[1] // MOST_TARGETS)]) for name, (X, Y) in by_name.items()}


def halves_of_images(*digits):
    """The upper half of images of some digits, and the pixels of the lower half that vary."""
    images, labels = load_digits(return_X_y=True)
    images = images[np.isin(labels, digits)]
    upper, lower = images[:, :32], images[:, 32:]
    most_common = [np.unique(pixel, return_counts=True)[1].max() for pixel in lower.T]
    return upper, lower[:, np.array(most_common) <= 0.8 * len(lower)]


def two_halves(p, rng):
    half = np.zeros(p, dtype=bool)
    half[rng.permutation(p)[: p // 2]] = True
    return half, ~half


def run_split(name, n, split, rows):
    """One record: errors and coverages of all methods on one split."""
    X, Y, X_test, Y_test = standardise(*rows)
    p, rng = Y.shape[1], np.random.default_rng([split, n, 1])
    record = {"table": name, "n": n, "p": p, "d": X.shape[1], "split": split, "test": len(X_test)}
    halves, measured = two_halves(p, rng), rng.random(Y.shape) < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EntangledKernelRidgeCV(random_state=split).fit(X, Y)
        record |= interval_record(model, X_test, Y_test, halves)
        record |= given_record(model, X, Y, X_test, Y_test, halves, split)
        record |= missing_record(X, Y, X_test, Y_test, measured, split)
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
        weights = None if joint else np.array([np.sum(~half) for half in halves])
        record[f"{kind} coverage, given half"] = np.average(
            [part[0] for part in parts], weights=weights
        )
        record[f"{kind} width, given half"] = np.average(
            [part[1] for part in parts], weights=weights
        )
    mean, width = model.predict(X), constant_widths(model.model_.residuals)
    constant = covered(Y, mean - width, mean + width, False)
    return record | {"constant coverage": constant[0], "constant width": constant[1]}


def covered(Y, lower, upper, joint):
    """Share of cells, or of whole rows if ``joint``, inside their intervals, and the mean width."""
    inside = (lower <= Y) & (upper >= Y)
    return float(np.mean(inside.all(axis=1) if joint else inside)), float(np.mean(upper - lower))


def constant_widths(residuals):
    """Half widths (p,) from one quantile of standardised residuals, the same for all inputs."""
    weight = residuals.weight
    unit = np.sqrt(np.average(residuals.values**2, axis=0, weights=weight))
    scores = np.abs(residuals.values) / np.where(unit > 0, unit, 1.0)
    p = scores.shape[1]
    return unit * joint_quantile(
        scores.reshape(-1, 1), np.repeat(weight, p), residuals.n_rows, COVERAGE
    )


def given_record(model, X, Y, X_test, Y_test, halves, seed):
    """Errors without given targets, and with half of them given."""
    plain = kernel_ridge(seed).fit(X, Y)
    folds = KFold(5, shuffle=True, random_state=seed)
    residuals = Y - cross_val_predict(kernel_ridge(seed), X, Y, cv=folds)
    covariance, _ = ledoit_wolf(residuals, assume_centered=True)
    errors = {
        method: np.full(Y.shape[1], np.nan) for method in ("given half", "prototype", *EXTRA_INPUTS)
    }
    base = plain.predict(X_test)
    for half in halves:
        predictions = {
            "given half": model.predict(X_test, given=np.where(half, Y_test, np.nan))[:, ~half]
        }
        step = np.linalg.solve(covariance[np.ix_(half, half)], covariance[np.ix_(half, ~half)])
        predictions["prototype"] = base[:, ~half] + (Y_test - base)[:, half] @ step
        with_half = np.hstack([X, Y[:, half]]), np.hstack([X_test, Y_test[:, half]])
        for method, other in extra_inputs(seed).items():
            predicted = other.fit(with_half[0], Y[:, ~half]).predict(with_half[1])
            predictions[method] = predicted.reshape(len(X_test), -1)
        for method, prediction in predictions.items():
            errors[method][~half] = target_errors(Y_test[:, ~half], prediction)
    errors["not knowing"] = target_errors(Y_test, model.predict(X_test))
    errors["kernel ridge, not knowing"] = target_errors(Y_test, base)
    return {f"nMSE {method}": float(np.nanmean(values)) for method, values in errors.items()}


def missing_record(X, Y, X_test, Y_test, measured, seed):
    """Errors with about half of the training targets missing, with features of a Gaussian kernel."""
    # Folds need at least five rows of every target.
    for target in np.flatnonzero(measured.sum(axis=0) < 5):
        measured[:5, target] = True
    ours = partial(EntangledKernelRidgeCV, gaussian(), random_state=seed)
    alone = [
        kernel_ridge(seed).fit(X[rows], y[rows]).predict(X_test)
        for rows, y in zip(measured.T, Y.T, strict=True)
    ]
    predictions = {
        "missing": ours().fit(X, np.where(measured, Y, np.nan)).predict(X_test),
        "complete": ours().fit(X, Y).predict(X_test),
        "missing, kernel ridge per target": np.column_stack(alone),
    }
    return {
        f"nMSE {method}": float(np.nanmean(target_errors(Y_test, prediction)))
        for method, prediction in predictions.items()
    }


RATIOS = {
    "given / not knowing": ("given half", "not knowing"),
    "/ prototype": ("given half", "prototype"),
    "/ ridge": ("given half", "ridge"),
    "/ kernel ridge": ("given half", "kernel ridge"),
    "/ extra trees": ("given half", "extra trees"),
    "prototype / its not knowing": ("prototype", "kernel ridge, not knowing"),
}
MISSING_RATIOS = {
    "missing / kernel ridge per target": ("missing", "missing, kernel ridge per target"),
    "missing / complete": ("missing", "complete"),
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
        of_table = [r for r in records if (r["n"], r["table"]) == (n, table)]
        row = {"n": n, "table": table, "p": of_table[0]["p"], "splits": len(of_table)}
        rows.append(row | {name: float(column(of_table)) for name, column in columns.items()})
    return rows


def mean_of(name):
    return lambda records: np.mean([r[name] for r in records])


def ratio_of(over, under):
    """Geometric mean over splits of the ratio of nMSE."""
    return lambda records: np.exp(
        np.mean([np.log(r[f"nMSE {over}"] / r[f"nMSE {under}"]) for r in records])
    )


def summarise(rows, columns, *, geometric, worst):
    """Mean over tables and the worst table, for every n and over all."""
    lines = []
    for n in [*sorted({row["n"] for row in rows}), "all"]:
        of_size = [row for row in rows if n in ("all", row["n"])]
        line = {"n": n, "tables": len(of_size)}
        for name in columns:
            values = np.array([row[name] for row in of_size])
            mean = np.exp(np.mean(np.log(values))) if geometric else np.mean(values)
            last = worst(values) if worst else None
            line[name] = f"{mean:.3f}" if last is None else f"{mean:.3f} ({last:.3f})"
        lines.append(line)
    return lines


def report(records, tables_of):
    coverages = by_table(records, {name: mean_of(name) for name in COVERAGES})
    widths = by_table(records, {name: mean_of(name) for name in WIDTHS})
    given = by_table(records, {name: ratio_of(*pair) for name, pair in RATIOS.items()})
    missing = by_table(records, {name: ratio_of(*pair) for name, pair in MISSING_RATIOS.items()})
    for name, title, rows, columns, geometric, worst in (
        ("coverage", "(a) coverage of 90% intervals", coverages, COVERAGES, False, min),
        ("width", "(a) mean width, in deviations of the target", widths, WIDTHS, False, None),
        ("given", "(b) nMSE given half of the targets, ratios", given, RATIOS, True, max),
        (
            "missing",
            "(c) nMSE with half of the training targets missing, ratios",
            missing,
            MISSING_RATIOS,
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
        | {f"{level:g}": float(np.mean(shares[level])) for level in LEVELS}
        | {
            "largest standard error": max(
                float(np.std(values) / np.sqrt(draws)) for values in shares.values()
            )
        }
        for (name, given, kind), shares in hits.items()
    ]


def speed(quick):
    """(e) Time of the processor of predicting with many patterns, and of fitting with missing."""
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
        line["predict s"] = processor_seconds(model.predict, X, repeats=3)
        line["given s"] = processor_seconds(partial(model.predict, X, given=given), repeats=3)
        mapped = (
            0.0
            if feature_map is None
            else processor_seconds(model.feature_map_.transform, X, repeats=3)
        )
        line["feature map s"] = mapped
        line["given, less feature map s"] = line["given s"] - mapped
        line["predict_interval s"] = processor_seconds(
            partial(model.predict_interval, X, given=given)
        )
        predicting.append(line)
    X, Y = rows(2000, 10)
    missing = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    fitting = []
    for name, estimator in (
        ("EntangledKernelRidge", EntangledKernelRidge(features)),
        ("EntangledKernelRidgeCV", EntangledKernelRidgeCV(features, random_state=0)),
    ):
        whole, parts = (
            processor_seconds(estimator.fit, X, targets, repeats=3) for targets in (Y, missing)
        )
        line = {"estimator": name, "rows": 2000, "targets": 10, "features": 300}
        fitting.append(line | {"complete s": whole, "30% missing s": parts, "ratio": parts / whole})
    return predicting, fitting


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--splits", type=int, default=6, help="with n = 100; 4 more with n = 20, 2 more with n = 40"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--tables", nargs="+", help="names of tables; all by default")
    parser.add_argument("--parts", nargs="+", default=["tables", "simulated", "speed"])
    parser.add_argument("--draws", type=int, default=80, help="simulated tables")
    parser.add_argument(
        "--quick", action="store_true", help="one split of n = 20, six draws, fewer rows"
    )
    parser.add_argument("--data-home", help="folder of the real tables")
    parser.add_argument(
        "--name", default="partly_measured", help="name of the file in benchmarks/results"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.splits, options.draws = [20], 1, 6
    # Keep and show the parts of earlier runs.
    path = RESULTS / f"{options.name}.json"
    tables_of = (
        json.loads(path.read_text())["tables"] if path.exists() and not options.quick else {}
    )
    if "tables" in options.parts:
        run_tables(options, tables_of)
    if "simulated" in options.parts:
        tables_of["simulated"] = simulated(options.draws)
    if "speed" in options.parts:
        tables_of["predicting"], tables_of["fitting"] = speed(options.quick)
    if "records" in tables_of:
        report(tables_of["records"], tables_of)
    for name, title in (
        ("simulated", "(d) coverage on simulated rows, n = 200"),
        ("predicting", "(e) predict with many patterns of measured targets, processor seconds"),
        ("fitting", "(e) fit with missing targets, processor seconds"),
    ):
        if name in tables_of:
            print_table(title, tables_of[name])
    write_json(options.name, tables_of)


def run_tables(options, tables_of):
    more = {} if options.quick else MORE_SPLITS
    tasks = [
        (name, n, split, rows)
        for name, (X, Y) in tables(options.data_home).items()
        if not options.tables or name in options.tables
        for n in options.sizes
        for split in range(options.splits + more.get(n, 0))
        if (rows := split_rows(X, Y, n, split)) is not None
    ]
    tasks.sort(key=lambda task: task[2])
    start, tables_of["records"] = time.perf_counter(), []
    jobs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(run_split)(*task) for task in tasks
    )
    for done, record in enumerate(jobs, start=1):
        tables_of["records"].append(record)
        # Save often, since a whole run takes hours.
        if done % 20 == 0 or done == len(tasks):
            print(f"{done} of {len(tasks)} after {time.perf_counter() - start:.0f} s", flush=True)
            write_json(options.name, tables_of)


if __name__ == "__main__":
    main()
