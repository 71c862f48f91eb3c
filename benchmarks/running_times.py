"""Running times of ridge regression with operator-valued kernels, over samples and over outputs.

Times of solving for the coefficients c, given the Gram matrix or features, and of predicting, on
one thread, with slopes on log axes beside the theoretical exponents. At the end scikit-learn's
KernelRidge, himalaya's where it is installed, and the PPT test on D and on G.

    python benchmarks/running_times.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from entangled_kernels.estimators import OperatorValuedKernelRidge
from entangled_kernels.kernels import KrausKernel, SeparableKernel, factorize
from entangled_kernels.linalg import (
    BlockOperator,
    DenseOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    is_ppt,
)

RESULTS = Path(__file__).parent / "results"
# With 200 points predictions took a millisecond or two, too short for accurate slopes.
N_TEST = 500
RANK = 20
ALPHA = 1.0


def random_psd(rng, size):
    B = rng.normal(size=(size, size))
    return B @ B.T / size


def unstructured(rng, n, p, m):
    """Gaussian kernel between (sample, output) pairs, which has no structure for a solver to use."""
    points = rng.normal(size=((n + N_TEST) * p, 5))
    K = rbf_kernel(points, points[: n * p], gamma=0.05)
    blocks = K.reshape(n + N_TEST, p, n, p).swapaxes(1, 2)
    return DenseOperator(blocks[:n]), DenseOperator(blocks[n:])


def separable(rng, n, p, m):
    X, T = rng.normal(size=(n + N_TEST, 5)), random_psd(rng, p)
    K = rbf_kernel(X, X[:n], gamma=0.05)
    return KroneckerOperator(K[:n], T), KroneckerOperator(K[n:], T)


def low_rank_separable(rng, n, p, m):
    Phi, T = rng.normal(size=(n + N_TEST, m)), random_psd(rng, p)
    return LowRankKroneckerOperator(Phi[:n], Phi[:n], T), LowRankKroneckerOperator(
        Phi[n:], Phi[:n], T
    )


def entangled(rng, n, p, m):
    Phi, Q = rng.normal(size=(n + N_TEST, m)), rng.normal(size=(m * p, RANK)) / np.sqrt(m * p)
    return LowRankOperator(Phi[:n], Phi[:n], Q, p), LowRankOperator(Phi[n:], Phi[:n], Q, p)


def partial_trace(rng, n, p, m):
    """One scalar kernel phi(x)^T S phi(z) / p for all outputs, S the partial trace of D."""
    Phi = rng.normal(size=(n + N_TEST, m)) @ np.linalg.cholesky(random_psd(rng, m) + np.eye(m))
    eye = np.eye(p)
    return LowRankKroneckerOperator(Phi[:n], Phi[:n], eye), LowRankKroneckerOperator(
        Phi[n:], Phi[:n], eye
    )


@dataclass(frozen=True)
class Sweep:
    """Sizes along one axis, and theoretical exponents: of the paper's table, and of the code here."""

    build: Callable[..., tuple[BlockOperator, BlockOperator]]
    solver: str
    axis: str
    sizes: tuple[int, ...]
    fixed: int
    m: int
    cost: str
    paper: float
    here: float
    here_predict: float


