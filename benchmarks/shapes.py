"""Seconds and memory of the default search at unusual shapes, as ratios to the columns as features.

Every fit runs in a new process, so that peak memory is that of the fit. Seconds are processor time,
which other programs disturb less than wall time.

    python benchmarks/shapes.py [rows inputs targets]
"""

import argparse
import warnings

import numpy as np
from sklearn.linear_model import Ridge

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV

from measure import in_fresh_process, print_table, processor_seconds, write_json

SHAPES = ((100, 50_000, 2), (200, 10, 20_000), (60, 500, 3), (200, 20, 200), (20_000, 10, 3))
MISSING = (("EntangledKernelRidge", (457, 8, 2)), ("EntangledKernelRidgeCV", (457, 8, 2)))


def rows(n, d, p, seed=0):
    """Linear targets with a sine of the first input, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X @ rng.normal(size=(d, p)) / np.sqrt(d) + np.sin(X[:, :1]) + 0.3 * rng.normal(size=(n, p))
    return X, Y


def measure_shape(feature_map, n, d, p):
    """Processor seconds of fit, of the training rows' predictions, and of intervals of 50 rows."""
    warnings.simplefilter("ignore")
    X, Y = rows(n, d, p)
    model = EntangledKernelRidgeCV(feature_map, random_state=0)
    fit = processor_seconds(model.fit, X, Y)
    intervals = processor_seconds(model.predict_interval, X[:50])
    return fit, intervals, processor_seconds(model.predict, X), model.cv_score_


def compare_shapes(shapes):
    """(a) The default beside ``feature_map=None``."""
    table = []
    for shape in shapes:
        (plain, *_), _ = in_fresh_process(measure_shape, None, *shape)
        (fit, intervals, predict, error), peak = in_fresh_process(measure_shape, "auto", *shape)
        row = dict(zip(("n", "d", "p"), shape, strict=True))
        row |= {"s": fit, "GB": peak / 1024, "time / columns": fit / plain}
        table.append(
            row | {"intervals of 50 rows s": intervals, "predict s": predict, "error": error}
        )
    return table


def predict_rows(n=1_000_000, repeats=3):
    """(b) Predictions of many rows beside scikit-learn's Ridge."""
    X, Y = rows(2000, 10, 3)
    new = rows(n, 10, 3, seed=1)[0]
    models = {
        "Ridge": Ridge(),
        "EntangledKernelRidge": EntangledKernelRidge(),
        "EntangledKernelRidgeCV(None)": EntangledKernelRidgeCV(None, random_state=0),
    }
    table, first = [], None
    for name, model in models.items():
        taken = processor_seconds(model.fit(X, Y).predict, new, repeats=repeats)
        first = first or taken
        table.append({"method": name, "rows": n, "s": taken, "time / Ridge": taken / first})
    return table


def fit_missing(cases=MISSING, share=0.1):
    """(c) Fits with missing targets beside complete ones."""
    table = []
    for name, shape in cases:
        X, Y = rows(*shape)
        gaps = np.where(np.random.default_rng(2).random(Y.shape) < share, np.nan, Y)
        model = (
            EntangledKernelRidge() if name == "EntangledKernelRidge" else EntangledKernelRidgeCV()
        )
        repeats = 5 if name == "EntangledKernelRidge" else 1
        complete, missing = (
            processor_seconds(model.fit, X, targets, repeats=repeats) for targets in (Y, gaps)
        )
        row = {"method": name} | dict(zip(("n", "d", "p"), shape, strict=True))
        table.append(row | {"s": complete, "missing s": missing, "ratio": missing / complete})
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", type=int, nargs="*", help="rows, inputs and targets")
    shape = tuple(parser.parse_args().shape)
    if len(shape) not in (0, 3):
        parser.error(f"shape must be three numbers, rows, inputs and targets, got {len(shape)}")
    tables = {"shapes": compare_shapes([shape] if shape else SHAPES)}
    if not shape:
        tables |= {"prediction": predict_rows(), "missing": fit_missing()}
    for title, rows_of_table in tables.items():
        print_table(title, rows_of_table)
    write_json("shapes", tables)


if __name__ == "__main__":
    main()
