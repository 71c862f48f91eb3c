"""Errors, intervals and seconds of EntangledKernelRidgeCV and of well-known methods.

Inputs and targets are standardised on the training rows. nMSE is the mean over targets of the
squared error divided by the variance of the target in the test rows. Intervals have a nominal
coverage of 90%, and widths in standard deviations of the target. Every method has the settings of
its documentation, and ours its defaults.

Tables come with scikit-learn, are read from ENTANGLED_KERNELS_DATA or ../shared/data, or are
downloaded; one that cannot be read is left out, with a message. GPyTorch, MAPIE, himalaya and
CatBoost are left out where they are not installed (`pip install gpytorch mapie himalaya catboost`).

    python benchmarks/peers.py [--splits 5] [--sizes 40 100] [--tables NAME ...]
"""

import argparse
import time
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV

from entangled_kernels import EntangledKernelRidgeCV

from accuracy import Boosted, Coregionalised, tables
from measure import print_table, write_json
from tables import breast_cancer, nmse, split_rows, standardise

COVERAGE, TWO_SIDED_NORMAL = 0.9, 1.6449
# A simulation, and 315 targets, with which methods for one target take hours.
LEFT_OUT = ("bilinear", "uwave")
MOST_TARGETS = 24
# The largest matrix that a Gaussian process of all targets together has to invert.
MOST_JOINT_NUMBERS = 1000


def process(d):
    kernel = ConstantKernel() * RBF(np.sqrt(d)) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, n_restarts_optimizer=1, random_state=0)


# Every method takes training rows and test inputs, and returns predictions and the lower and upper
# limits of intervals, or None for these.


def ours(X, Y, X_test, seed):
    model = EntangledKernelRidgeCV(random_state=seed).fit(X, Y)
    return model.predict(X_test), *model.predict_interval(X_test, COVERAGE)


def ridge(X, Y, X_test, seed):
    return RidgeCV(np.logspace(-3, 4, 22)).fit(X, Y).predict(X_test), None, None


def partial_least_squares(X, Y, X_test, seed):
    most = min(X.shape[1], int(0.8 * len(X)) - 1, 15)
    grid = {"n_components": range(1, most + 1)}
    search = GridSearchCV(PLSRegression(), grid, scoring="neg_mean_squared_error")
    return search.fit(X, Y).predict(X_test), None, None


def trees(X, Y, X_test, seed):
    model = ExtraTreesRegressor(300, random_state=seed).fit(X, Y)
    return model.predict(X_test), None, None


def boosting(X, Y, X_test, seed):
    return Boosted().fit(X, Y).predict(X_test), None, None


def gaussian_process(X, Y, X_test, seed):
    """A process for each target, with the hyper-parameters of highest marginal likelihood."""
    mean, spread = np.empty((2, len(X_test), Y.shape[1]))
    for target, y in enumerate(Y.T):
        mean[:, target], spread[:, target] = (
            process(X.shape[1]).fit(X, y).predict(X_test, return_std=True)
        )
    return mean, mean - TWO_SIDED_NORMAL * spread, mean + TWO_SIDED_NORMAL * spread


def conformal_process(X, Y, X_test, seed):
    """MAPIE's cross-conformal intervals (CV+) around the process of each target."""
    from mapie.regression import CrossConformalRegressor

    mean, lower, upper = np.empty((3, len(X_test), Y.shape[1]))
    for target, y in enumerate(Y.T):
        model = CrossConformalRegressor(
            process(X.shape[1]), confidence_level=COVERAGE, cv=5, random_state=seed
        )
        mean[:, target], limits = model.fit_conformalize(X, y).predict_interval(X_test)
        lower[:, target], upper[:, target] = limits[:, 0, 0], limits[:, 1, 0]
    return mean, lower, upper


def multitask_process(X, Y, X_test, seed):
    """GPyTorch's process of all targets: a Gaussian kernel times a learned matrix of targets."""
    import torch

    if Y.size > MOST_JOINT_NUMBERS:
        return None
    model = Coregionalised().fit(X, Y)
    with torch.no_grad():
        predicted = model.likelihood_(model.model_(torch.as_tensor(X_test)))
        mean, spread = predicted.mean.numpy(), predicted.stddev.numpy()
    return mean, mean - TWO_SIDED_NORMAL * spread, mean + TWO_SIDED_NORMAL * spread


