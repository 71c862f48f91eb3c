import os
import random
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.streams import BatchError, read_batches, waiting
from entangled_kernels.streams.checkpoints import CheckpointError, read_checkpoint


class Interrupted(Exception):
    pass


def stop_after(number):
    """A progress function that interrupts the fit after so many batches."""
    left = [number]

    def progress(batch):
        left[0] -= 1
        if left[0] == 0:
            raise Interrupted

    return progress


def batches_of(X, Y, size):
    return [(X[start : start + size], Y[start : start + size]) for start in range(0, len(X), size)]


@pytest.fixture
def files(make_rows, tmp_path):
    """Three Parquet files of 100, 30 and 70 rows, and their rows."""
    X, Y = make_rows(200, 4, 2)
    folder = tmp_path / "rows"
    folder.mkdir()
    table = pd.DataFrame(np.hstack([X, Y]), columns=list("abcdyz"))
    for number, part in enumerate((slice(0, 100), slice(100, 130), slice(130, 200))):
        rows = pa.Table.from_pandas(table[part], preserve_index=False)
        parquet.write_table(rows, folder / f"{number}.parquet", row_group_size=13)
    return folder, X, Y


def read(folder):
    return read_batches(folder, inputs=list("abcd"), targets=list("yz"), batch_rows=8)


def test_the_fit_of_files_is_that_of_their_rows(files):
    folder, X, Y = files
    seen = []
    model = EntangledKernelRidge().fit_batches(read(folder), progress=lambda batch: seen.append(len(batch.X)))
    assert sum(seen) == 200
    whole = EntangledKernelRidge().fit(X, Y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-9)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(model.target_names_) == list("yz")


def test_weights_frames_and_earlier_fits(make_rows):
    X, Y = make_rows(50, 3, 2)
    weight = np.linspace(0.0, 2.0, 50)
    model = EntangledKernelRidge().fit(X[:, :1], Y)
    batches = ((X[rows], Y[rows], weight[rows]) for rows in np.array_split(np.arange(50), 7))
    expected = EntangledKernelRidge().fit(X, Y, weight).coef_
    np.testing.assert_allclose(model.fit_batches(batches).coef_, expected, rtol=1e-9)
    table = pd.DataFrame(np.hstack([X, Y]), columns=list("abcyz"))
    model.fit_batches([table[:30], table[30:]], targets=["y", "z"])
    np.testing.assert_allclose(model.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)
    for nothing in ([], [(X[:0], Y[:0])]):
        with pytest.raises(ValueError, match="batches must hold at least one row"):
            model.fit_batches(nothing)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("feature_map", [None, Nystroem(n_components=6, random_state=0)])
@pytest.mark.parametrize("kind", ["files", "list", "iterator"])
def test_a_resumed_fit_is_the_same_to_the_last_bit(files, tmp_path, monkeypatch, feature_map, kind):
    monkeypatch.setattr(waiting, "FEATURE_SAMPLE", 20)
    folder, X, Y = files
    make = {
        "files": lambda: read(folder),
        "list": lambda: batches_of(X, Y, 8),
        "iterator": lambda: iter(batches_of(X, Y, 8)),
    }[kind]
    whole = EntangledKernelRidge(feature_map).fit_batches(make())
    for stop in (1, 3, 4, 11, 12, 13, 25):
        path = tmp_path / f"{stop}.state"
        settings = {"checkpoint": path, "checkpoint_every": 4}
        with pytest.raises(Interrupted):
            EntangledKernelRidge(feature_map).fit_batches(make(), progress=stop_after(stop), **settings)
        taken = []
        again = EntangledKernelRidge(feature_map).fit_batches(make(), progress=taken.append, **settings)
        if path.exists() and (feature_map is None or stop > 3):
            assert len(taken) <= 27 - stop
        np.testing.assert_array_equal(again.coef_, whole.coef_)
        np.testing.assert_array_equal(again.intercept_, whole.intercept_)
        # Once more finds nothing left to do.
        taken.clear()
        done = EntangledKernelRidge(feature_map).fit_batches(make(), progress=taken.append, **settings)
        assert taken == []
        np.testing.assert_array_equal(done.coef_, whole.coef_)


