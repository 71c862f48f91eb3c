"""The convex learners: speed, published alternations, and errors on simulated tables.

All methods of a ratio are timed in one run, in turns. Banded ridge is compared with himalaya's
where that is installed; views of gestures need the uWave table.

    python benchmarks/learners.py [--quick] [PART ...]
"""

import sys
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.linalg import eigh
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from entangled_kernels import (
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorKernelVAR,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from entangled_kernels.convex import (
    PENALTIES,
    KernelPart,
    OutputPenalty,
    alpha_unit,
    diagonalise,
    lag_windows,
    learn_hadamard,
    learn_output_kernel,
    learn_shared,
    learn_weights,
    reduce_problem,
)
from entangled_kernels.convex.autoregression import hadamard_gram
from entangled_kernels.datasets import fetch_uwave

from measure import best_seconds, run_parts
from tables import default_data_home

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference.autoregression import proximal_alternation, sparse_series
from reference.convex import coordinate_ascent, kernel_ridge_alternation, output_kernel_objective
from reference.multiple_kernels import shared_alternation, shared_value

SETTINGS = {
    "schatten": {"exponent": 4 / 3},
    "elastic": {"l1_ratio": 0.5},
    "cluster": {"level_bounds": (0.1, 10.0)},
    "entrywise": {"exponent": 4 / 3},
}


def mixtures(n, p, d=10, seed=0):
    """Inputs, and targets that are noisy mixtures of two functions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.tanh(X[:, :2]) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))


def penalties_against_eigh(n=500, p=50):
    """(a) Whole fits with the default tolerance, beside one eigendecomposition of K."""
    X, Y = mixtures(n, p)
    K = rbf_kernel(X)
    problem = diagonalise(reduce_problem(K, Y))
    table = []
    for name in PENALTIES:
        for constraint in (False, True):
            unit = alpha_unit(problem, penalty=OutputPenalty(name, constraint))
            for multiple in (1e-3, 1e-1, 10.0):
                model = OutputKernelRidge(
                    "precomputed",
                    alpha=multiple * unit,
                    penalty=name,
                    constraint=constraint,
                    fit_intercept=False,
                )
                seconds = best_seconds(
                    {"eigh": partial(eigh, K), "fit": partial(model.fit, K, Y)}, repeats=3
                )
                table.append(
                    {
                        "penalty": name,
                        "constraint": constraint,
                        "alpha / unit": multiple,
                        "evaluations": model.n_iter_,
                        "fit s": seconds["fit"],
                        "fit / eigh": seconds["fit"] / seconds["eigh"],
                        "gap / objective": model.duality_gap_ / model.objective_history_[-1],
                    }
                )
    return table


def alternations(n=200, p=30, most=500):
    """(b) Evaluations and seconds to 1e-6 of the best objective, here and by the published alternation."""
    X, Y = mixtures(n, p)
    K = rbf_kernel(X)
    problem = diagonalise(reduce_problem(K, Y))
    table = []
    for name in ("frobenius", "schatten", "trace", "elastic"):
        penalty = OutputPenalty(name)

        built = penalty.build(p, p)

        def best_levels(s, built=built):
            return built.level_best(s[None])[0]

        for multiple in (0.1, 1.0, 3.0):
            alpha = multiple * alpha_unit(problem, penalty=penalty)
            start = time.perf_counter()
            ours = learn_output_kernel(problem, alpha, penalty=penalty)
            seconds = time.perf_counter() - start
            best = learn_output_kernel(
                problem, alpha, penalty=penalty, tol=1e-5, max_iter=5000
            ).value
            start, steps, L, reached = time.perf_counter(), 0, np.eye(p), np.inf
            while steps < most and reached > 1e-6:
                L = kernel_ridge_alternation(K, Y, alpha, best_levels, 10, start=L)
                steps += 10
                reached = (
                    output_kernel_objective(K, Y, L, alpha, name, **SETTINGS.get(name, {})) / best
                    - 1
                )
            table.append(
                {
                    "penalty": name,
                    "alpha / unit": multiple,
                    "evaluations here": ours.n_iter,
                    "s here": seconds,
                    "excess here": ours.value / best - 1,
                    "steps published": steps,
                    "s published": time.perf_counter() - start,
                    "excess published": reached,
                }
            )
    table.append(_entrywise(K, Y, problem))
    groups = np.stack([rbf_kernel(X[:, [j]]) for j in range(10)])
    kernels = reduce_problem([KernelPart(k) for k in groups], Y)
    table.append(
        _beside(
            "weights of ten kernels (Kadri)",
            lambda tol: learn_weights(kernels, 1.0, tol=tol),
            lambda steps, d: _weights_alternation(groups, Y, 1.0, steps, d),
            lambda d: _weights_value(groups, Y, 1.0, d),
            200,
        )
    )
    table.append(
        _beside(
            "weights and a shared output kernel (Sindhwani)",
            lambda tol: learn_shared(kernels, 1.0, tol=tol, max_iter=5000),
            lambda steps, last: shared_alternation(groups, Y, 1.0, steps, last),
            lambda last: shared_value(groups, Y, 1.0, *last),
            200,
        )
    )
    table.append(_autoregression(n, p))
    return table


def _beside(name, ours, alternate, value, most, alpha=1.0):
    """A row for our solver and for rounds of ten published steps until these are as near the best."""
    start = time.perf_counter()
    found = ours(1e-3)
    seconds = time.perf_counter() - start
    best = ours(1e-5).value
    start, steps, reached, last = time.perf_counter(), 0, np.inf, None
    while steps < most and reached > 1e-6:
        last = alternate(10, last)
        steps += 10
        reached = value(last) / best - 1
    return {
        "penalty": name,
        "alpha / unit": alpha,
        "evaluations here": found.n_iter,
        "s here": seconds,
        "excess here": found.value / best - 1,
        "steps published": steps,
        "s published": time.perf_counter() - start,
        "excess published": reached,
    }


def _entrywise(K, Y, problem):
    """Dual coordinate ascent (Jawanpuria), whose steps are epochs over all coefficients."""
    penalty, rng = OutputPenalty("entrywise"), np.random.default_rng(0)
    alpha = alpha_unit(problem, penalty=penalty)
    return _beside(
        "entrywise (Jawanpuria)",
        lambda tol: learn_output_kernel(problem, alpha, penalty=penalty, tol=tol, max_iter=5000),
        lambda steps, last: coordinate_ascent(
            K, Y, alpha, 2, steps, rng, None if last is None else last[0]
        ),
        lambda last: output_kernel_objective(K, Y, last[1], alpha, "entrywise", exponent=4 / 3),
        60,
    )


def _autoregression(n, p):
    """Coefficients and B in turn (Lim), with our solver of the ridge system for both."""
    X, _ = sparse_series(np.random.default_rng(0), p, n + 1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    windows, Y = lag_windows(X, 1)[:-1], X[1:]
    settings = {"gamma": 2 / p, "output_gamma": 0.2}
    gram = hadamard_gram(windows, Y - Y.mean(axis=0), 1.0, *settings.values())

    def ours(tol):
        penalty = OutputPenalty("frobenius", constraint=True)
        result = learn_hadamard(
            windows, Y, 1.0, penalty=penalty, max_iter=5000, tol=tol, **settings
        )[1]
        return SimpleNamespace(value=result.value, n_iter=result.n_iter)

    def alternate(steps, last):
        solve = partial(_coefficients, gram)
        start = None if last is None else last[0]
        return proximal_alternation(
            solve, lambda C: gram.inner_products(C)[0], gram.targets, p**0.5, steps, start
        )

    return _beside("autoregression (Lim)", ours, alternate, lambda last: last[1][-1], 60)


def _coefficients(gram, B):
    return gram.solve(B[None])[0]


def _weights_value(kernels, Y, alpha, d):
    K = np.einsum("m,mnl->nl", d, kernels)
    return 0.5 * np.sum(Y * np.linalg.solve(K + alpha * np.eye(len(K)), Y))


def _weights_alternation(kernels, Y, alpha, steps, d=None):
    """The alternation of the reference, without the Kronecker product over outputs."""
    d = np.full(len(kernels), 1 / len(kernels)) if d is None else d
    for _ in range(steps):
        C = np.linalg.solve(np.einsum("m,mnl->nl", d, kernels) + alpha * np.eye(len(Y)), Y)
        size = d * np.sqrt([max(np.sum(C * (K @ C)), 0.0) for K in kernels])
        d = size / size.sum()
    return d


def grouped(n, p, m=20, width=5, seed=0, active=4):
    """Columns in groups, and targets that depend on a few of the groups."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m * width))
    Y = sum(
        (1 + j) * X[:, j * width : (j + 1) * width] @ rng.normal(size=(width, p))
        for j in range(active)
    )
    noise = rng.normal(size=Y.shape) * Y.std()
    return X, Y + noise, {f"group{j}": slice(j * width, (j + 1) * width) for j in range(m)}


def groups_against_kernel_ridge(n=1000, p=20):
    """(c) Weights of twenty groups of columns, beside one kernel ridge fit."""
    X, Y, groups = grouped(n, p)
    table = []
    for kernel in ("linear", "rbf"):
        model = MultipleKernelRidge([(name, kernel, columns) for name, columns in groups.items()])
        peer = KernelRidge(kernel="rbf")
        seconds = best_seconds(
            {"ridge": partial(peer.fit, X, Y), "fit": partial(model.fit, X, Y)}, repeats=2
        )
        table.append(
            {
                "kernel": kernel,
                "n": n,
                "p": p,
                "groups": len(groups),
                "evaluations": model.n_iter_,
                "kernel ridge s": seconds["ridge"],
                "fit s": seconds["fit"],
                "fit / ridge": seconds["fit"] / seconds["ridge"],
                "gap / objective": model.duality_gap_ / model.objective_,
            }
        )
    return table


def banded_ridge(n=300, p=20):
    """(d) Banded ridge with alpha by cross-validation: time and R^2 on new rows, beside himalaya's."""
    X, Y, groups = grouped(2 * n, p)
    train, test = slice(n), slice(n, None)
    columns = list(groups.values())

    def ours(kind):
        model = MultipleKernelRidge(groups, output_kernel=kind)
        return GridSearchCV(model, {"alpha": np.logspace(-1, 3, 9)}, cv=5).fit(X[train], Y[train])

    def ridge():
        return GridSearchCV(KernelRidge(), {"alpha": np.logspace(-1, 5, 13)}, cv=5).fit(
            X[train], Y[train]
        )

    runs = {
        "one alpha (KernelRidge)": ridge,
        "weights": partial(ours, "identity"),
        "by target": partial(ours, "diagonal"),
    }
    try:
        from himalaya.ridge import GroupRidgeCV
    except ImportError:
        print("himalaya is not installed; banded ridge is measured without it")
    else:

        def himalaya():
            model = GroupRidgeCV(
                groups="input",
                solver_params={
                    "n_iter": 100,
                    "alphas": np.logspace(-1, 5, 13),
                    "progress_bar": False,
                },
                random_state=0,
            )
            return model.fit([X[train][:, part] for part in columns], Y[train])

        runs["himalaya GroupRidgeCV"] = himalaya
    table = []
    for name, run in runs.items():
        start = time.perf_counter()
        model = run()
        seconds = time.perf_counter() - start
        new = [X[test][:, part] for part in columns] if name.startswith("himalaya") else X[test]
        error = np.sum((Y[test] - np.asarray(model.predict(new))) ** 2, axis=0)
        r2 = 1 - error / np.sum((Y[test] - Y[test].mean(axis=0)) ** 2, axis=0)
        table.append({"method": name, "s": seconds, "R2 on new rows": float(r2.mean())})
    return table


def low_rank_tasks(n=40, p=50, seeds=5):
    """(e) Error on new rows over that of tuned kernel ridge, for targets that mix two linear functions."""
    ratios = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 400, 20))
        Y = X @ rng.normal(size=(20, 2)) @ rng.normal(size=(2, p))
        noisy = Y + 5.0 * rng.normal(size=Y.shape)

        def error(model, X=X, Y=Y, noisy=noisy):
            return np.mean((model.fit(X[:n], noisy[:n]).predict(X[n:]) - Y[n:]) ** 2)

        # Clusters whose levels are all one give kernel ridge.
        base = error(
            OutputKernelRidgeCV(penalty="cluster", penalty_params={"level_bounds": (1.0, 1.0)})
        )
        for name in PENALTIES:
            for constraint in (False, True):
                model = OutputKernelRidgeCV(penalty=name, constraint=constraint)
                ratios.setdefault((name, constraint), []).append(error(model) / base)
    return [
        {
            "penalty": name,
            "constraint": constraint,
            "mean": float(np.mean(r)),
            "spread": float(np.std(r)),
        }
        for (name, constraint), r in ratios.items()
    ]


