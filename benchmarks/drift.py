"""Drifting coefficients: forgetting, a sliding window, stochastic gradients, and no forgetting.

Every batch is predicted before it is learned from, and errors are over the second half of the
stream. Every method is shown with several settings.

    python benchmarks/drift.py [--streams 3]
"""

import argparse
import time

import numpy as np
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.multioutput import MultiOutputRegressor

from entangled_kernels import EntangledKernelRidge

from measure import print_table, write_json

ROWS, BATCH, INPUTS, TARGETS, NOISE = 6000, 20, 8, 4, 0.5


def streams(seed):
    """Inputs, and targets of constant coefficients, of a random walk, and of two jumps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, INPUTS))
    first = rng.normal(size=(INPUTS, TARGETS))
    steps = rng.normal(size=(ROWS, INPUTS, TARGETS)) * 0.03
    jumps = np.concatenate(
        [np.repeat(rng.normal(size=(1, INPUTS, TARGETS)), ROWS // 3, axis=0) for _ in range(3)]
    )
    noise = NOISE * rng.normal(size=(ROWS, TARGETS))
    paths = {
        "stays": np.broadcast_to(first, steps.shape),
        "walks": first + np.cumsum(steps, axis=0),
        "jumps": jumps,
    }
    # (n, d), (n, d, p) -> (n, p)
    return {name: (X, np.einsum("nd,ndp->np", X, path) + noise) for name, path in paths.items()}


def forgetting(forget):
    model = EntangledKernelRidge(alpha=1.0)
    return lambda X, Y, seen: model.partial_fit(X, Y, forget=forget).solve().predict


def window(length):
    def learn(X, Y, seen):
        return Ridge(alpha=1.0).fit(seen[0][-length:], seen[1][-length:]).predict

    return learn


def gradients(rate):
    model = MultiOutputRegressor(SGDRegressor(learning_rate="constant", eta0=rate, random_state=0))

    def learn(X, Y, seen):
        model.partial_fit(X, Y)
        return model.predict

    return learn


METHODS = {
    "no forgetting": lambda: forgetting(1.0),
    **{f"forget={share}": (lambda share=share: forgetting(share)) for share in (0.999, 0.99, 0.95)},
    **{f"last {length} rows": (lambda length=length: window(length)) for length in (1000, 100, 40)},
    **{
        f"SGDRegressor, rate {rate}": (lambda rate=rate: gradients(rate))
        for rate in (0.001, 0.01, 0.05)
    },
}


def follow(method, X, Y):
    """nMSE of the batches of the second half, and milliseconds per batch."""
    learn, predict, errors, seconds = method(), None, [], 0.0
    for start in range(0, ROWS, BATCH):
        rows = slice(start, start + BATCH)
        if predict is not None and start >= ROWS // 2:
            errors.append(np.mean((Y[rows] - predict(X[rows])) ** 2, axis=0))
        began = time.perf_counter()
        predict = learn(X[rows], Y[rows], (X[: start + BATCH], Y[: start + BATCH]))
        seconds += time.perf_counter() - began
    variance = Y[ROWS // 2 :].var(axis=0)
    return float(np.mean(np.mean(errors, axis=0) / variance)), 1e3 * seconds / (ROWS / BATCH)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=3, help="random streams of each kind")
    n_streams = parser.parse_args().streams
    rows = []
    for name, method in METHODS.items():
        results = {
            kind: [follow(method, *streams(seed)[kind]) for seed in range(n_streams)]
            for kind in ("stays", "walks", "jumps")
        }
        row = {"method": name}
        row |= {kind: float(np.mean([nmse for nmse, _ in r])) for kind, r in results.items()}
        milliseconds = [ms for r in results.values() for _, ms in r]
        rows.append(row | {"ms a batch": float(np.mean(milliseconds))})
    print_table(f"nMSE of the next {BATCH} rows; mean of {n_streams} streams of {ROWS} rows", rows)
    write_json("drift", {"drift": rows})


if __name__ == "__main__":
    main()
