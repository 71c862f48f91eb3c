import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from dask.distributed import Client, LocalCluster, default_client
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.streams import BatchError


@pytest.fixture
def rows(make_rows):
    X, Y = make_rows(500, 4, 2)
    return X, Y, np.linspace(0.0, 2.0, 500)


def assert_same_fit(model, whole):
    whole.solve()
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-9)
    np.testing.assert_allclose(model.noise_variance_, whole.noise_variance_, rtol=1e-9)


@pytest.mark.parametrize(
    "feature_map", [None, RBFSampler(n_components=9, gamma="scale", random_state=0)]
)
@pytest.mark.parametrize("chunks", [(500, 4), (70, 4), (70, 3)])
def test_arrays(rows, feature_map, chunks):
    X, Y, weight = rows
    whole = EntangledKernelRidge(feature_map).fit(X, Y, weight)
    lazy = da.from_array(X, chunks=chunks)
    targets, weights = da.from_array(Y, chunks=(120, 1)), da.from_array(weight, chunks=90)
    model = EntangledKernelRidge(feature_map).fit(lazy, targets, weights)
    assert_same_fit(model, whole)
    assert_same_fit(EntangledKernelRidge(feature_map).fit(lazy, Y, weight), whole)
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (lazy.chunks[0], (2,))
    np.testing.assert_allclose(predicted.compute(), whole.predict(X), rtol=1e-9)
    for option in ("return_std", "return_cov"):
        expected = whole.predict(X, **{option: True})
        for one, other in zip(model.predict(lazy, **{option: True}), expected, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one.compute(), other, rtol=1e-8)


def test_missing_targets(rows, rng):
    X, Y, _ = rows
    holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    lazy, targets = da.from_array(X, chunks=(70, 4)), da.from_array(holes, chunks=(70, 2))
    model, whole = EntangledKernelRidge().fit(lazy, targets), EntangledKernelRidge().fit(X, holes)
    assert_same_fit(model, whole)
    np.testing.assert_allclose(model.residual_covariance_, whole.residual_covariance_, rtol=1e-6)
    given = np.where([True, False], Y, np.nan)
    np.testing.assert_allclose(
        model.predict(X, given=given), whole.predict(X, given=given), rtol=1e-6
    )
    with pytest.raises(TypeError, match="tables in memory"):
        model.predict(lazy, given=given)
    with pytest.raises(TypeError, match="tables in memory"):
        model.predict_interval(lazy)
    for method in (model.novelty, model.explain):
        with pytest.raises(TypeError, match="tables in memory"):
            method(lazy)


def test_unknown_chunk_sizes(rows):
    X, Y, _ = rows
    lazy, targets = da.from_array(X, chunks=(70, 4)), da.from_array(Y, chunks=(70, 2))
    keep = lazy[:, 0] > 1.0
    chosen, kept = lazy[keep], X[:, 0] > 1.0
    assert np.isnan(chosen.shape[0])
    model = EntangledKernelRidge().fit(chosen, targets[keep])
    assert_same_fit(model, EntangledKernelRidge().fit(X[kept], Y[kept]))
    np.testing.assert_allclose(model.predict(chosen).compute(), model.predict(X[kept]), rtol=1e-12)
    with pytest.raises(ValueError, match=r"y must be a Dask collection where X .* unknown size"):
        EntangledKernelRidge().fit(chosen, Y[kept])
    with pytest.raises(BatchError, match=r"partition \d: .*inconsistent numbers of samples"):
        EntangledKernelRidge().fit(chosen, targets)


def test_data_frames(rows):
    X, Y, weight = rows
    table = pd.DataFrame(np.hstack([X, Y, weight[:, None]]), columns=list("abcdyzw"))
    lazy = dd.from_pandas(table, npartitions=5)
    # A partition without any row is nothing special.
    lazy = dd.concat([lazy, lazy[lazy["w"] > 5.0]])
    features, targets = list("abcd"), list("yz")
    model = EntangledKernelRidge(StandardScaler()).fit(lazy[features], lazy[targets], lazy["w"])
    whole = EntangledKernelRidge(StandardScaler()).fit(table[features], table[targets], table["w"])
    assert_same_fit(model, whole)
    assert list(model.feature_names_in_) == features
    assert isinstance(model.predict(lazy[features]), da.Array)
    np.testing.assert_allclose(
        model.predict(lazy[features]).compute(), whole.predict(table[features])
    )
    frame = model.set_output(predict="pandas").predict(lazy[features])
    assert isinstance(frame, dd.DataFrame)
    pd.testing.assert_frame_equal(
        frame.compute(), whole.set_output(predict="pandas").predict(table[features]), rtol=1e-9
    )
    single = EntangledKernelRidge().fit(lazy[features], lazy["y"])
    assert single.predict(lazy[features]).compute().shape == (500,)
    std = single.predict(lazy[features], return_std=True)[1].compute()
    np.testing.assert_allclose(std, single.predict(table[features], return_std=True)[1], rtol=1e-9)
    with pytest.raises(TypeError, match="return_cov needs X as a Dask array"):
        model.predict(lazy[features], return_cov=True)


