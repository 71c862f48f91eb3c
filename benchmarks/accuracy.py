"""Accuracy of every method on nine tables, paired by split, as ratios to kernel ridge.

Inputs and targets are standardised on the training rows. All methods that are tuned by
cross-validation get the same folds and, where they have a ridge penalty, the same grid in units of
the scale of their features. nMSE is the mean over targets of the squared error divided by the
variance of the target in the test rows.

The real tables are read from ENTANGLED_KERNELS_DATA or ../shared/data, or downloaded; a table that
cannot be read is left out, with a message. So are the multitask process without GPyTorch and CatBoost without
catboost (`pip install gpytorch catboost`).

    python benchmarks/accuracy.py [--splits 10] [--sizes 12 20 40 100] [--tables NAME ...]
                                  [--methods NAME ...]
"""

import argparse
import time
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes, load_digits, load_linnerud, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import MultiTaskElasticNetCV, RidgeCV
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, RepeatedKFold
from sklearn.multioutput import RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OutputKernelRidgeCV,
)
from entangled_kernels.datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
    make_bilinear,
)
from entangled_kernels.features import default_feature_maps, median_distance
from entangled_kernels.io import ExperimentResults, software_versions

from accuracy_report import BASELINE, PROCESS, SIZES, report
from measure import RESULTS
from tables import fetch_available, nmse, promised_over_fresh, split_rows, standardise

WIDTHS = (0.5, 1.0, 2.0, 4.0)
# With more targets than these a fit of CatBoost takes minutes.
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
    """Gaussian process with a width for every column, and its noise as alpha, by penalised evidence."""

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
    """MultiTaskElasticNetCV on the principal components of the targets, which give the same penalty."""

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
                self.mean_module = gpytorch.means.MultitaskMean(
                    gpytorch.means.ConstantMean(), num_tasks=p
                )
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


def gaussian(X, width=1.0):
    """Features of a Gaussian kernel whose width is ``width`` times the median distance."""
    gamma = 1.0 / (width * median_distance(StandardScaler().fit_transform(X))) ** 2
    kernel = Nystroem(gamma=gamma, n_components=min(len(X), 300), random_state=0)
    return make_pipeline(StandardScaler(), kernel)


def tables():
    """By name of the table, a function of (n, split) that gives training and test rows."""

    def bilinear(n, split):
        rows = make_bilinear(n, 100, random_state=split)
        return rows.data, rows.target, rows.data_test, rows.target_test

    wine, diabetes, digits = load_wine().data, load_diabetes(), load_digits().data
    inked = digits[:, digits.std(axis=0) > 0.5]
    half = inked.shape[1] // 2
    real = {
        "linnerud": load_linnerud(return_X_y=True),
        "wine": (wine[:, :8], wine[:, 8:]),
        # Progression and five of six blood serum measurements from the other columns.
        "diabetes": (
            diabetes.data[:, :6],
            np.column_stack([diabetes.target, diabetes.data[:, 6:]]),
        ),
        # Every fourth pixel of the lower half of a digit from the upper half.
        "digit halves": (inked[:, :half], inked[:, half::4]),
    }
    real |= fetch_available(
        {
            "concrete": fetch_concrete_slump,
            "sarcos": fetch_sarcos,
            "weather": fetch_canadian_weather,
            "uwave": partial(fetch_uwave, classes=(1, 2, 3)),
        }
    )
    return {"bilinear": bilinear} | {
        name: partial(split_rows, *rows) for name, rows in real.items()
    }


def kernel_methods(folds):
    """Methods that take features, with the same folds; the alphas are the estimator's scale-free grid."""
    ours = {"cv": folds, "random_state": 0}
    return {
        BASELINE: EntangledKernelRidgeCV(
            None, selection="best", **ours, param_grid={"shrinkage": (1.0,)}
        ),
        "selected": EntangledKernelRidgeCV(None, **ours),
        "selected, best": EntangledKernelRidgeCV(None, selection="best", **ours),
        "EKL closed form": EntangledKernelRidgeCV(
            None, **ours, param_grid={"prediction": ("entangled",), "alignment_mix": (0.5, 1.0)}
        ),
        "EKL ascent": EntangledKernelRidgeCV(
            None,
            **ours,
            param_grid={
                "solver": ["ascent"],
                "rank": (3,),
                "shrinkage": (0.25, 0.75, 1.0),
                "solver_params": [{"max_iter": 100}],
            },
        ),
        "ptrEKL": EntangledKernelRidgeCV(
            None, **ours, param_grid={"prediction": ("partial_trace",)}
        ),
        "reduced rank": EntangledKernelRidgeCV(
            None,
            **ours,
            param_grid={
                "shrinkage": (1.0,),
                "prediction": ("reduced_rank",),
                "rank": (0.125, 0.25, 0.5),
            },
        ),
        "output kernel": OutputKernelRidgeCV(cv=folds),
    }