def test_a_checkpoint_of_something_else(files, tmp_path):
    folder, X, Y = files
    path = tmp_path / "state"
    sampler = RBFSampler(n_components=5, random_state=0)
    EntangledKernelRidge(sampler).fit_batches(read(folder), checkpoint=path)
    other = read_batches(folder, inputs=list("abcd"), targets=list("yz"), batch_rows=9)
    with pytest.raises(CheckpointError, match="state is the checkpoint of another fit"):
        EntangledKernelRidge(sampler).fit_batches(other, checkpoint=path)
    with pytest.raises(CheckpointError, match="first rows, or the feature map"):
        EntangledKernelRidge(RBFSampler(n_components=5, random_state=1)).fit_batches(
            read(folder), checkpoint=path
        )
    path.unlink()
    EntangledKernelRidge().fit_batches(batches_of(X, Y, 50), checkpoint=path)
    with pytest.raises(CheckpointError, match="first rows, or the feature map"):
        EntangledKernelRidge().fit_batches(batches_of(X + 1, Y, 50), checkpoint=path)
    with pytest.raises(CheckpointError, match="first rows, or the feature map"):
        EntangledKernelRidge().fit_batches([], checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint_every must be a whole number of at least 1"):
        EntangledKernelRidge().fit_batches(batches_of(X, Y, 50), checkpoint=path, checkpoint_every=0)


def test_missing_value_in_batch_1000(make_rows, tmp_path):
    X, Y = make_rows(1100, 3, 2)
    broken = X.copy()
    broken[1000, 1] = np.nan
    model = EntangledKernelRidge()
    with pytest.raises(BatchError, match=r"batch 1001, after 1000 rows: .*NaN"):
        model.fit_batches(batches_of(broken, Y, 1), checkpoint=tmp_path / "state")
    expected = EntangledKernelRidge().fit(X[:1000], Y[:1000])
    np.testing.assert_allclose(model.solve().coef_, expected.coef_, rtol=1e-9)
    # The mended stream goes on from the batch that was refused.
    taken = []
    model.fit_batches(batches_of(X, Y, 1), checkpoint=tmp_path / "state", progress=taken.append)
    assert len(taken) == 100
    np.testing.assert_allclose(model.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)


def test_a_missing_value_that_waits_for_the_feature_map(files):
    """StandardScaler lets it through, so it is found at the end; the error names its rows all the same."""
    folder, X, Y = files
    path = folder / "1.parquet"
    parquet.write_table(break_value(parquet.read_table(path)), path)
    model = EntangledKernelRidge(StandardScaler())
    with pytest.raises(BatchError, match=r"1\.parquet, rows 17 to 24: .*refused, and left out: .*NaN"):
        model.fit_batches(read(folder))
    keep = np.r_[:116, 124:200]
    scaled = EntangledKernelRidge(StandardScaler()).fit(X[keep], Y[keep])
    np.testing.assert_allclose(model.solve().coef_, scaled.coef_, rtol=1e-9)


def break_value(table):
    values = table.column("b").to_pylist()
    return table.set_column(1, "b", pa.array([*values[:20], None, *values[21:]]))


def break_type(table):
    return table.set_column(1, "b", pa.array(["word"] * 30))


def break_schema(table):
    return table.drop_columns("b")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_value, r"1\.parquet, rows 17 to 24: .*NaN"),
        (break_type, r"1\.parquet, from row 1 on: column 'b' holds text"),
        (break_schema, r"1\.parquet, from row 1 on: has no column 'b'"),
        (None, r"1\.parquet, from row 1 on: cannot be read"),
    ],
)
def test_bad_input_halfway(files, tmp_path, damage, message):
    """The error names the file and its rows, and the model of all rows before it can be used."""
    folder, X, Y = files
    path = folder / "1.parquet"
    good = path.read_bytes()
    if damage is None:
        path.write_bytes(good[:-200])
    else:
        parquet.write_table(damage(parquet.read_table(path)), path)
    frame = pd.DataFrame(X, columns=list("abcd"))
    scaler = StandardScaler().fit(frame)
    model = EntangledKernelRidge(scaler)
    with pytest.raises(BatchError, match=message):
        model.fit_batches(read(folder), checkpoint=tmp_path / "state")
    n = 116 if damage is break_value else 100
    expected = EntangledKernelRidge(scaler).partial_fit(frame[:n], Y[:n])
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame), rtol=1e-9)
    assert read_checkpoint(tmp_path / "state").facts["n_rows"] == n