def test_what_is_refused(rows):
    X, Y, _ = rows
    lazy = da.from_array(X, chunks=(100, 4))
    with pytest.raises(TypeError, match="X must be a Dask collection where y"):
        EntangledKernelRidge().fit(X, da.from_array(Y))
    with pytest.raises(ValueError, match="target y is None"):
        EntangledKernelRidge().fit(lazy, None)
    with pytest.raises(ValueError, match="at least one row"):
        EntangledKernelRidge().fit(lazy[:0], Y[:0])
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(ValueError, match="X and y must have the same partitions, got 3 and 5"):
        EntangledKernelRidge().fit(frame, da.from_array(Y, chunks=(100, 2)))
    broken = X.copy()
    broken[250, 2] = np.nan
    model = EntangledKernelRidge()
    with pytest.raises(BatchError, match=r"partition 2: .*NaN"):
        model.fit(da.from_array(broken, chunks=(100, 4)), Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_only_moments_travel(rows, monkeypatch):
    """No task but those that make a partition or its features gives back as many numbers as it has rows."""
    X, Y, _ = rows
    model = EntangledKernelRidge()
    seen = []
    with (
        dask.config.set(scheduler="sync"),
        dask.callbacks.Callback(posttask=lambda key, result, *_: seen.append((str(key), result))),
    ):
        model.fit(da.from_array(X, chunks=(100, 4)), da.from_array(Y, chunks=(100, 2)))
    added = [result for key, result in seen if key.startswith(("_make_named", "merged"))]
    assert len(added) == 6
    assert all(part.scatter.shape == (6, 6) for stream in added for part in stream.parts.values())
    assert not any(stream.waiting for stream in added)


def test_no_client_is_made(rows):
    X, Y, _ = rows
    EntangledKernelRidge().fit(da.from_array(X, chunks=(100, 4)), Y).predict(
        da.from_array(X)
    ).compute()
    with pytest.raises(ValueError, match="No clients found"):
        default_client()


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on loopback; nothing is left of them afterwards."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    settings = {
        # A task that takes its worker down with it is given up after the second time.
        "distributed.scheduler.allowed-failures": 1,
        "distributed.comm.timeouts.connect": "10s",
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster),
    ):
        yield cluster
    deadline = time.monotonic() + 10
    left = True
    while left and time.monotonic() < deadline:
        # Python's own resource tracker stays for as long as the process that needed it.
        children = [
            child for child in psutil.Process().children(recursive=True) if child.pid not in before
        ]
        left = [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]
        time.sleep(0.05)
    assert not left


def slow_rows(X, pause):
    """A Dask array whose chunks take some time to make."""

    def make(block):
        time.sleep(pause)
        return block

    return da.from_array(X, chunks=(50, X.shape[1])).map_blocks(
        make, dtype=float, meta=np.empty((0, 0))
    )


def test_worker_processes(rows, cluster):
    X, Y, weight = rows
    features = StandardScaler().fit(X)
    lazy = slow_rows(X, 0.01)
    model = EntangledKernelRidge(features).fit(lazy, da.from_array(Y, chunks=(50, 2)), weight)
    whole = EntangledKernelRidge(features).partial_fit(X, Y, weight)
    assert_same_fit(model, whole)
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), whole.predict(X), rtol=1e-9)


def test_a_worker_is_killed(rows, cluster):
    X, Y, _ = rows
    victim = psutil.Process(next(iter(cluster.workers.values())).pid)
    timer = threading.Timer(0.6, victim.kill)
    timer.start()
    model = EntangledKernelRidge().fit(slow_rows(X, 0.3), Y)
    assert not timer.is_alive()
    assert psutil.wait_procs([victim], timeout=10)[1] == []
    assert_same_fit(model, EntangledKernelRidge().fit(X, Y))


def test_a_worker_that_always_fails(rows, cluster):
    X, Y, _ = rows
    parent = os.getpid()

    def fail(block):
        raise RuntimeError("the disk is gone")

    def die(block, block_id):
        if block_id[0] == 3 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    lazy = da.from_array(X, chunks=(50, 4))
    with pytest.raises(RuntimeError, match="the disk is gone"):
        EntangledKernelRidge().fit(lazy.map_blocks(fail, dtype=float, meta=np.empty((0, 0))), Y)
    model = EntangledKernelRidge()
    with pytest.raises(RuntimeError, match="Dask workers died"):
        model.fit(lazy.map_blocks(die, dtype=float, meta=np.empty((0, 0))), Y)
    assert_same_fit(model.fit(lazy, Y), EntangledKernelRidge().fit(X, Y))