def sweeps(quick: bool) -> list[Sweep]:
    def thin(*sizes: int) -> tuple[int, ...]:
        return tuple(size // 4 for size in sizes) if quick else sizes

    big = thin(40_000, 80_000, 160_000, 320_000)
    outputs = thin(800, 1200, 1800, 2600)
    many = thin(400, 800, 1600, 3200)
    return [
        Sweep(unstructured, "dense", "n", thin(400, 560, 720, 1000), 5, 0, "n^3 p^3", 3, 3, 1),
        # Five outputs are solved by Cholesky factorisations at every size. More of them share a
        # tridiagonal reduction, half of which waits for memory: its slope is above 3 while K
        # outgrows the caches.
        Sweep(
            separable, "kronecker", "n", thin(1000, 1500, 2200, 3200), 5, 0, "n^3 + p^3", 3, 3, 1
        ),
        Sweep(
            low_rank_separable, "low_rank_separable", "n", big, 10, 50, "m^3 + m^2 n + p^3", 1, 1, 1
        ),
        Sweep(entangled, "low_rank", "n", big, 10, 50, "r^3 + m n p^2", 1, 1, 1),
        Sweep(partial_trace, "low_rank_separable", "n", big, 10, 50, "m^3 + m n p", 1, 1, 1),
        Sweep(unstructured, "dense", "p", thin(20, 28, 36, 50), 100, 0, "n^3 p^3", 3, 3, 2),
        Sweep(separable, "kronecker", "p", outputs, 20, 0, "n^3 + p^3", 3, 3, 2),
        Sweep(
            low_rank_separable,
            "low_rank_separable",
            "p",
            outputs,
            40,
            10,
            "m^3 + m^2 n + p^3",
            3,
            3,
            2,
        ),
        Sweep(entangled, "low_rank", "p", many, 3000, 50, "r^3 + m n p^2", 2, 1, 1),
        Sweep(partial_trace, "low_rank_separable", "p", many, 3000, 50, "m^3 + m n p", 1, 1, 1),
    ]


def best_time(task: Callable[[], object], budget: float = 1.0, repeats: int = 7) -> float:
    """Least processor time of a few runs on one thread, whatever else the machine does."""
    best, spent = np.inf, 0.0
    for _ in range(repeats):
        start = time.process_time()
        task()
        elapsed = time.process_time() - start
        best, spent = min(best, elapsed), spent + elapsed
        if spent > budget:
            break
    return float(best)


def slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(sweep: Sweep) -> dict:
    rng = np.random.default_rng(0)
    learn, predict = [], []
    for size in sweep.sizes:
        n, p = (size, sweep.fixed) if sweep.axis == "n" else (sweep.fixed, size)
        train, test = sweep.build(rng, n, p, sweep.m)
        Y = rng.normal(size=(n, p, 1))
        c = factorize(train, solver=sweep.solver)[0].solve(Y, ALPHA).reshape(-1)
        learn.append(best_time(lambda: factorize(train, solver=sweep.solver)[0].solve(Y, ALPHA)))  # noqa: B023
        predict.append(best_time(lambda: test @ c, budget=0.5))  # noqa: B023
    return {
        "kernel": sweep.build.__name__.replace("_", " "),
        "solver": sweep.solver,
        "axis": sweep.axis,
        "sizes": sweep.sizes,
        "fixed": {
            "p" if sweep.axis == "n" else "n": sweep.fixed,
            "m": sweep.m,
            "r": RANK,
            "t": N_TEST,
        },
        "learn_seconds": learn,
        "predict_seconds": predict,
        "learn_slope": slope(sweep.sizes, learn),
        "predict_slope": slope(sweep.sizes, predict),
        "cost": sweep.cost,
        "paper_exponent": sweep.paper,
        "exponent": sweep.here,
        "predict_exponent": sweep.here_predict,
        "difference_from_dense": difference_from_dense(sweep),
    }


def difference_from_dense(sweep: Sweep) -> float:
    """Largest relative difference of c from `numpy.linalg.solve`, on a small problem."""
    rng = np.random.default_rng(1)
    train, _ = sweep.build(rng, 40, 6, 10)
    Y = rng.normal(size=(40, 6, 1))
    dense = np.linalg.solve(train.to_dense() + ALPHA * np.eye(240), Y.ravel()).reshape(Y.shape)
    return float(
        np.abs(factorize(train, solver=sweep.solver)[0].solve(Y, ALPHA) - dense).max()
        / np.abs(dense).max()
    )


def peers(quick: bool) -> list[dict]:
    """Fit times of separable kernels at n = 1000, p = 10, and of the PPT test at n = 500, p = 4, m = 20."""
    rng = np.random.default_rng(0)
    n, p = (300, 10) if quick else (1000, 10)
    X, Y = rng.normal(size=(n, 8)), rng.normal(size=(n, p))
    theirs = KernelRidge(kernel="rbf", gamma=0.1)
    outputs = {
        "T = I": np.eye(p),
        "T = I + 11^T": np.eye(p) + 1.0,
        "random T": random_psd(rng, p),
    }
    rows = []
    for label, T in outputs.items():
        ours = OperatorValuedKernelRidge(SeparableKernel("rbf", T, gamma=0.1))
        mine, reference = interleaved(lambda: ours.fit(X, Y), lambda: theirs.fit(X, Y))  # noqa: B023
        rows.append({"task": f"fit, separable, {label}", "peer": "scikit-learn KernelRidge"}
                    | {"seconds": mine, "peer_seconds": reference, "ratio": mine / reference})  # fmt: skip
    himalaya = himalaya_ridge()
    if himalaya is not None:
        ours = OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(p), gamma=0.1))
        mine, reference = interleaved(lambda: ours.fit(X, Y), lambda: himalaya.fit(X, Y))
        rows.append({"task": "fit, separable, T = I", "peer": "himalaya KernelRidge"}
                    | {"seconds": mine, "peer_seconds": reference, "ratio": mine / reference})  # fmt: skip
    kernel = KrausKernel(rng.normal(size=(30, 4, 20)))
    Phi = rng.normal(size=(100 if quick else 500, 20))
    mine = best_time(lambda: KrausKernel(kernel.kraus).is_ppt())
    reference = best_time(lambda: is_ppt(kernel(Phi).to_dense(), (len(Phi), 4)))
    rows.append({"task": "PPT on D (m = 20, p = 4)", "peer": "PPT on G"}
                | {"seconds": mine, "peer_seconds": reference, "ratio": mine / reference})  # fmt: skip
    return rows