def default_maps_by_kind():
    """The default feature maps of the search, by a name of their kind."""
    kinds = {}
    for feature_map in default_feature_maps(0):
        kinds.setdefault(type(feature_map).__name__, []).append(feature_map)
    return kinds


def other_methods(folds, n, d):
    kinds = default_maps_by_kind()
    components = [c for c in (1, 2, 3, 4, 6, 8, 12) if c < min(0.8 * n, d + 1)]
    return {
        "auto": EntangledKernelRidgeCV(cv=folds, random_state=0),
        "auto, kernel ridge alone": EntangledKernelRidgeCV(
            cv=folds, random_state=0, param_grid={"shrinkage": (1.0,)}
        ),
        **{
            f"auto without {kind}": EntangledKernelRidgeCV(
                [one for other in kinds if other != kind for one in kinds[other]],
                cv=folds,
                random_state=0,
            )
            for kind in kinds
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
        # One round of the folds, since coordinate descent with hundreds of inputs takes minutes.
        "elastic net": ElasticNet(folds[:5]),
        "chain of ridges": RegressorChain(RidgeCV(np.logspace(-4, 4, 17) * n)),
        "extra trees": ExtraTreesRegressor(200, random_state=0),
        "GPyTorch ICM": Coregionalised(),
    }


def run_split(table, rows, n, split, wanted, features):
    """Records of all wanted methods on one split."""
    X, Y, X_test, Y_test = standardise(*rows)
    splitter = RepeatedKFold(n_splits=5, n_repeats=2, random_state=split)
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
            fitted = clone(model).fit(train, Y)
            prediction = fitted.predict(test)
        record = {
            "table": table,
            "n": n,
            "p": Y.shape[1],
            "features": kind,
            "method": name,
            "split": split,
        }
        record |= {"nmse": nmse(Y_test, prediction), "fit_seconds": time.perf_counter() - start}
        if name == "auto":
            record["promised / fresh"] = promised_over_fresh(fitted, Y, Y_test, prediction)
        records.append(record)

    if "linear" in features:
        for name, model in kernel_methods(folds).items():
            keep("linear", name, model, X, X_test)
    if "rbf" in features:
        rbf = gaussian(X).fit(X)
        for name, model in kernel_methods(folds).items():
            keep("rbf", name, model, rbf.transform(X), rbf.transform(X_test))
    if "rbf, width selected" in features:
        maps = [gaussian(X, width) for width in WIDTHS]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--tables", nargs="+", help="names of tables; all by default")
    parser.add_argument("--methods", nargs="+", help="names of methods; all by default")
    parser.add_argument(
        "--features", nargs="+", default=["linear", "rbf", "rbf, width selected", "own"]
    )
    parser.add_argument(
        "--name", default="accuracy", help="name of the files in benchmarks/results"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folds = list(RepeatedKFold(n_splits=5, n_repeats=2).split(np.zeros(12)))
    wanted = options.methods or [*kernel_methods(folds), *other_methods(folds, 12, 3)]
    tasks = [
        (name, data, n, split)
        for name, rows in tables().items()
        if not options.tables or name in options.tables
        for n in options.sizes
        for split in range(options.splits)
        if (data := rows(n, split)) is not None
    ]
    start = time.perf_counter()
    tasks.sort(key=lambda task: task[2:])
    jobs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(run_split)(name, data, n, split, wanted, options.features)
        for name, data, n, split in tasks
    )
    results = ExperimentResults(
        options.name, "Accuracy of all methods", [], meta={"splits": options.splits}
    )
    results.meta["versions"] = software_versions("gpytorch", "catboost")
    for done, part in enumerate(jobs, start=1):
        results.records += part
        results.meta["seconds"] = time.perf_counter() - start
        # Save often, since a whole run takes hours.
        if done % 20 == 0 or done == len(tasks):
            results.save(RESULTS)
            print(f"{done} of {len(tasks)} after {results.meta['seconds']:.0f} s", flush=True)
    report(results.records, options.name)


if __name__ == "__main__":
    main()
