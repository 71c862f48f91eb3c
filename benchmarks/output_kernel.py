"""Speed of output kernel learning beside one eigendecomposition of the Gram matrix.

All methods of a ratio are timed in one run, in turns.

    python benchmarks/output_kernel.py [--quick] [PART ...]
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels import OutputKernelRidge, OutputKernelRidgeCV
from entangled_kernels.convex import (
    OutputPenalty,
    alpha_unit,
    diagonalise,
    learn_output_kernel,
    reduce_problem,
)

from measure import best_seconds, run_parts

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference import output_kernel as reference

UNITS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def rows(n, p, d=10, seed=0):
    """Inputs, and targets that are noisy mixtures of two functions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.tanh(X[:, :2]) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))


def fit_against_eigh(n=500, p=50):
    """(a) Whole fits with the default tolerance, for several alphas in the unit of the default grid."""
    X, Y = rows(n, p)
    K = rbf_kernel(X)
    problem = diagonalise(reduce_problem(K, Y))
    table = []
    for rank in (None, 2, 5):
        unit = alpha_unit(problem, OutputPenalty(rank=rank))
        for multiple in UNITS:
            model = OutputKernelRidge(
                "precomputed", alpha=multiple * unit, rank=rank, fit_intercept=False
            )
            seconds = best_seconds(
                {"eigh": partial(eigh, K), "fit": partial(model.fit, K, Y)}, repeats=5
            )
            residual = (
                K @ model.dual_coef_ @ model.output_kernel_ + model.alpha * model.dual_coef_ - Y
            )
            table.append(
                {
                    "rank": str(rank),
                    "n": n,
                    "p": p,
                    "alpha / unit": multiple,
                    "steps": model.n_iter_,
                    "eigh(K) s": seconds["eigh"],
                    "fit s": seconds["fit"],
                    "fit / eigh": seconds["fit"] / seconds["eigh"],
                    "Sylvester residual": float(np.abs(residual).max()),
                    "converged": model.converged_,
                }
            )
    return table


def cross_validation_against_eigh(n=500, p=50):
    """(b) Thirteen alphas in five folds and the fit to all rows."""
    X, Y = rows(n, p)
    K = rbf_kernel(X)
    table = []
    for rank in (None, 2):
        model = OutputKernelRidgeCV("precomputed", rank=rank)
        seconds = best_seconds(
            {"eigh": partial(eigh, K), "fit": partial(model.fit, K, Y)}, repeats=2
        )
        table.append(
            {
                "rank": str(rank),
                "n": n,
                "p": p,
                "eigh(K) s": seconds["eigh"],
                "fit s": seconds["fit"],
                "fit / eigh": seconds["fit"] / seconds["eigh"],
                "chosen alpha is number": model.best_index_,
                "cross-validated nMSE": -model.best_score_,
            }
        )
    return table


def steps_of_the_published_alternation(n=60, p=4, most=2000):
    """(c) Updates of L until the gradient is 1e-3 of L, here and by the published alternation."""
    X, Y = rows(n, p)
    K = rbf_kernel(X)
    problem = diagonalise(reduce_problem(K, Y))
    table = []
    for multiple in UNITS:
        alpha = multiple * alpha_unit(problem)
        ours = learn_output_kernel(problem, alpha)
        values, U = eigh(K)
        L, steps = np.eye(p), 0
        while steps < most:
            levels, V = eigh(L)
            C = U @ ((U.T @ Y @ V) / (np.outer(values, levels) + alpha)) @ V.T
            if np.linalg.norm(C.T @ K @ C / 2 - L) <= 1e-3 * np.linalg.norm(L):
                break
            L, steps = reference.published_update(K, Y, C, alpha), steps + 1
        table.append(
            {
                "n": n,
                "p": p,
                "alpha / unit": multiple,
                "steps here": ours.n_iter,
                "steps published": steps if steps < most else f"more than {most}",
                "relative difference of L": float(
                    np.linalg.norm(L - ours.L) / np.linalg.norm(ours.L)
                ),
            }
        )
    return table


if __name__ == "__main__":
    run_parts(
        "output_kernel",
        __doc__,
        {
            fit_against_eigh: {"n": 40, "p": 5},
            cross_validation_against_eigh: {"n": 40, "p": 5},
            steps_of_the_published_alternation: {"n": 20, "p": 3, "most": 50},
        },
    )
