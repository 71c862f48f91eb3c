"""Speed of choosing all settings by cross-validation from moments, beside tuned kernel ridge elsewhere.

All methods of a ratio are timed in one run, in turns.

    python benchmarks/selection.py [--quick] [PART ...]
"""

import time
from copy import deepcopy
from functools import partial

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.learning import Moments

from measure import best_seconds, run_parts

GAMMA, ALPHAS = 0.05, np.logspace(-4, 2, 10)


def rows(n, p=10, d=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.tanh(X @ rng.normal(size=(d, 5))) @ rng.normal(size=(5, p)) + 0.3 * rng.normal(
        size=(n, p)
    )


def himalaya_search(X, Y):
    """KernelRidgeCV of himalaya: 10 alphas, 5 folds, Gaussian kernel."""
    from himalaya.kernel_ridge import KernelRidgeCV

    settings = {"alphas": ALPHAS, "kernel": "rbf", "kernel_params": {"gamma": GAMMA}, "cv": 5}
    return KernelRidgeCV(**settings).fit(X, Y)


def against_others(n=2000, p=10):
    """(a) The full default grid on 300 Nystroem features, and ten alphas elsewhere."""
    X, Y = rows(n, p)
    features = Nystroem(gamma=GAMMA, n_components=300, random_state=0)
    ours = EntangledKernelRidgeCV(features, cv=5, random_state=0)
    grid = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=GAMMA),
        {"alpha": ALPHAS},
        cv=5,
        scoring="neg_mean_squared_error",
    )
    contestants = {
        "EntangledKernelRidgeCV, full grid": partial(ours.fit, X, Y),
        "GridSearchCV(KernelRidge), 10 alphas": partial(grid.fit, X, Y),
    }
    try:
        himalaya_search(X[:50], Y[:50])
        contestants["himalaya KernelRidgeCV, 10 alphas"] = partial(himalaya_search, X, Y)
    except ImportError:
        print("left out: himalaya, which is not installed")
    seconds = best_seconds(contestants, repeats=3)
    candidates = dict.fromkeys(contestants, 10)
    candidates["EntangledKernelRidgeCV, full grid"] = len(ours.cv_results_["mean_test_score"])
    first = seconds["EntangledKernelRidgeCV, full grid"]
    return [
        {
            "method": name,
            "n": n,
            "p": p,
            "candidates": candidates[name],
            "s": taken,
            "candidates / s": candidates[name] / taken,
            "time / ours": taken / first,
        }
        for name, taken in seconds.items()
    ]


def beside_himalaya(sizes=((2000, 10), (500, 500), (1000, 5000), (200, 40)), repeats=3):
    """(c) Kernel ridge alone with the same folds and ten alphas, the default grid, and R2 on new rows."""
    from himalaya.kernel_ridge import KernelRidgeCV

    table = []
    for n, p in sizes:
        X, Y = rows(n + 300, p)
        train, test = (X[:n], Y[:n]), (X[n:], Y[n:])
        folds, nystroem = KFold(5), Nystroem(gamma=GAMMA, n_components=300, random_state=0)
        exact = Nystroem(gamma=GAMMA, n_components=n, random_state=0)
        plain = {
            "alphas": ALPHAS,
            "cv": folds,
            "random_state": 0,
            "param_grid": {"shrinkage": (1.0,)},
        }
        models = {
            "himalaya": KernelRidgeCV(
                alphas=ALPHAS, kernel="rbf", kernel_params={"gamma": GAMMA}, cv=folds
            ),
            "kernel ridge": EntangledKernelRidgeCV(nystroem, **plain),
            "kernel ridge, exact features": EntangledKernelRidgeCV(exact, **plain),
            "default grid": EntangledKernelRidgeCV(nystroem, cv=folds, random_state=0),
        }
        seconds = best_seconds(
            {name: partial(own.fit, *train) for name, own in models.items()}, repeats
        )
        for name, own in models.items():
            error = np.mean((test[1] - own.predict(test[0])) ** 2, axis=0) / test[1].var(axis=0)
            ratio = seconds[name] / seconds["himalaya"]
            table.append(
                {
                    "n": n,
                    "p": p,
                    "method": name,
                    "s": seconds[name],
                    "time / himalaya": ratio,
                    "R2": 1 - error.mean(),
                }
            )
    return table


def small_tables(sizes=((30, 6, 10), (100, 16, 10)), repeats=3):
    """(d) The default on small tables: processor time, with one job and two."""
    table = []
    for n, p, d in sizes:
        X, Y = rows(n, p, d)
        for jobs in (1, 2):
            model, taken = EntangledKernelRidgeCV(n_jobs=jobs, random_state=0), []
            for _ in range(repeats):
                start, clock = time.process_time(), time.perf_counter()
                model.fit(X, Y)
                taken.append((time.process_time() - start, time.perf_counter() - clock))
            processor, wall = np.min(taken, axis=0)
            table.append(
                {"n": n, "p": p, "d": d, "n_jobs": jobs, "processor s": processor, "s": wall}
            )
    return table


def after_the_pass(sizes=(2000, 200_000), m=300, p=10):
    """(b) Seconds of the search given the moments, by number of rows."""
    waiting, models, passes = {}, {}, {}
    for n in sizes:
        X, Y = rows(n, p)
        Phi = Nystroem(gamma=GAMMA, n_components=m, random_state=0).fit(X[:2000]).transform(X)
        start = time.perf_counter()
        for _, part in KFold(5).split(Phi):
            Moments.from_arrays(Phi[part], Y[part])
        passes[n] = time.perf_counter() - start
        waiting[n] = EntangledKernelRidgeCV(None, cv=5, random_state=0).partial_fit(Phi, Y)

    def solve(n):
        models[n] = deepcopy(waiting[n]).solve()

    seconds = best_seconds({n: partial(solve, n) for n in sizes}, repeats=5)
    candidates = {n: len(models[n].cv_results_["mean_test_score"]) for n in sizes}
    return [
        {
            "n": n,
            "m": m,
            "p": p,
            "moments s": passes[n],
            "search s": seconds[n],
            "candidates / s": candidates[n] / seconds[n],
            "search / that of fewest rows": seconds[n] / seconds[sizes[0]],
        }
        for n in sizes
    ]


if __name__ == "__main__":
    run_parts(
        "selection",
        __doc__,
        {
            against_others: {"n": 100, "p": 3},
            after_the_pass: {"sizes": (500, 2000), "m": 20, "p": 3},
            beside_himalaya: {"sizes": ((100, 3),), "repeats": 1},
            small_tables: {"sizes": ((30, 6, 3),), "repeats": 1},
        },
    )