KILLED = """
    import os, random, signal, sys, time
    import pandas, pyarrow.parquet
    from sklearn.kernel_approximation import Nystroem
    from entangled_kernels import EntangledKernelRidge
    from entangled_kernels.streams import read_batches
    from entangled_kernels.streams.checkpoints import read_checkpoint
    from entangled_kernels.streams import waiting

    folder, checkpoint, result, seed = sys.argv[1:]
    random.seed(int(seed))
    waiting.FEATURE_SAMPLE = 20

    def fit():
        model = EntangledKernelRidge(Nystroem(n_components=15, random_state=0))
        reader = read_batches(folder, inputs=list("abcd"), targets=list("yz"), batch_rows=4)
        slow = lambda batch: time.sleep(0.005)
        model.fit_batches(reader, checkpoint=checkpoint, checkpoint_every=1, progress=slow)
        model.coef_.tofile(result)

    # A process for every fit, forked before any thread is started.
    def start():
        child = os.fork()
        if child == 0:
            status = 1
            try:
                fit()
                status = 0
            finally:
                os._exit(status)
        return child

    kills = finished = saved = 0
    while kills < 25:
        child = start()
        time.sleep(random.uniform(0.03, 0.4))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.path.exists(checkpoint):
            assert read_checkpoint(checkpoint).facts["position"]["done"] >= 1
            saved += 1
        if os.WIFSIGNALED(status):
            kills += 1
        else:
            assert status == 0, "the fit failed"
            finished += 1
            os.remove(checkpoint)
    assert os.waitpid(start(), 0)[1] == 0, "the last fit failed"
    print(kills, saved)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked")
def test_killed_at_any_moment(files, tmp_path, monkeypatch):
    """Killed 25 times, while reading, adding or writing: the model is that of one quiet run."""
    monkeypatch.setattr(waiting, "FEATURE_SAMPLE", 20)
    folder, _, _ = files
    reader = read_batches(folder, inputs=list("abcd"), targets=list("yz"), batch_rows=4)
    quiet = EntangledKernelRidge(Nystroem(n_components=15, random_state=0)).fit_batches(reader)
    state, coef, seed = tmp_path / "state" / "fit", tmp_path / "coef", str(random.randrange(2**32))
    state.parent.mkdir()
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), str(state), str(coef), seed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    kills, saved = map(int, done.stdout.split())
    assert kills == 25
    assert saved >= 10
    np.testing.assert_array_equal(np.fromfile(coef), quiet.coef_.ravel())
    assert [path.name for path in state.parent.iterdir()] == ["fit"]


def test_resuming_with_other_batches_is_refused(make_rows, tmp_path):
    X, Y = make_rows(200, 3, 2)

    def cut(n_rows, height):
        return [(X[i : i + height], Y[i : i + height]) for i in range(0, n_rows, height)]

    path = tmp_path / "state"
    EntangledKernelRidge().fit_batches(cut(100, 20), checkpoint=path)
    with pytest.raises(CheckpointError, match=r"the first 5 batches held 100 rows .* and hold 200 now"):
        EntangledKernelRidge().fit_batches(cut(200, 40), checkpoint=path)
    resumed = EntangledKernelRidge().fit_batches(cut(200, 20), checkpoint=path)
    assert resumed.n_samples_seen_ == 200
    np.testing.assert_allclose(resumed.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)
