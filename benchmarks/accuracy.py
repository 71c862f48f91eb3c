"""Accuracy of every method on nine tables, paired by split, beside kernel ridge tuned on the same folds.

Inputs and targets are standardised on the training rows. All methods that are tuned by cross-validation get
the same folds and, where they have a ridge penalty, the same grid in units of the scale of their features.
nMSE is the mean over targets of the squared error divided by the variance of the target in the test rows.

The real tables are read from ENTANGLED_KERNELS_DATA, or ../shared/data; a table that is not there is left
out and named. The intrinsic-coregionalisation process needs `pip install gpytorch`, CatBoost `pip install
catboost`; they are left out without.
"""

import argparse
import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes, load_digits, load_linnerud, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.linear_model import MultiTaskElasticNetCV, RidgeCV
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, RepeatedKFold
from sklearn.multioutput import RegressorChain

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    GaussianFeatures,
    OutputKernelRidgeCV,
)
from entangled_kernels.datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
    make_bilinear,
)
from entangled_kernels.features import default_feature_maps
from entangled_kernels.storage import ExperimentResults, software_versions

from measure import RESULTS, print_table

DATA = os.environ.get("ENTANGLED_KERNELS_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
SIZES = (12, 20, 40, 100)
LARGEST_TEST, SMALLEST_TEST = 500, 8
LEAST_SHOWN, MOST_SHOWN = 0.5, 2.0
WIDTHS = (0.5, 1.0, 2.0, 4.0)
BASELINE, PROCESS = "kernel ridge", "GP by evidence"
PEERS = (PROCESS, "extra trees", "CatBoost")
# CatBoost with so many targets takes minutes a fit.
MOST_BOOSTED = 40


class ByEvidence(RegressorMixin, BaseEstimator):
    """Gaussian process with hyper-parameters by marginal likelihood, shared over outputs."""

    def fit(self, X, Y):
        median = np.median(euclidean_distances(X)[np.triu_indices(len(X), 1)])
        kernel = (
            ConstantKernel(0.5, (1e-5, 1e3)) * RBF(median, (0.05 * median, 50 * median))
            + ConstantKernel(0.5 / X.shape[1], (1e-6, 1e2)) * DotProduct(0.0, "fixed")
            + WhiteKernel(0.1, (1e-6, 1e2))
        )
        self.process_ = GaussianProcessRegressor(kernel).fit(X, Y)
        return self

    def predict(self, X):
        return self.process_.predict(X)


class ManyWidths(RegressorMixin, BaseEstimator):
    """Gaussian process with a width for every column by penalised evidence, and its own noise for alpha."""

    def fit(self, X, Y):
        features = ColumnWidthFeatures(random_state=0).fit(X, Y)
        model = EntangledKernelRidge(features, shrinkage=1.0, alpha=features.noise_)
        self.model_ = model.fit(X, Y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class Boosted(RegressorMixin, BaseEstimator):
    """CatBoost's trees for all targets together, with its defaults."""

    def fit(self, X, Y):
        from catboost import CatBoostRegressor

        settings = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
        self.model_ = CatBoostRegressor(loss_function="MultiRMSE", **settings).fit(X, Y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class ElasticNet(RegressorMixin, BaseEstimator):
    """MultiTaskElasticNetCV in coordinates of the targets' own span, which its penalty does not see."""

    def __init__(self, cv):
        self.cv = cv

    def fit(self, X, Y):
        self.mean_ = Y.mean(axis=0)
        U, spread, self.axes_ = np.linalg.svd(Y - self.mean_, full_matrices=False)
        net = MultiTaskElasticNetCV(l1_ratio=0.5, alphas=10, cv=self.cv, tol=1e-3)
        self.net_ = net.fit(X, U * spread)
        return self

    def predict(self, X):
        return self.net_.predict(X) @ self.axes_ + self.mean_


class Coregionalised(RegressorMixin, BaseEstimator):
    """GPyTorch's multitask process: one Gaussian kernel times a learned matrix of outputs."""

    def __init__(self, rank=2, steps=150):
        self.rank = rank
        self.steps = steps

    def fit(self, X, Y):
        import gpytorch
        import torch

        torch.manual_seed(0)
        p, rank = Y.shape[1], min(self.rank, Y.shape[1])

        class Model(gpytorch.models.ExactGP):
            def __init__(self, x, y, likelihood):
                super().__init__(x, y, likelihood)
                self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=p)
                inputs = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
                self.covar_module = gpytorch.kernels.MultitaskKernel(inputs, num_tasks=p, rank=rank)

            def forward(self, x):
                return gpytorch.distributions.MultitaskMultivariateNormal(
                    self.mean_module(x), self.covar_module(x)
                )

        x, y = torch.as_tensor(X), torch.as_tensor(Y)
        likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=p).double()
        model = Model(x, y, likelihood).double()
        model.covar_module.data_covar_module.base_kernel.lengthscale = float(
            np.median(euclidean_distances(X))
        )
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        model.train()
        for _ in range(self.steps):
            optimiser.zero_grad()
            loss = -objective(model(x), y)
            loss.backward()
            optimiser.step()
        self.model_ = model.eval()
        self.likelihood_ = likelihood.eval()
        return self

    def predict(self, X):
        import torch

        with torch.no_grad():
            return self.model_(torch.as_tensor(X)).mean.numpy()


def tables():
    """Functions of (n, split) that give training and test rows, raw, by name of the table."""

    def real(X, Y):
        def rows(n, split):
            if len(X) - n < SMALLEST_TEST:
                return None
            order = np.random.default_rng([split, n]).permutation(len(X))
            train, test = order[:n], order[n : n + LARGEST_TEST]
            return X[train], Y[train], X[test], Y[test]

        return rows

    def bilinear(n, split):
        rows = make_bilinear(n, 100, random_state=split)
        return rows.data, rows.target, rows.data_test, rows.target_test

    found = {"linnerud": real(*load_linnerud(return_X_y=True)), "bilinear": bilinear}
    wine, diabetes, digits = load_wine().data, load_diabetes(), load_digits().data
    found["wine"] = real(wine[:, :8], wine[:, 8:])
    # Physiology and five of six sera from the rest.
    found["diabetes"] = real(diabetes.data[:, :6], np.column_stack([diabetes.target, diabetes.data[:, 6:]]))
    # The lower half of a digit, every fourth point, from the upper half.
    inked = digits[:, digits.std(axis=0) > 0.5]
    half = inked.shape[1] // 2
    found["digit halves"] = real(inked[:, :half], inked[:, half::4])
    fetchers = {
        "concrete": fetch_concrete_slump,
        "sarcos": fetch_sarcos,
        "weather": fetch_canadian_weather,
        "uwave": fetch_uwave,
    }
    for name, fetch in fetchers.items():
        try:
            table = fetch(data_home=DATA)
        except OSError as error:
            print(f"left out: {name}: {error}")
            continue
        keep = np.isin(table.labels, (1, 2, 3)) if name == "uwave" else slice(None)
        found[name] = real(table.data[keep], table.target[keep])
    return found


def standardised(X, Y, X_test, Y_test):
    def scale(train, test):
        mean, spread = train.mean(axis=0), train.std(axis=0)
        spread[spread == 0] = 1.0
        return (train - mean) / spread, (test - mean) / spread

    (X, X_test), (Y, Y_test) = scale(X, X_test), scale(Y, Y_test)
    return X, Y, X_test, Y_test


def kernel_methods(folds):
    """Methods that take features, with the same folds; the alphas are the estimator's scale-free grid."""
    ours = {"cv": folds, "random_state": 0}
    return {
        BASELINE: EntangledKernelRidgeCV(None, shrinkages=(1.0,), gains=(1.0,), selection="best", **ours),
        "selected": EntangledKernelRidgeCV(None, **ours),
        "selected, best": EntangledKernelRidgeCV(None, selection="best", **ours),
        "EKL closed form": EntangledKernelRidgeCV(
            None, predictions=("entangled",), alignment_mixes=(0.5, 1.0), **ours
        ),
        "EKL ascent": EntangledKernelRidgeCV(
            None, solver="ascent", ranks=(3,), shrinkages=(0.25, 0.75, 1.0), max_iter=100, **ours
        ),
        "ptrEKL": EntangledKernelRidgeCV(None, predictions=("partial_trace",), **ours),
        "output kernel": OutputKernelRidgeCV(cv=folds),
    }


# Places of kinds of maps among the automatic ones.
MAPS = {"columns": (0,), "evidence": (1,), "warped": (2,), "widths": (3,), "forests": (4, 5)}


def without(*places):
    """The automatic maps but those at these places."""
    return [one for place, one in enumerate(default_feature_maps(0)) if place not in places]


def other_methods(folds, n, d):
    components = [c for c in (1, 2, 3, 4, 6, 8, 12) if c < min(0.8 * n, d + 1)]
    return {
        "auto": EntangledKernelRidgeCV(cv=folds, random_state=0),
        "auto, kernel ridge alone": EntangledKernelRidgeCV(
            cv=folds, shrinkages=(1.0,), gains=(1.0,), random_state=0
        ),
        **{
            f"auto without {name}": EntangledKernelRidgeCV(without(*kinds), cv=folds, random_state=0)
            for name, kinds in MAPS.items()
        },
        PROCESS: ByEvidence(),
        "GP, many widths": ManyWidths(),
        "ridge": RidgeCV(np.logspace(-4, 4, 17) * n),
        "CatBoost": Boosted(),
        "PLS": GridSearchCV(
            PLSRegression(scale=False),
            {"n_components": components},
            cv=folds,
            scoring="neg_mean_squared_error",
        ),
        # One round of the folds and few settings: coordinate descent over hundreds of inputs takes minutes.
        "elastic net": ElasticNet(folds[:5]),
        "chain of ridges": RegressorChain(RidgeCV(np.logspace(-4, 4, 17) * n)),
        "extra trees": ExtraTreesRegressor(200, random_state=0),
        "GPyTorch ICM": Coregionalised(),
    }


def nmse(Y, prediction):
    variance = Y.var(axis=0)
    varies = variance > 1e-12
    return float(np.mean(np.mean((Y - prediction) ** 2, axis=0)[varies] / variance[varies]))


def run_split(table, rows, n, split, wanted, features):
    """Records of all wanted methods on one split."""
    X, Y, X_test, Y_test = standardised(*rows)
    splitter = RepeatedKFold(n_splits=5, n_repeats=4, random_state=split)
    folds = list(splitter.split(X))
    records = []

    def keep(kind, name, model, train, test):
        absent = {"GPyTorch ICM": "gpytorch", "CatBoost": "catboost"}.get(name)
        if name not in wanted or (absent is not None and find_spec(absent) is None):
            return
        if (name == "GPyTorch ICM" and n * Y.shape[1] > 1000) or (
            name == "CatBoost" and Y.shape[1] > MOST_BOOSTED
        ):
            return
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prediction = clone(model).fit(train, Y).predict(test)
        record = {"table": table, "n": n, "p": Y.shape[1], "features": kind, "method": name, "split": split}
        record |= {"nmse": nmse(Y_test, prediction), "fit_seconds": time.perf_counter() - start}
        records.append(record)

    if "linear" in features:
        for name, model in kernel_methods(folds).items():
            keep("linear", name, model, X, X_test)
    if "rbf" in features:
        rbf = GaussianFeatures().fit(X)
        for name, model in kernel_methods(folds).items():
            keep("rbf", name, model, rbf.transform(X), rbf.transform(X_test))
    if "rbf, width selected" in features:
        maps = [GaussianFeatures(width) for width in WIDTHS]
        for name in (BASELINE, "selected"):
            keep(
                "rbf, width selected",
                name,
                kernel_methods(folds)[name].set_params(feature_map=maps),
                X,
                X_test,
            )
    if "own" in features:
        for name, model in other_methods(folds, n, X.shape[1]).items():
            keep("own", name, model, X, X_test)
    return records


def ratios(records, features, method, baseline_features, baseline):
    """Log ratios of nMSE to a baseline on the same splits, by (table, n)."""

    def values(kind, name):
        chosen = (r for r in records if r["features"] == kind and r["method"] == name)
        return {(r["table"], r["n"], r["split"]): r["nmse"] for r in chosen}

    ours, theirs = values(features, method), values(baseline_features, baseline)
    found = {}
    for table, n, split in ours.keys() & theirs.keys():
        ratio = np.log(ours[table, n, split] / theirs[table, n, split])
        found.setdefault((table, n), {})[split] = ratio
    return {key: [by_split[s] for s in sorted(by_split)] for key, by_split in sorted(found.items())}


def beside_best_peer(records, method="auto"):
    """nMSE of a method and of the peers by table and n, and its ratio to the best peer of that table."""
    errors = {}
    for record in records:
        if record["features"] == "own" and record["method"] in (method, *PEERS):
            errors.setdefault((record["table"], record["n"]), {}).setdefault(record["method"], []).append(
                np.log(record["nmse"])
            )
    rows = []
    for (table, n), found in sorted(errors.items()):
        means = {name: float(np.mean(values)) for name, values in found.items()}
        if method not in means or PROCESS not in means:
            continue
        peers = {name: value for name, value in means.items() if name != method}
        best = min(peers, key=peers.get)
        row = {"table": table, "n": n, method: float(np.exp(means[method]))}
        row |= {name: float(np.exp(peers[name])) if name in peers else None for name in PEERS}
        row |= {"best peer": best, "ratio to it": float(np.exp(means[method] - peers[best]))}
        row["ratio to the process"] = float(np.exp(means[method] - peers[PROCESS]))
        rows.append(row)
    return rows


def interval(logs, draws=2000):
    """Ratio with its bootstrap interval of 95% over splits."""
    logs = np.array(logs)
    means = np.random.default_rng(0).choice(logs, size=(draws, len(logs))).mean(axis=1)
    return np.exp(logs.mean()), *np.exp(np.percentile(means, [2.5, 97.5]))


def ratio_table(records, features, baseline_features, baseline):
    """A row for every table, n and method, and geometric means at the foot."""
    methods = list(dict.fromkeys(r["method"] for r in records if r["features"] == features))
    rows, means = [], {}
    for method in methods:
        if (features, method) == (baseline_features, baseline):
            continue
        for (table, n), logs in ratios(records, features, method, baseline_features, baseline).items():
            ratio, low, high = interval(logs)
            mine = [
                r
                for r in records
                if (r["features"], r["method"], r["table"], r["n"]) == (features, method, table, n)
            ]
            rows.append(
                {
                    "table": table,
                    "n": n,
                    "method": method,
                    "nMSE": float(np.mean([r["nmse"] for r in mine])),
                    "ratio": float(ratio),
                    "low": float(low),
                    "high": float(high),
                    "fit s": float(np.median([r["fit_seconds"] for r in mine])),
                }
            )
            for group in (f"n = {n}", "n <= 40" if n <= 40 else "n = 100 ", "all n", f"{table}, n >= 20"):
                if group.endswith(">= 20") and n < 20:
                    continue
                means.setdefault((method, group), []).append(float(np.mean(logs)))
            if table in ("weather", "uwave", "bilinear"):
                means.setdefault((method, "weather, uwave, bilinear"), []).append(float(np.mean(logs)))
    order = ["n = 12", "n = 20", "n = 40", "n = 100", "n <= 40", "all n", "weather, uwave, bilinear"]
    foot = [
        {"method": method}
        | {group: float(np.exp(np.mean(means[method, group]))) for group in order if (method, group) in means}
        for method in methods
        if any(key[0] == method for key in means)
    ]
    return rows, foot


def draw(records, path):
    """Ratios to kernel ridge on the same features, one panel for each kind of features."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [("linear", "linear", BASELINE), ("rbf", "rbf", BASELINE), ("own", "own", PROCESS)]
    panels = [panel for panel in panels if any(r["features"] == panel[0] for r in records)]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5.2 * len(panels), 5.2), squeeze=False, layout="tight"
    )
    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
    for axis, (features, base_features, base) in zip(axes[0], panels, strict=True):
        names = dict.fromkeys(r["method"] for r in records if r["features"] == features)
        methods = [name for name in names if name != base]
        for place, method in enumerate(methods):
            logs = ratios(records, features, method, base_features, base)
            for size, n in zip((18, 32, 50, 75), SIZES, strict=True):
                found = [interval(values)[0] for (_, m), values in logs.items() if m == n]
                offset = place + 0.18 * (SIZES.index(n) - 1.5)
                for ratio in found:
                    inside = LEAST_SHOWN <= ratio <= MOST_SHOWN
                    axis.scatter(
                        np.clip(ratio, LEAST_SHOWN, MOST_SHOWN),
                        offset,
                        s=size,
                        color=colours[place % 7],
                        marker="o" if inside else ">" if ratio > 1 else "<",
                        alpha=0.75,
                        lw=0,
                        clip_on=inside,
                    )
        axis.axvline(1.0, color="black", lw=1)
        axis.set_xscale("log")
        axis.set_xlim(LEAST_SHOWN, MOST_SHOWN)
        axis.set_xticks([0.5, 0.7, 1.0, 1.4, 2.0], ["0.5", "0.7", "1", "1.4", "2"])
        axis.minorticks_off()
        axis.set_yticks(range(len(methods)), methods)
        axis.invert_yaxis()
        axis.set_xlabel(f"nMSE / nMSE of {base}")
        axis.set_title({"own": "own features"}.get(features, f"{features} features"))
    figure.suptitle(
        "One point a table; larger points, more training rows (12, 20, 40, 100); triangles lie beyond"
    )
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--tables", nargs="+", help="names of tables; all by default")
    parser.add_argument("--methods", nargs="+", help="names of methods; all by default")
    parser.add_argument("--features", nargs="+", default=["linear", "rbf", "rbf, width selected", "own"])
    parser.add_argument("--name", default="accuracy", help="name of the files in benchmarks/results")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folds = list(RepeatedKFold(n_splits=5, n_repeats=4).split(np.zeros(12)))
    wanted = options.methods or [*kernel_methods(folds), *other_methods(folds, 12, 3)]
    found = {name: rows for name, rows in tables().items() if not options.tables or name in options.tables}
    tasks = [
        (name, data, n, split)
        for name, rows in found.items()
        for n in options.sizes
        for split in range(options.splits)
        if (data := rows(n, split)) is not None
    ]
    start = time.perf_counter()
    tasks.sort(key=lambda task: task[2:])
    jobs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(run_split)(name, data, n, split, wanted, options.features) for name, data, n, split in tasks
    )
    results = ExperimentResults(options.name, "Accuracy of all methods", [], meta={"splits": options.splits})
    results.meta["versions"] = software_versions("gpytorch", "catboost")
    for done, part in enumerate(jobs, start=1):
        results.records += part
        results.meta["seconds"] = time.perf_counter() - start
        # What there is so far is kept, since a whole run takes long.
        if done % 20 == 0 or done == len(tasks):
            results.save(RESULTS)
            print(f"{done} of {len(tasks)} after {results.meta['seconds']:.0f} s", flush=True)
    report(results.records, options.name)


def report(records, name):
    for features, base_features, base in (
        ("linear", "linear", BASELINE),
        ("rbf", "rbf", BASELINE),
        ("rbf, width selected", "rbf, width selected", BASELINE),
        ("own", "rbf", BASELINE),
        ("own", "own", PROCESS),
    ):
        rows, foot = ratio_table(records, features, base_features, base)
        if rows:
            print_table(f"{features} features: ratio to {base} ({base_features})", rows)
            print_table("geometric means of the ratio over tables", _filled(foot))
    if rows := beside_best_peer(records):
        print_table("beside the best peer of every table", _filled(rows))
        for n in sorted({row["n"] for row in rows}):
            for column in ("ratio to it", "ratio to the process"):
                mean = np.exp(np.mean([np.log(row[column]) for row in rows if row["n"] == n]))
                print(f"n = {n}, geometric mean of the {column}: {mean:.3f}")
    draw(records, RESULTS / f"{name}.png")


def _filled(rows):
    """Rows with the same keys."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [{key: row.get(key, "") for key in keys} for row in rows]


if __name__ == "__main__":
    main()
