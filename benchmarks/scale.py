"""Fits larger than memory: rows per second, peak memory, and cost over rows, features, targets and workers.

A stream of Parquet files is compared with its unavoidable parts: the feature map and the matrix
products on rows in memory, and reading the files. Peers: scikit-learn's
Ridge on the same features while they fit in memory, dask-ml where it is installed, himalaya's
RidgeCV for very many targets.

    python benchmarks/scale.py [--quick] [--rows 10000000] [--folder FOLDER] [--only
    stream,sizes,...]

With all rows the files take 6 GB of the folder, which is emptied afterwards.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.streams import read_batches

from measure import in_fresh_process, print_table, write_json

N_INPUTS, N_TARGETS, N_FEATURES = 64, 8, 256
FILE_ROWS = 500_000
# 100,000 targets took 19 GB at once, and more than a quarter of an hour in batches.
HIMALAYA_TARGETS = 10_000
INPUTS = [f"x{i}" for i in range(N_INPUTS)]
TARGETS = [f"y{i}" for i in range(N_TARGETS)]


def make_rows(seed, n, d=N_INPUTS, p=N_TARGETS):
    rng, maps = np.random.default_rng(seed), np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 1.0
    Y = np.tanh(X @ maps.normal(size=(d, 2 * p)) / np.sqrt(d)) @ maps.normal(size=(2 * p, p))
    return X, Y + 0.5 * rng.normal(size=(n, p))


def write_files(folder, n):
    import pyarrow as pa
    from pyarrow import parquet

    for number, start in enumerate(range(0, n, FILE_ROWS)):
        rows = np.hstack(make_rows(number + 1, min(FILE_ROWS, n - start)))
        columns = {name: rows[:, place] for place, name in enumerate([*INPUTS, *TARGETS])}
        parquet.write_table(
            pa.table(columns), folder / f"{number:04}.parquet", row_group_size=65_536
        )


def feature_map(m=N_FEATURES, d=N_INPUTS):
    sampler = RBFSampler(n_components=m, gamma=0.5 / d, random_state=0)
    return sampler.fit(np.zeros((1, d)))


class Clock:
    """Wall time and processor time; the second is more accurate on a shared machine."""

    def __enter__(self):
        self.start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall = time.perf_counter() - self.start[0]
        self.cpu = time.process_time() - self.start[1]


def reader(files):
    return read_batches(files, inputs=INPUTS, targets=TARGETS)


def stream(files):
    names = EntangledKernelRidge(feature_map_with_names())
    with Clock() as clock:
        coef = names.fit_batches(reader(files)).coef_
    return clock.wall, clock.cpu, coef


def feature_map_with_names():
    import pandas as pd

    sampler = RBFSampler(n_components=N_FEATURES, gamma=0.5 / N_INPUTS, random_state=0)
    return sampler.fit(pd.DataFrame(np.zeros((1, N_INPUTS)), columns=INPUTS))


def read_only(files):
    with Clock() as clock:
        rows = sum(len(batch.X) for batch in reader(files))
    return clock.wall, clock.cpu, rows


def bare_products(n, m=N_FEATURES, d=N_INPUTS, p=N_TARGETS, block=65_536):
    """Feature map and one symmetric product on rows in memory, which every fit needs."""
    X, Y = make_rows(1, n, d, p)
    sampler = feature_map(m, d)
    with Clock() as clock:
        sums = np.zeros((m + p, m + p), order="F")
        for start in range(0, n, block):
            rows = np.hstack(
                [sampler.transform(X[start : start + block]), Y[start : start + block]]
            )
            sums = dsyrk(1.0, rows.T, beta=1.0, c=sums, overwrite_c=1)
    return clock.wall, clock.cpu, None


def cost_over_rows(folder, sizes):
    """A stream in a new interpreter for every number of rows, with reading and products alone."""
    write_files(folder, max(sizes))
    files = sorted(folder.glob("*.parquet"))
    table = []
    for n in sizes:
        own = files[: -(-n // FILE_ROWS)]
        if n < FILE_ROWS:
            part = folder / f"part{n}"
            part.mkdir()
            write_files(part, n)
            own = sorted(part.glob("*.parquet"))
        (wall, cpu, _), peak = in_fresh_process(stream, own)
        (read_wall, _, rows), _ = in_fresh_process(read_only, own)
        assert rows == n
        in_memory = min(n, 200_000)
        (bare_wall, bare_cpu, _), _ = in_fresh_process(bare_products, in_memory)
        table.append(
            {
                "rows": n,
                "seconds": wall,
                "processor s": cpu,
                "rows/s": n / wall,
                "peak MB": peak,
                "of products, wall": bare_wall / in_memory * n / wall,
                "of products, processor": bare_cpu / in_memory * n / cpu,
                "of reading, wall": read_wall / wall,
                "read rows/s": n / read_wall,
            }
        )
        print_table(f"stream, {n:,} rows", table[-1:])
    return table


def slopes(table):
    """Slope of time over rows on log axes, without the smallest sizes, and growth of the peak."""
    large = [row for row in table if row["rows"] >= 1_000_000] or table
    if len(large) < 2:
        return []
    n = np.log([row["rows"] for row in large])
    return [
        {
            "from rows": large[0]["rows"],
            "to rows": large[-1]["rows"],
            "slope of seconds": np.polyfit(n, np.log([row["seconds"] for row in large]), 1)[0],
            "slope of processor s": np.polyfit(n, np.log([row["processor s"] for row in large]), 1)[
                0
            ],
            "growth of peak": large[-1]["peak MB"] / large[0]["peak MB"],
        }
    ]


def in_batches(n, m, p):
    """Seconds of a stream from memory, for m features and p targets, and of its bare products."""
    X, Y = make_rows(1, n, p=p)
    model = EntangledKernelRidge(feature_map(m))
    with Clock() as fit:
        for start in range(0, n, 8192):
            model.partial_fit(X[start : start + 8192], Y[start : start + 8192])
    with Clock() as solve:
        model.solve()
    _, bare_cpu, _ = bare_products(n, m, p=p, block=8192)
    return fit.cpu, solve.cpu, bare_cpu


def cost_over_sizes(n):
    table = []
    for m, p in [(64, 8), (256, 8), (1024, 8), (2048, 8), (256, 1), (256, 64), (256, 512)]:
        (cpu, solve, bare), peak = in_fresh_process(in_batches, n, m, p)
        table.append(
            {"rows": n, "m": m, "p": p, "processor s": cpu, "solve s": solve}
            | {"rows/processor s": n / cpu, "of products": bare / cpu, "peak MB": peak}
        )
    return table


def on_workers(n, n_workers):
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    block = 50_000

    def make(block_info):
        start, stop = block_info[None]["array-location"][0]
        return np.hstack(make_rows(start + 1, stop - start))

    chunks = ((block,) * (n // block), (N_INPUTS + N_TARGETS,))
    rows = da.map_blocks(make, chunks=chunks, dtype=float, meta=np.empty((0, 0)))
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster),
    ):
        model = EntangledKernelRidge(feature_map())
        model.fit(rows[: 2 * block, :N_INPUTS], rows[: 2 * block, N_INPUTS:])
        with Clock() as clock:
            coef = model.fit(rows[:, :N_INPUTS], rows[:, N_INPUTS:]).coef_
    return clock.wall, coef


def cost_over_workers(n):
    table, first = [], None
    for n_workers in (1, 2):
        wall, coef = on_workers(n, n_workers)
        first = (wall, coef) if first is None else first
        table.append(
            {"rows": n, "workers": n_workers, "seconds": wall, "rows/s": n / wall}
            | {"speed-up": first[0] / wall, "difference": float(np.abs(coef - first[1]).max())}
        )
    return table


def ridge_in_memory(n):
    X, Y = make_rows(1, n)
    with Clock() as clock:
        coef = Ridge(solver="cholesky").fit(feature_map().transform(X), Y).coef_
    return clock.wall, clock.cpu, coef


def stream_in_memory(n):
    X, Y = make_rows(1, n)
    model = EntangledKernelRidge(feature_map(), shrinkage=1.0)
    with Clock() as clock:
        for start in range(0, n, 65_536):
            model.partial_fit(X[start : start + 65_536], Y[start : start + 65_536])
        coef = model.solve().coef_
    return clock.wall, clock.cpu, coef


def dask_ml_in_memory(n):
    import dask.array as da
    from dask_ml.linear_model import LinearRegression

    X, Y = make_rows(1, n)
    rows = da.from_array(X, chunks=(50_000, N_INPUTS))
    features = rows.map_blocks(
        feature_map().transform,
        chunks=(rows.chunks[0], (N_FEATURES,)),
        dtype=float,
        meta=np.empty((0, 0)),
    )
    with Clock() as clock:
        model = LinearRegression(penalty="l2", C=1.0, solver="lbfgs")
        # dask-ml takes one target at a time.
        model.fit(features, da.from_array(Y[:, 0], chunks=50_000))
    return clock.wall * N_TARGETS, clock.cpu * N_TARGETS, np.empty(0)


def peers(sizes):
    functions = {
        "entangled-kernels, stream": stream_in_memory,
        "scikit-learn Ridge": ridge_in_memory,
    }
    if importlib.util.find_spec("dask_ml"):
        try:
            in_fresh_process(dask_ml_in_memory, 1000)
            functions["dask-ml, one target times 8"] = dask_ml_in_memory
        except Exception as error:
            # The last release of dask-ml may not run with the installed Dask.
            print(f"dask-ml is left out: {type(error).__name__}: {str(error).splitlines()[0]}")
    table = []
    for n in sizes:
        found = {name: in_fresh_process(function, n) for name, function in functions.items()}
        coef = found["scikit-learn Ridge"][0][2]
        for name, ((wall, cpu, own), peak) in found.items():
            difference = (
                float(np.abs(own - coef).max() / np.abs(coef).max())
                if own.shape == coef.shape
                else np.nan
            )
            table.append(
                {"rows": n, "method": name, "seconds": wall, "processor s": cpu}
                | {"peak MB": peak, "difference": difference}
            )
    return table


def voxels(n, d, p, seed=0):
    """Many targets that follow a few directions of the inputs, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(d, 20)) @ rng.normal(size=(20, p)) / 10.0
    Y = rng.normal(size=(n, p))
    for start in range(0, n, 500):
        Y[start : start + 500] += X[start : start + 500] @ W
    return X, Y


