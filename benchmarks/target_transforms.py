"""Transforms of lognormal targets: coverage of intervals, and errors of medians and means.

Positive targets are learned without transform, as logarithms and by a power, by both entangled
estimators, over many draws and several numbers of rows.

    python benchmarks/target_transforms.py [--sizes 30 100 300] [--draws 40] [--figure FILE]
"""

import argparse

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV

from measure import print_table, write_json

INPUTS, TARGETS, NEW = 3, 3, 400
# Deviations of the logarithms about their mean.
NOISE = (0.3, 0.7, 1.0)


def draw_positive(n, seed):
    """Inputs, and targets whose logarithms are smooth functions with correlated errors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + NEW, INPUTS))
    signal = np.tanh(X @ rng.normal(size=(INPUTS, TARGETS)))
    errors = rng.multivariate_normal(np.zeros(TARGETS), 0.4 * np.eye(TARGETS) + 0.6, size=n + NEW)
    return X, np.exp(signal + errors * NOISE)


def features():
    return make_pipeline(StandardScaler(), Nystroem(gamma=0.1, n_components=20, random_state=0))


def estimators(transform):
    search = {"cv": KFold(5), "param_grid": {"shrinkage": (0.25, 1.0), "target_alpha": (0.1,)}}
    return {
        "linear": EntangledKernelRidge(StandardScaler(), target_transform=transform),
        "20 features": EntangledKernelRidge(features(), target_transform=transform),
        "20 features, CV": EntangledKernelRidgeCV(features(), target_transform=transform, **search),
    }


def measure(model, X, Y, n):
    """Coverage of 90% intervals with and without given targets, and errors."""
    model.fit(X[:n], Y[:n])
    new, truth = X[n:], Y[n:]
    known = np.where(np.arange(Y.shape[1]) % 5 == 0, truth, np.nan)
    wanted = np.isnan(known)
    row = {}
    for name, given in (("inside", None), ("inside given", known)):
        lower, upper = model.predict_interval(new, 0.9, given=given)
        row[name] = np.mean(((lower <= truth) & (truth <= upper))[wanted])
        row.setdefault("below zero", np.mean(lower < 0.0))
    median, mean = model.predict(new), model.predict_mean(new)
    given = model.predict(new, given=known)
    row["given / none"] = np.mean(np.abs(given - truth)[wanted]) / np.mean(
        np.abs(median - truth)[wanted]
    )
    for name, prediction in (("", median), (" of mean", mean)):
        row[f"MAE{name}"] = np.mean(np.abs(prediction - truth))
        row[f"RMSE{name}"] = np.sqrt(np.mean((prediction - truth) ** 2))
    row["total"] = np.sum(median) / np.sum(truth)
    row["total of mean"] = np.sum(mean) / np.sum(truth)
    return row


def run(sizes, draws):
    """Means over draws of all measures."""
    transforms = {"none": None, "log": "log", "power": PowerTransformer()}
    rows = []
    for n in sizes:
        for name, transform in transforms.items():
            for kind, model in estimators(transform).items():
                measures = [measure(model, *draw_positive(n, seed), n) for seed in range(draws)]
                means = {key: float(np.mean([m[key] for m in measures])) for key in measures[0]}
                rows.append({"n": n, "estimator": kind, "transform": name, **means})
    return rows


def draw(path):
    """Draw intervals of one positive target over one input, without transform and with a logarithm."""
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(-2.0, 2.0, 100))
    y = np.exp(1.2 * np.sin(1.5 * x) + 0.5 * rng.normal(size=100))
    grid = np.linspace(-2.0, 2.0, 200)[:, None]
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained", sharey=True)
    for axis, transform in zip(axes, (None, "log"), strict=True):
        model = EntangledKernelRidgeCV(
            Nystroem(gamma=0.5, n_components=20, random_state=0),
            target_transform=transform,
            random_state=0,
        ).fit(x[:, None], y)
        lower, upper = model.predict_interval(grid)
        axis.fill_between(
            grid[:, 0], lower, upper, color="#56B4E9", alpha=0.4, linewidth=0, label="90% interval"
        )
        axis.plot(grid[:, 0], model.predict(grid), color="#0072B2", label="predict")
        if transform:
            axis.plot(
                grid[:, 0], model.predict_mean(grid), "--", color="#D55E00", label="predict_mean"
            )
        axis.plot(x, y, ".", color="#333333", markersize=4)
        axis.axhline(0.0, color="#999999", linewidth=0.8)
        axis.set(title=f"target_transform={transform!r}", xlabel="input")
        axis.legend(frameon=False, loc="upper left")
    axes[0].set(ylabel="concentration")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="draw a figure into this file, and measure nothing")
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--draws", type=int, default=40, help="simulated tables of each size")
    options = parser.parse_args()
    if options.figure:
        draw(options.figure)
        return
    rows = run(options.sizes, options.draws)
    print_table("lognormal targets", rows)
    write_json("target_transforms", {"lognormal": rows})


if __name__ == "__main__":
    main()
