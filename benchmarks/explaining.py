"""Explanations on simulated truth, and novelty on real tables.

First table: inputs that no target depends on should rank behind all others, and should not be
called important; 100 draws of a simulated table for each kind of features. Second table: share of
test rows from the same distribution that `novelty` flags, and share of the same rows times 1e12.

The real tables are read from ENTANGLED_KERNELS_DATA or ../shared/data, or downloaded; one that
cannot be read is left out, with a message.

    python benchmarks/explaining.py [--draws 100] [--splits 5] [--part ranks|novelty]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
)
from entangled_kernels.datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
)
from entangled_kernels.estimators import NoveltyWarning

from measure import print_table, write_json
from tables import breast_cancer, fetch_available

ROWS, RELEVANT, IRRELEVANT, NOISE = 200, 4, 4, 0.3


def feature_maps():
    return {
        "auto": "auto",
        "linear": StandardScaler(),
        "evidence": EvidenceFeatures(random_state=0),
        "widths": ColumnWidthFeatures(random_state=0),
        "forest": ForestFeatures(random_state=0),
    }


def simulate(seed, *, linear):
    """Correlated inputs, and four targets that depend on the first four of them."""
    rng = np.random.default_rng(seed)
    d = RELEVANT + IRRELEVANT
    X = rng.normal(size=(ROWS, d)) @ (np.eye(d) + 0.15 * rng.normal(size=(d, d)))
    a, b, c, e = X[:, :RELEVANT].T
    if linear:
        Y = (
            X[:, :RELEVANT]
            @ rng.choice([-1.0, 1.0], size=(RELEVANT, 4))
            * rng.uniform(0.3, 1.0, size=4)
        )
    else:
        Y = np.column_stack([np.sin(1.5 * a) + b, b * c, a - c + 0.5 * e, np.tanh(e) + 0.5 * a])
    deviation = Y.std(axis=0)
    return X, Y + NOISE * deviation * rng.normal(size=Y.shape)


def rank_inputs(name, feature_map, draws, first):
    last, wrong, missed, methods, start = 0, 0, 0, set(), time.perf_counter()
    for seed in range(first, first + draws):
        X, Y = simulate(seed, linear=name == "linear")
        model = EntangledKernelRidgeCV(feature_map, random_state=0).fit(X, Y)
        found = model.explain(X)
        last += set(found.order[-IRRELEVANT:]) == set(range(RELEVANT, RELEVANT + IRRELEVANT))
        wrong += found.important[RELEVANT:].sum()
        missed += (~found.important[:RELEVANT]).sum()
        methods.add(found.method)
    return {
        "features": name,
        "method": ", ".join(sorted(methods)),
        "draws": draws,
        "irrelevant inputs last": last / draws,
        "irrelevant called important": wrong / (draws * IRRELEVANT),
        "relevant not called so": missed / (draws * RELEVANT),
        "seconds a draw": (time.perf_counter() - start) / draws,
    }


def tables():
    """Inputs and targets by name of the table."""
    fetchers = {
        "concrete slump": fetch_concrete_slump,
        "sarcos": fetch_sarcos,
        "canadian weather": fetch_canadian_weather,
        "uwave": fetch_uwave,
    }
    wine = load_wine().data
    return fetch_available(fetchers) | {
        "diabetes": load_diabetes(return_X_y=True),
        "wine": (wine[:, :9], wine[:, 9:]),
        "breast cancer": breast_cancer(),
        "heavy tails": _heavy_tails(),
    }


def _heavy_tails():
    rng = np.random.default_rng(0)
    X = rng.standard_t(2.0, size=(1500, 30))
    return X, X[:, :3] + rng.normal(size=(1500, 3))


def flag_rows(table, X, Y, name, feature_map, splits):
    """Shares of test rows, and of the same rows times 1e12, that are flagged, and number of warnings."""
    X, Y = np.asarray(X, dtype=np.float64)[:2000], np.asarray(Y, dtype=np.float64)[:2000]
    Y = Y.reshape(len(Y), -1)[:, :20]
    n_train = min(300, 2 * len(X) // 3)
    flagged, far, warned = [], [], 0
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(X))
        train, test = order[:n_train], order[n_train : n_train + 500]
        model = EntangledKernelRidgeCV(feature_map, cv=3, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X[train], Y[train])
        flagged.append(np.mean(model.novelty(X[test]) > 1.0))
        far.append(np.mean(model.novelty(1e12 * X[test]) > 1.0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.predict(X[test])
        warned += any(issubclass(one.category, NoveltyWarning) for one in caught)
    return {
        "table": table,
        "rows": n_train,
        "inputs": X.shape[1],
        "features": name,
        "flagged": float(np.mean(flagged)),
        "flagged times 1e12": float(np.mean(far)),
        "test tables warned of": f"{warned} of {splits}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="Seed of the first draw.")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--features", nargs="*", default=list(feature_maps()))
    parser.add_argument("--part", choices=["ranks", "novelty", "both"], default="both")
    options = parser.parse_args()
    maps = {name: own for name, own in feature_maps().items() if name in options.features}
    results = {}
    if options.part != "novelty":
        results["ranks"] = [
            rank_inputs(name, own, options.draws, options.first) for name, own in maps.items()
        ]
        print_table("Inputs on simulated truth", results["ranks"])
    if options.part != "ranks":
        results["novelty"] = [
            flag_rows(table, X, Y, name, own, options.splits)
            for table, (X, Y) in tables().items()
            for name, own in maps.items()
        ]
        print_table("Rows that novelty flags", results["novelty"])
    write_json("explaining", results)


if __name__ == "__main__":
    main()