def signal_error(model, n, d, p):
    """Mean squared error of the coefficients against those of the signal, relative to the latter."""
    rng = np.random.default_rng(0)
    rng.normal(size=(n, d))
    W = rng.normal(size=(d, 20)) @ rng.normal(size=(20, p)) / 10.0
    coef = model.coef_ if model.coef_.shape == W.shape else model.coef_.T
    return float(np.sum((coef - W) ** 2) / np.sum(W**2))


def select_ours(n, d, p):
    X, Y = voxels(n, d, p)
    with Clock() as clock:
        model = EntangledKernelRidgeCV(None, random_state=0).fit(X, Y)
    return clock.wall, clock.cpu, signal_error(model, n, d, p)


def select_plain(n, d, p):
    """The same search over alphas alone, as ridge regression selects them."""
    X, Y = voxels(n, d, p)
    with Clock() as clock:
        model = EntangledKernelRidgeCV(
            None, selection="best", random_state=0, param_grid={"shrinkage": (1.0,)}
        ).fit(X, Y)
    return clock.wall, clock.cpu, signal_error(model, n, d, p)


def select_himalaya(n, d, p):
    """Search of himalaya on some of the targets; its time is proportional to their number."""
    from himalaya.ridge import RidgeCV

    some = min(p, HIMALAYA_TARGETS)
    X, Y = voxels(n, d, p)
    Y = np.ascontiguousarray(Y[:, :some])
    with Clock() as clock:
        params = {"n_targets_batch": some}
        alphas = np.logspace(-5, 6, 34)
        RidgeCV(alphas=alphas, cv=5, fit_intercept=True, solver_params=params).fit(X, Y)
    return clock.wall * p / some, clock.cpu * p / some, np.nan


