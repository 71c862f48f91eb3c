"""Speed of the core: moments, learning, predicting, and whole fits beside scikit-learn and himalaya.

All methods of a ratio are timed in one run, in turns. Needs `pip install himalaya`.

    python benchmarks/core.py [--quick] [PART ...]
"""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from himalaya.kernel_ridge import KernelRidge as HimalayaKernelRidge
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning import (
    FitSettings,
    Moments,
    fit_problem,
    reduce_moments,
)
from entangled_kernels.learning.solvers import solve

from measure import best_seconds, in_fresh_process, run_parts

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference.dense import DenseAscent


def rows(n, m, p, seed=0):
    """Features, and targets that are a noisy low-rank function of them."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m))
    maps = rng.normal(size=(m, 3)) @ rng.normal(size=(3, p)) / np.sqrt(m)
    return Phi, Phi @ maps + rng.normal(size=(n, p))


def learning_against_dense(n=100, p=20, m=50, r=10, steps=200):
    """(a) The published algorithm, from moments and with all centred np x np matrices."""
    Phi, Y = rows(n, m, p)
    start = np.random.default_rng(1).normal(size=(m * p, r))

    def learn():
        problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True, mix=0.5)
        Q = np.einsum("mf,mpr->fpr", problem.features, start.reshape(m, p, r))
        return solve(problem, FitSettings("ascent", init=Q, max_iter=steps, tol=0.0))

    value = float(learn().value)
    seconds = best_seconds({"moments": learn}, repeats=5)["moments"]
    table = []
    for centre in ("products", "means"):
        began = time.perf_counter()
        _, history = DenseAscent(Phi, Y, mix=0.5, centre=centre).run(start, steps)
        dense_seconds = time.perf_counter() - began
        table.append(
            {
                "dense centring by": centre,
                "n": n,
                "p": p,
                "m": m,
                "r": r,
                "steps": len(history) - 1,
                "dense s": dense_seconds,
                "ours s": seconds,
                "times faster": dense_seconds / seconds,
                "final alignment": value,
                "difference": abs(value - history[-1]),
            }
        )
    return table


def learning_whatever_n(m=60, p=10):
    """(b) From moments to a fitted estimator, for few and for many rows."""
    moments = {n: Moments.from_arrays(*rows(n, m, p)) for n in (1_000, 1_000_000)}

    def fit(n, **settings):
        own = FitSettings(**settings)
        return lambda: fit_problem(reduce_moments(moments[n], centred=True), own)

    table = []
    for solver, settings in {
        "closed-form": {},
        "ascent": {"rank": 20, "tol": 0.0, "max_iter": 50},
    }.items():
        seconds = best_seconds({n: fit(n, solver=solver, **settings) for n in moments}, repeats=15)
        few, many = seconds.values()
        row = {
            "solver": solver,
            "m": m,
            "p": p,
            "n=1,000 s": few,
            "n=1,000,000 s": many,
            "ratio": many / few,
        }
        table.append(row)
    return table


def moments_rate(n=200_000, m=500, p=20):
    """(c) The pass over the rows beside the bare products Phi^T Phi, Phi^T Y, Y^T Y."""
    Phi, Y = rows(n, m, p)
    seconds = best_seconds(
        {
            "bare": lambda: (Phi.T @ Phi, Phi.T @ Y, Y.T @ Y),
            "moments": lambda: Moments.from_arrays(Phi, Y),
        },
        repeats=5,
    )
    moments = Moments.from_arrays(Phi, Y)
    centred = Phi - Phi.mean(axis=0)
    difference = np.abs(moments.C - centred.T @ centred).max() / np.abs(moments.C).max()
    return [
        {
            "n": n,
            "m": m,
            "p": p,
            "bare products s": seconds["bare"],
            "moments s": seconds["moments"],
            "rate": seconds["bare"] / seconds["moments"],
            "relative difference": float(difference),
        }
    ]


def predict_rate(n=100_000):
    """(d) Prediction beside the matrix product that it consists of."""
    table = []
    for m, p in ((500, 20), (100, 5), (500, 200)):
        Phi, Y = rows(n, m, p)
        model = EntangledKernelRidge().fit(Phi[:2_000], Y[:2_000])
        coef = model.coef_.T.copy()
        contestants = {
            "product": partial(np.matmul, Phi, coef),
            "predict": partial(model.predict, Phi),
        }
        seconds = best_seconds(contestants, repeats=9)
        difference = np.abs(Phi @ coef + model.intercept_ - model.predict(Phi)).max()
        table.append(
            {
                "n": n,
                "m": m,
                "p": p,
                "product s": seconds["product"],
                "predict s": seconds["predict"],
                "ratio": seconds["predict"] / seconds["product"],
                "difference": float(difference),
            }
        )
    return table


def _fit_wide(n, m, p, steps):
    Phi, Y = rows(n, m, p)
    began = time.perf_counter()
    model = EntangledKernelRidge(
        solver="ascent", solver_params={"max_iter": steps, "tol": 0.0}
    ).fit(Phi, Y)
    return (
        time.perf_counter() - began,
        model.n_iter_,
        model.full_rank_,
        model.alignment_history_[-1],
    )


def wide_full_rank(n=30, m=314, p=314, steps=200):
    """(e) Full-rank ascent, where the published form would store an (mp, mp) matrix Q."""
    (seconds, n_iter, full_rank, alignment), peak = in_fresh_process(_fit_wide, n, m, p, steps)
    return [
        {
            "n": n,
            "m": m,
            "p": p,
            "steps": n_iter,
            "rank used": full_rank,
            "seconds": seconds,
            "peak MB": peak,
            "alignment": float(alignment),
            "published Q would take GB": (m * p) ** 2 * 8 / 2**30,
        }
    ]


def whole_fit(n=5_000, d=20, p=50, components=500):
    """(f) Feature map, learning and ridge together, beside exact kernel ridge of two libraries."""
    X, Y = rows(n, d, p)
    gamma = 1 / d
    contestants = {
        "EntangledKernelRidge": lambda: EntangledKernelRidge(
            Nystroem(gamma=gamma, n_components=components, random_state=0)
        ).fit(X, Y),
        "sklearn KernelRidge": lambda: KernelRidge(kernel="rbf", gamma=gamma).fit(X, Y),
        "himalaya KernelRidge": lambda: HimalayaKernelRidge(
            kernel="rbf", kernel_params={"gamma": gamma}
        ).fit(X, Y),
    }
    seconds = best_seconds(contestants)
    ours = seconds["EntangledKernelRidge"]
    return [
        {"method": name, "n": n, "p": p, "seconds": value, "ratio to ours": value / ours}
        for name, value in seconds.items()
    ]


if __name__ == "__main__":
    run_parts(
        "core",
        __doc__,
        {
            learning_against_dense: {"n": 20, "p": 4, "m": 8, "r": 3, "steps": 5},
            learning_whatever_n: {"m": 10, "p": 3},
            moments_rate: {"n": 2_000, "m": 50, "p": 5},
            predict_rate: {"n": 2_000},
            wide_full_rank: {"n": 10, "m": 20, "p": 20, "steps": 5},
            whole_fit: {"n": 200, "d": 5, "p": 5, "components": 50},
        },
    )