def interleaved(
    first: Callable[[], object], second: Callable[[], object], rounds: int = 9
) -> tuple[float, float]:
    """Best times of two tasks that are run in turns, so that a busy moment slows both."""
    times = [(best_time(first, repeats=1), best_time(second, repeats=1)) for _ in range(rounds)]
    return min(a for a, _ in times), min(b for _, b in times)


def himalaya_ridge():
    try:
        from himalaya.kernel_ridge import KernelRidge as HimalayaRidge
    except ImportError:
        return None
    return HimalayaRidge(kernel="rbf", kernel_params={"gamma": 0.1})


def print_tables(rows: list[dict], peer_rows: list[dict]) -> None:
    header = f"{'kernel':<20}{'axis':<6}{'cost (paper)':<20}{'paper':>6}{'theory':>8}{'learn':>8}"
    print(header + f"{'predict':>15}{'seconds':>18}{'|c - dense|':>14}")
    for row in rows:
        seconds = f"{row['learn_seconds'][0]:.3f}..{row['learn_seconds'][-1]:.3f}"
        predict = f"{row['predict_slope']:.2f} (theory {row['predict_exponent']:g})"
        print(
            f"{row['kernel']:<20}{row['axis']:<6}{row['cost']:<20}{row['paper_exponent']:>6g}{row['exponent']:>8g}"
            f"{row['learn_slope']:>8.2f}{predict:>17}{seconds:>16}{row['difference_from_dense']:>14.1e}"
        )
    print()
    for row in peer_rows:
        print(
            f"{row['task']:<32}{row['seconds'] * 1e3:>10.2f} ms   {row['peer']:<26}"
            f"{row['peer_seconds'] * 1e3:>10.2f} ms   ratio {row['ratio']:.4g}"
        )


def draw(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(13, 7.5), layout="constrained")
    names = {"n": "samples n", "p": "outputs p"}
    colors = dict(
        zip(
            dict.fromkeys(row["kernel"] for row in rows), plt.get_cmap("tab10").colors, strict=False
        )
    )
    for i, what in enumerate(("learn", "predict")):
        for j, axis in enumerate(("n", "p")):
            panel = axes[i, j]
            for row in (row for row in rows if row["axis"] == axis):
                label = f"{row['kernel']} ({row[what + '_slope']:.2f})"
                color = colors[row["kernel"]]
                panel.loglog(row["sizes"], row[f"{what}_seconds"], "o-", color=color, label=label)
            panel.set(xlabel=names[axis], ylabel="seconds", title=f"{what}ing over {names[axis]}")
            panel.grid(True, which="major", alpha=0.3)
            panel.legend(
                title="measured slope", fontsize="small", loc="upper left", bbox_to_anchor=(1, 1)
            )
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything runs"
    )
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        rows = [measure(sweep) for sweep in sweeps(quick)]
        peer_rows = peers(quick)
    print_tables(rows, peer_rows)
    RESULTS.mkdir(exist_ok=True)
    record = {"python": platform.python_version(), "numpy": np.__version__, "quick": quick}
    record |= {"threads": 1, "clock": "processor time of the process"}
    record |= {"sweeps": rows, "peers": peer_rows}
    (RESULTS / "running_times.json").write_text(json.dumps(record, indent=2))
    draw(rows, RESULTS / "running_times.png")


if __name__ == "__main__":
    main()