def very_many_targets(n, d, p):
    functions = {
        "selection of kernel and alpha": select_ours,
        "selection of alpha alone": select_plain,
    }
    if importlib.util.find_spec("himalaya"):
        times = p / HIMALAYA_TARGETS
        share = f", {HIMALAYA_TARGETS:,} targets times {times:g}" if times > 1 else ""
        functions[f"himalaya RidgeCV{share}"] = select_himalaya
    table = []
    for name, function in functions.items():
        (wall, cpu, error), peak = in_fresh_process(function, n, d, p)
        print(f"{name}: {wall:.1f} s, {cpu:.1f} processor s, {peak:.0f} MB", flush=True)
        table.append(
            {"n": n, "d": d, "p": p, "method": name, "seconds": wall, "processor s": cpu}
            | {"peak MB": peak, "error of coefficients": error}
        )
    for row in table:
        row["ratio to himalaya"] = (
            row["seconds"] / table[-1]["seconds"] if len(functions) == 3 else np.nan
        )
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or two")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--folder", type=Path, help="where files are written; a temporary one by default"
    )
    parser.add_argument("--only", default="stream,sizes,workers,peers,voxels")
    options = parser.parse_args()
    only = options.only.split(",")
    rows = min(options.rows, 200_000) if options.quick else options.rows
    tables = {}
    if "stream" in only:
        sizes = [n for n in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000) if n <= rows] or [
            rows
        ]
        folder = Path(tempfile.mkdtemp(dir=options.folder))
        try:
            tables["rows"] = cost_over_rows(
                folder, [n for n in sizes if n < FILE_ROWS or n % FILE_ROWS == 0]
            )
        finally:
            shutil.rmtree(folder)
        tables["slopes"] = slopes(tables["rows"])
    if "sizes" in only:
        tables["sizes"] = cost_over_sizes(20_000 if options.quick else 100_000)
    if "workers" in only:
        tables["workers"] = cost_over_workers(200_000 if options.quick else 1_000_000)
    if "peers" in only:
        tables["peers"] = peers([50_000] if options.quick else [100_000, 1_000_000])
    if "voxels" in only:
        tables["voxels"] = very_many_targets(
            *((600, 50, 2_000) if options.quick else (3_000, 200, 100_000))
        )
    for name, table in tables.items():
        if table:
            print_table(name, table)
    write_json("scale", tables)


if __name__ == "__main__":
    main()