def networks(seeds=5):
    """(f) AUROC of the network of a sparse nonlinear autoregression, p = 10, 150 steps, two parents."""
    off = ~np.eye(10, dtype=bool)
    table = []
    for kernel in ("hadamard", "additive"):
        found, seconds = [], 0.0
        for seed in range(seeds):
            X, network = sparse_series(np.random.default_rng(seed))
            start = time.perf_counter()
            model = OperatorKernelVAR(kernel).fit(X)
            seconds += time.perf_counter() - start
            found.append(roc_auc_score(network[off], model.granger_[off]))
        table.append(
            {
                "kernel": kernel,
                "mean": float(np.mean(found)),
                "least": min(found),
                "s": seconds / seeds,
            }
        )
    return table


def vector_fields(seeds=5):
    """(g) Error for noisy divergence-free fields, over that of features without this constraint."""
    errors = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, Z = rng.uniform(-2, 2, size=(120, 2)), rng.uniform(-2, 2, size=(400, 2))

        def whirl(A):
            return np.column_stack(
                [2 * np.cos(A[:, 0]) * np.cos(2 * A[:, 1]), np.sin(A[:, 0]) * np.sin(2 * A[:, 1])]
            )

        Y = whirl(X) + 0.3 * rng.normal(size=(120, 2))
        for kind in ("decomposable", "divergence_free", "curl_free"):
            model = OperatorFourierRidge(
                OperatorFourierFeatures(kind, gamma=0.5, n_frequencies=200, random_state=seed)
            )
            search = GridSearchCV(model, {"alpha": [0.01, 0.1, 1.0, 10.0]}, cv=5).fit(X, Y)
            errors.setdefault(kind, []).append(np.mean((search.predict(Z) - whirl(Z)) ** 2))
    base = np.mean(errors["decomposable"])
    return [
        {
            "features": kind,
            "error": float(np.mean(e)),
            "over decomposable": float(np.mean(e) / base),
        }
        for kind, e in errors.items()
    ]