def several_kernels(X, Y, X_test, seed):
    """himalaya's ridge on a linear and three Gaussian kernels, with weights for every target."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV
    from sklearn.metrics.pairwise import rbf_kernel

    def kernels(A):
        widths = [g / X.shape[1] for g in (0.1, 0.5, 2.0)]
        return np.stack([A @ X.T / X.shape[1], *(rbf_kernel(A, X, g) for g in widths)])

    model = MultipleKernelRidgeCV(
        kernels="precomputed",
        cv=5,
        random_state=seed,
        solver_params={"alphas": np.logspace(-5, 5, 21), "n_iter": 100, "progress_bar": False},
    )
    return model.fit(kernels(X), Y).predict(kernels(X_test)), None, None


METHODS = {
    "ours": (ours, None),
    "ridge": (ridge, None),
    "PLS": (partial_least_squares, None),
    "extra trees": (trees, None),
    "Gaussian process": (gaussian_process, None),
    "process, MAPIE": (conformal_process, "mapie"),
    "GPyTorch ICM": (multitask_process, "gpytorch"),
    "himalaya": (several_kernels, "himalaya"),
    "CatBoost": (boosting, "catboost"),
}


def public_tables():
    """The tables of accuracy.py with at most 24 targets, and breast cancer."""
    found = {name: rows for name, rows in tables().items() if name not in LEFT_OUT}
    return found | {"breast cancer": partial(split_rows, *breast_cancer())}


def run_split(name, n, split, data):
    """One record of every method on one split of a table."""
    X, Y, X_test, Y_test = standardise(*data)
    step = -(-Y.shape[1] // MOST_TARGETS)
    Y, Y_test = Y[:, ::step], Y_test[:, ::step]
    records = []
    for method, (run, package) in METHODS.items():
        if package is not None and find_spec(package) is None:
            continue
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run(X, Y, X_test, split)
        if result is None:
            continue
        prediction, lower, upper = result
        record = {"table": name, "n": n, "p": Y.shape[1], "split": split, "method": method}
        record |= {"nmse": nmse(Y_test, prediction), "seconds": time.process_time() - start}
        if lower is not None:
            inside = (lower <= Y_test) & (Y_test <= upper)
            record |= {"coverage": float(inside.mean()), "width": float(np.mean(upper - lower))}
        records.append(record)
    return records


def summary(records, n):
    """A row for each method: geometric means over tables, and the means of intervals."""

    def by_table(method, key):
        values = {}
        for record in records:
            if (record["method"], record["n"]) == (method, n) and key in record:
                values.setdefault(record["table"], []).append(record[key])
        return {table: float(np.mean(numbers)) for table, numbers in values.items()}

    ours_error = by_table("ours", "nmse")
    lines = []
    for method in METHODS:
        error = by_table(method, "nmse")
        if not error:
            continue
        ratios = [np.log(ours_error[table] / value) for table, value in error.items()]
        coverage, width = by_table(method, "coverage"), by_table(method, "width")
        seconds = by_table(method, "seconds")
        lines.append(
            {
                "n": n,
                "method": method,
                "tables": len(error),
                "ours / its error": float(np.exp(np.mean(ratios))),
                "ours is better on": sum(ratio < 0 for ratio in ratios),
                "coverage": f"{np.mean(list(coverage.values())):.3f}" if coverage else "",
                "least": f"{min(coverage.values()):.3f}" if coverage else "",
                "width": f"{np.mean(list(width.values())):.2f}" if width else "",
                "median seconds": float(np.median(list(seconds.values()))),
            }
        )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 100])
    parser.add_argument("--tables", nargs="+", help="names of tables; all by default")
    options = parser.parse_args()
    records = []
    for name, rows in public_tables().items():
        if options.tables and name not in options.tables:
            continue
        for n in options.sizes:
            for split in range(options.splits):
                data = rows(n, split)
                if data is not None:
                    records += run_split(name, n, split, data)
            print(f"{name}, n = {n}: done", flush=True)
    for n in options.sizes:
        of_size = [record for record in records if record["n"] == n]
        for table in dict.fromkeys(record["table"] for record in of_size):
            print_errors(table, n, of_size)
        print_table(f"all tables, n = {n}", summary(records, n))
    write_json("peers", {"records": records})


def print_errors(table, n, records):
    """A line for each method on one table."""
    lines = []
    for method in METHODS:
        runs = [r for r in records if r["table"] == table and r["method"] == method]
        if runs:
            means = {
                key: float(np.mean([run[key] for run in runs])) if key in runs[0] else ""
                for key in ("nmse", "coverage", "width", "seconds")
            }
            lines.append({"method": method, **means})
    print_table(f"{table}, n = {n}, {runs_of(records, table)} splits", lines)


def runs_of(records, table):
    return len({record["split"] for record in records if record["table"] == table})


if __name__ == "__main__":
    main()
