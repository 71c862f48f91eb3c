"""Duality gaps of every convex learner on fifty random problems each.

Rows and outputs from 3 to 60, alpha over six decades. Objectives are computed from the dense block
Gram matrix of n p rows and the returned parameters, bounds from dual coefficients, without code of
the solvers.

    python benchmarks/certificates.py [--problems 50] [name ...]
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import solve
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.convex import (
    PENALTIES,
    KernelPart,
    OutputPenalty,
    alpha_unit,
    learn_diagonal,
    learn_hadamard,
    learn_multiview,
    learn_output_kernel,
    learn_separate,
    learn_shared,
    learn_weights,
    reduce_problem,
)

from learners import SETTINGS
from measure import print_table, write_json

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference import convex, multiview
from reference import multiple_kernels as reference
from reference.autoregression import hadamard_gram

MAX_ITER = 8000


def timed(function, *args, **settings):
    """Result of a function, and its processor seconds."""
    start = time.process_time()
    found = function(*args, **settings)
    return found, time.process_time() - start


def output_kernel(rng, n, p, alpha, name="frobenius", constraint=False):
    """One kernel and an output kernel with a penalty; alpha in units of `alpha_unit`."""
    X = rng.normal(size=(n, 4))
    K = rbf_kernel(X) if rng.integers(2) else X @ X.T
    Y = X @ rng.normal(size=(4, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    settings = SETTINGS.get(name, {})
    penalty, problem = OutputPenalty(name, constraint, **settings), reduce_problem(K, Y)
    alpha *= alpha_unit(problem, penalty=penalty)
    result, seconds = timed(learn_output_kernel, problem, alpha, penalty=penalty, max_iter=MAX_ITER)
    value = reference.ridge([K], [result.L], Y, alpha)[1]
    value += 0.0 if constraint or name == "cluster" else convex.value(name, result.L, **settings)
    bound = convex.output_kernel_bound(K, Y, result.witness, alpha, name, constraint, **settings)
    return value, value - bound, result.converged, seconds


def kernels(rng, n, p):
    """Gram matrices of groups of two columns, and targets that depend mostly on the first group."""
    groups = rng.normal(size=(rng.integers(2, 6), n, 2))
    linear = bool(rng.integers(2))
    K = np.stack([A @ A.T if linear else rbf_kernel(A, gamma=0.5) for A in groups])
    return K, groups[0] @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))


def psd(rng, m, p):
    B = rng.normal(size=(m, p, p))
    return B @ B.transpose(0, 2, 1) / p


def weights(rng, n, p, alpha, norm=1.0, given=False):
    """Weights of kernels, with the identity or a given kernel between outputs."""
    K, Y = kernels(rng, n, p)
    T = psd(rng, 1, p)[0] if given else np.eye(p)
    problem = reduce_problem([KernelPart(k) for k in K], Y)
    result, seconds = timed(
        learn_weights,
        problem,
        alpha,
        norm=norm,
        output_kernel=T if given else None,
        max_iter=MAX_ITER,
    )
    value, gap = reference.weights_gap(
        K, np.tile(T, (len(K), 1, 1)), Y, alpha, result.weights, norm
    )
    return value, gap, result.converged, seconds


def diagonal(rng, n, p, alpha):
    """Weights of kernels by output."""
    K, Y = kernels(rng, n, p)
    problem = reduce_problem([KernelPart(k) for k in K], Y)
    result, seconds = timed(learn_diagonal, problem, alpha, max_iter=MAX_ITER)
    one = np.ones((len(K), 1, 1))
    found = [
        reference.weights_gap(K, one, Y[:, [s]], alpha, result.weights[:, s], 1.0) for s in range(p)
    ]
    value, gap = np.sum(found, axis=0)
    return value, gap, result.converged, seconds


def listed(rng, n, p, alpha):
    """Weights of kernels with a given output kernel each."""
    K, Y = kernels(rng, n, p)
    bases = psd(rng, len(K), p)
    problem = reduce_problem([KernelPart(k) for k in K], Y)
    result, seconds = timed(learn_weights, problem, alpha, output_kernel=bases, max_iter=MAX_ITER)
    return (
        *reference.weights_gap(K, bases, Y, alpha, result.weights, 1.0),
        result.converged,
        seconds,
    )


def shared(rng, n, p, alpha):
    """Weights and one output kernel: the larger gap of the two, each with the other held fixed."""
    K, Y = kernels(rng, n, p)
    problem = reduce_problem([KernelPart(k) for k in K], Y)
    result, seconds = timed(learn_shared, problem, alpha, max_iter=MAX_ITER)
    d = result.weights
    L = result.T.sum(axis=0) / d.sum()
    value, gap = reference.weights_gap(K, np.tile(L, (len(K), 1, 1)), Y, alpha, d, 1.0)
    other = reference.own_gap(np.einsum("m,mnl->nl", d, K)[None], L[None], Y, alpha)[1]
    return value, max(gap, other), result.converged, seconds


def own(rng, n, p, alpha, norm=1.0):
    """An output kernel for every kernel."""
    K, Y = kernels(rng, n, p)
    problem = reduce_problem([KernelPart(k) for k in K], Y)
    result, seconds = timed(learn_separate, problem, alpha, norm=norm, max_iter=MAX_ITER)
    value = reference.ridge(K, result.T, Y, alpha)[1]
    bound = reference.own_bound(K, Y, result.witness, alpha, norm)
    return value, value - bound, result.converged, seconds


def multi_view(rng, n, p, alpha, sparse=False):
    """Multi-view metric learning with centred views; eta over six decades as well."""
    parts = [rng.normal(size=(n, 3)) for _ in range(rng.integers(1, 5))]
    Y = parts[0] @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))
    eta = 10.0 ** rng.uniform(-4, 2)
    problem = reduce_problem([KernelPart(U, True) for U in parts], Y, centred=True)
    result, seconds = timed(learn_multiview, problem, alpha, eta, sparse=sparse, max_iter=MAX_ITER)
    K = np.stack([U @ U.T for U in (U - U.mean(axis=0) for U in parts)])
    centred = Y - Y.mean(axis=0)
    found = multiview.gap(K, centred, alpha, eta, result.T, result.weights, sparse)
    return *found, result.converged, seconds


def hadamard(rng, n, p, alpha, name="frobenius"):
    """An output kernel that multiplies a kernel between variables, in a ball: nonlinear autoregression."""
    lags = rng.integers(1, 3)
    windows, Y = rng.normal(size=(n, p, lags)), rng.normal(size=(n, p))
    gamma, output_gamma = 10.0 ** rng.uniform(-2, 0, size=2)
    settings = SETTINGS.get(name, {})
    (model, solution), seconds = timed(
        learn_hadamard,
        windows,
        Y,
        alpha,
        gamma=gamma,
        output_gamma=output_gamma,
        penalty=OutputPenalty(name, True, **settings),
        max_iter=MAX_ITER,
    )
    y = (Y - Y.mean(axis=0)).reshape(-1)
    ones = hadamard_gram(windows, np.ones((p, p)), gamma, output_gamma).reshape(n, p, n, p)
    G = (ones * model.B[:, None, :]).reshape(n * p, n * p)
    G[np.diag_indices(n * p)] += alpha
    value = 0.5 * y @ solve(G, y, assume_a="pos", overwrite_a=True)
    C = solution.witness
    S = np.einsum("ti,tij->ij", C, np.einsum("tilj,lj->tij", ones, C, optimize=True))
    if name == "elastic":
        support = convex.elastic_support(S, convex.value(name, np.eye(p), **settings), **settings)
    else:
        support = convex.norm(name, np.eye(p), **settings) * convex.dual_norm(name, S, **settings)
    bound = np.sum(C * y.reshape(n, p)) - alpha / 2 * np.sum(C**2) - 0.5 * support
    return value, value - bound, solution.converged, seconds


LEARNERS = {
    **{
        f"{name}{' ball' if constraint else ''}": partial(
            output_kernel, name=name, constraint=constraint
        )
        for name in PENALTIES
        for constraint in (False, True)
        if not (constraint and name == "cluster")
    },
    "weights, norm 1": weights,
    "weights, norm 1.5": partial(weights, norm=1.5),
    "weights, norm 2": partial(weights, norm=2.0),
    "weights, norm 1, given T": partial(weights, given=True),
    "diagonal": diagonal,
    "listed": listed,
    "shared": shared,
    "own, norm 1": own,
    "own, norm 1.1": partial(own, norm=1.1),
    "own, norm 1.5": partial(own, norm=1.5),
    "multi-view": multi_view,
    "multi-view, sparse": partial(multi_view, sparse=True),
    **{
        f"hadamard, {name} ball": partial(hadamard, name=name)
        for name in ("frobenius", "entrywise", "schatten", "elastic")
    },
}


def certify(learner, problems, largest):
    """Gaps over objectives and seconds; the first problems are the same for any number of them."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(problems):
        n, p = rng.integers(3, largest + 1, size=2)
        alpha = 10.0 ** rng.uniform(-4, 2)
        value, gap, converged, seconds = learner(
            np.random.default_rng(rng.integers(2**32)), n, p, alpha
        )
        found.append((gap / value, converged, seconds, n, p, alpha))
    gaps, converged, seconds, *_ = map(np.array, zip(*found, strict=True))
    worst = found[int(np.argmax(gaps))]
    return {
        "problems": problems,
        "converged": int(converged.sum()),
        "gap <= 1e-6": int(np.sum(gaps <= 1.001e-6)),
        "median gap": float(np.median(gaps)),
        "largest gap": float(gaps.max()),
        "least gap": float(gaps.min()),
        "at n, p, alpha": f"{worst[3]}, {worst[4]}, {worst[5]:.1e}",
        "s in all": float(seconds.sum()),
        "s at most": float(seconds.max()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help="learners whose names begin so; all of them by default"
    )
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--largest", type=int, default=60, help="most rows, and most outputs")
    options = parser.parse_args()
    table = []
    for name, learner in LEARNERS.items():
        if options.names and not name.startswith(tuple(options.names)):
            continue
        table.append({"learner": name, **certify(learner, options.problems, options.largest)})
        print(name, table[-1], flush=True)
    print_table("Gaps over objectives", table)
    write_json("certificates", table)


if __name__ == "__main__":
    main()