def views(n=150, seeds=5):
    """(h) Accuracy for gestures, whose views are the axes of the accelerometer."""
    try:
        gestures = fetch_uwave(inputs="XYZ", outputs="X", data_home=default_data_home())
    except OSError as error:
        print(f"left out: uWave: {error}")
        return []
    X, classes = gestures.data, gestures.labels
    width = X.shape[1] // 3
    slices = {axis: slice(i * width, (i + 1) * width) for i, axis in enumerate("XYZ")}
    accuracies = {}
    for seed in range(seeds):
        train, test = np.split(np.random.default_rng(seed).permutation(len(X)), [n])
        rng = np.random.default_rng(seed)
        X_missing = X.copy()
        for columns in slices.values():
            X_missing[rng.random(len(X)) < 0.3, columns] = np.nan
        for name, rows, axes in (
            *((axis, X, axis) for axis in slices),
            ("X Y Z", X, "XYZ"),
            ("all, 30% missing", X_missing, "XYZ"),
        ):
            model = MultiViewKernelClassifier({axis: slices[axis] for axis in axes})
            model.fit(rows[train], classes[train])
            accuracies.setdefault(name, []).append(model.score(rows[test], classes[test]))
    return [
        {"views": name, "accuracy": float(np.mean(values)), "spread": float(np.std(values))}
        for name, values in accuracies.items()
    ]


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="alpha=.*still rises")
    run_parts(
        "learners",
        __doc__,
        {
            penalties_against_eigh: {"n": 40, "p": 5},
            alternations: {"n": 30, "p": 4, "most": 20},
            groups_against_kernel_ridge: {"n": 60, "p": 3},
            banded_ridge: {"n": 60, "p": 3},
            low_rank_tasks: {"n": 20, "p": 5, "seeds": 1},
            networks: {"seeds": 1},
            vector_fields: {"seeds": 1},
            views: {"n": 40, "seeds": 1},
        },
    )
