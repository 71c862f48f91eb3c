import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.learning import Moments
from entangled_kernels.streams import BatchError, read_batches, row_stream
from entangled_kernels.streams.checkpoints import (
    Checkpoint,
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
)


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
    model = EntangledKernelRidge().fit_batches(
        read(folder), progress=lambda batch: seen.append(len(batch.X))
    )
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
    monkeypatch.setattr(row_stream, "FEATURE_SAMPLE", 20)
    folder, X, Y = files
    make = {
        "files": lambda: read(folder),
        "list": lambda: batches_of(X, Y, 8),
        "iterator": lambda: iter(batches_of(X, Y, 8)),
    }[kind]
    whole = EntangledKernelRidge(feature_map).fit_batches(make())
    for stop in (1, 4, 12, 25):
        path = tmp_path / f"{stop}.state"
        settings = {"checkpoint": path, "checkpoint_every": 4}
        with pytest.raises(Interrupted):
            EntangledKernelRidge(feature_map).fit_batches(
                make(), progress=stop_after(stop), **settings
            )
        taken = []
        again = EntangledKernelRidge(feature_map).fit_batches(
            make(), progress=taken.append, **settings
        )
        if path.exists() and (feature_map is None or stop > 3):
            assert len(taken) <= 27 - stop
        np.testing.assert_array_equal(again.coef_, whole.coef_)
        np.testing.assert_array_equal(again.intercept_, whole.intercept_)
        # Once more finds nothing left to do.
        taken.clear()
        done = EntangledKernelRidge(feature_map).fit_batches(
            make(), progress=taken.append, **settings
        )
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
        EntangledKernelRidge().fit_batches(
            batches_of(X, Y, 50), checkpoint=path, checkpoint_every=0
        )


def test_a_fit_continues_once_a_refused_batch_is_corrected(make_rows, tmp_path):
    X, Y = make_rows(110, 3, 2)
    broken = X.copy()
    broken[90, 1] = np.nan
    model = EntangledKernelRidge()
    with pytest.raises(BatchError, match=r"batch 91, after 90 rows: .*NaN"):
        model.fit_batches(batches_of(broken, Y, 1), checkpoint=tmp_path / "state")
    expected = EntangledKernelRidge().fit(X[:90], Y[:90])
    np.testing.assert_allclose(model.solve().coef_, expected.coef_, rtol=1e-9)
    taken = []
    model.fit_batches(batches_of(X, Y, 1), checkpoint=tmp_path / "state", progress=taken.append)
    assert len(taken) == 20
    np.testing.assert_allclose(model.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)


def test_a_missing_value_that_waits_for_the_feature_map(files):
    """StandardScaler lets it through, so it is found at the end; the error names its rows all the same."""
    folder, X, Y = files
    path = folder / "1.parquet"
    parquet.write_table(break_value(parquet.read_table(path)), path)
    model = EntangledKernelRidge(StandardScaler())
    with pytest.raises(
        BatchError, match=r"1\.parquet, rows 17 to 24: .*refused, and left out: .*NaN"
    ):
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
    import os, random, signal, sys
    import pandas, pyarrow.parquet
    from sklearn.kernel_approximation import Nystroem
    from entangled_kernels import EntangledKernelRidge
    from entangled_kernels.streams import read_batches
    from entangled_kernels.streams.checkpoints import read_checkpoint
    from entangled_kernels.streams import row_stream

    folder, checkpoint, result = sys.argv[1:]
    random.seed(0)
    row_stream.FEATURE_SAMPLE = 20

    def fit():
        model = EntangledKernelRidge(Nystroem(n_components=15, random_state=0))
        reader = read_batches(folder, inputs=list("abcd"), targets=list("yz"), batch_rows=8)
        model.fit_batches(reader, checkpoint=checkpoint, checkpoint_every=1)
        model.coef_.tofile(result)

    # A process for every fit, forked before any thread is started, and killed before so many lines
    # have run.
    def start(last_line):
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            if "entangled_kernels" not in frame.f_code.co_filename:
                return None
            lines += event == "line"
            if lines == last_line:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                sys.settrace(trace)
                fit()
                sys.settrace(None)
                os.write(write_end, str(lines).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            total = pipe.read()
        return os.waitpid(child, 0)[1], total

    status, total = start(last_line=-1)
    assert status == 0, "the first fit failed"
    os.remove(checkpoint)
    kills = saved = 0
    while kills < 12:
        status, _ = start(random.randrange(1, int(total) // 2))
        if os.path.exists(checkpoint):
            assert read_checkpoint(checkpoint).facts["position"]["done"] >= 1
            saved += 1
        if os.WIFSIGNALED(status):
            kills += 1
        else:
            assert status == 0, "the fit failed"
            os.remove(checkpoint)
    assert start(last_line=-1)[0] == 0, "the last fit failed"
    print(kills, saved)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked")
@pytest.mark.slow
def test_killed_at_any_moment(files, tmp_path, monkeypatch):
    """Killed 12 times, while reading, adding or writing: the model is that of one quiet run."""
    monkeypatch.setattr(row_stream, "FEATURE_SAMPLE", 20)
    folder, _, _ = files
    reader = read_batches(folder, inputs=list("abcd"), targets=list("yz"), batch_rows=8)
    quiet = EntangledKernelRidge(Nystroem(n_components=15, random_state=0)).fit_batches(reader)
    state, coef = tmp_path / "state" / "fit", tmp_path / "coef"
    state.parent.mkdir()
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), str(state), str(coef)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kills, saved = map(int, done.stdout.split())
    assert kills == 12
    assert saved >= 5
    np.testing.assert_array_equal(np.fromfile(coef), quiet.coef_.ravel())
    assert [path.name for path in state.parent.iterdir()] == ["fit"]


def test_resuming_with_other_batches_is_refused(make_rows, tmp_path):
    X, Y = make_rows(200, 3, 2)

    def cut(n_rows, height):
        return [(X[i : i + height], Y[i : i + height]) for i in range(0, n_rows, height)]

    path = tmp_path / "state"
    EntangledKernelRidge().fit_batches(cut(100, 20), checkpoint=path)
    with pytest.raises(
        CheckpointError, match=r"the first 5 batches held 100 rows .* and hold 200 now"
    ):
        EntangledKernelRidge().fit_batches(cut(200, 40), checkpoint=path)
    resumed = EntangledKernelRidge().fit_batches(cut(200, 20), checkpoint=path)
    assert resumed.n_samples_seen_ == 200
    np.testing.assert_allclose(resumed.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)


def refused_at(folder, tmp_path, **settings):
    """A fit that stops at a missing value in rows 17 to 24 of the second file, with its checkpoint."""
    path = folder / "1.parquet"
    good = path.read_bytes()
    parquet.write_table(break_value(parquet.read_table(path)), path)
    with pytest.raises(BatchError, match=r"1\.parquet, rows 17 to 24"):
        EntangledKernelRidge(**settings).fit_batches(read(folder), checkpoint=tmp_path / "state")
    return path, good


def test_later_files_may_come_and_go(files, tmp_path):
    folder, X, Y = files
    path, good = refused_at(folder, tmp_path)
    path.write_bytes(good)
    (folder / "2.parquet").rename(folder / "3.parquet")
    model = EntangledKernelRidge().fit_batches(read(folder), checkpoint=tmp_path / "state")
    np.testing.assert_allclose(model.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)


def with_value(table, row, value):
    values = table.column("b").to_pylist()
    values[row] = value
    return table.set_column(1, "b", pa.array(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("a finished file", r"0\.parquet: the values are not those that were read"),
        (
            "rows that were read",
            r"1\.parquet, rows 1 to 16: the values are not those that were read",
        ),
        ("fewer rows", r"1\.parquet, rows 1 to 16: the values are not those that were read"),
        ("no such file", r"1\.parquet, where reading was interrupted, is not among the files"),
        ("another file before it", r"the files before .*1\.parquet are not those"),
    ],
)
def test_what_was_read_may_not_change(files, tmp_path, change, message):
    folder, _, _ = files
    path, good = refused_at(folder, tmp_path)
    path.write_bytes(good)
    first = folder / "0.parquet"
    if change == "a finished file":
        size = first.stat().st_size
        content = bytearray(first.read_bytes())
        content[size // 3] ^= 1
        first.write_bytes(content)
        assert first.stat().st_size == size
    elif change == "rows that were read":
        parquet.write_table(with_value(parquet.read_table(path), 3, 7.5), path)
    elif change == "fewer rows":
        parquet.write_table(parquet.read_table(path).slice(0, 12), path)
    elif change == "no such file":
        path.rename(folder / "elsewhere.parquet")
    else:
        (folder / "00.parquet").write_bytes(good)
    reader = read(folder)
    if change == "a finished file":
        # Its first rows are still what they were.
        assert next(iter(reader)).X.shape == (8, 4)
    with pytest.raises((CheckpointError, BatchError), match=message):
        EntangledKernelRidge().fit_batches(reader, checkpoint=tmp_path / "state")


@pytest.mark.parametrize("kind", [list, iter])
def test_values_of_own_batches_may_not_change(make_rows, tmp_path, kind):
    X, Y = make_rows(60, 3, 2)
    path = tmp_path / "state"
    EntangledKernelRidge().fit_batches(kind(batches_of(X[:40], Y[:40], 10)), checkpoint=path)
    other = Y.copy()
    other[25, 1] += 1.0
    with pytest.raises(CheckpointError, match="the first 4 batches: the values are not those"):
        EntangledKernelRidge().fit_batches(kind(batches_of(X, other, 10)), checkpoint=path)
    resumed = EntangledKernelRidge().fit_batches(kind(batches_of(X, Y, 10)), checkpoint=path)
    np.testing.assert_allclose(resumed.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(position=None),
        lambda facts: facts["position"].update(done="2"),
        lambda facts: facts["position"].update(digests=[1]),
        lambda facts: facts["position"].update(digests={"a": 1}),
        lambda facts: facts["position"].update(source={"file": "a"}),
        lambda facts: facts["position"].update(source={"file": 3, "start": 0, "stop": 1}),
        lambda facts: facts["position"].pop("checksum"),
        lambda facts: facts.update(parts=[5]),
        lambda facts: facts.update(parts=[0, 0]),
        lambda facts: facts.update(parts="0"),
        lambda facts: facts.update(n_rows=None),
    ],
)
def test_crafted_facts_are_refused(make_rows, tmp_path, change):
    X, Y = make_rows(60, 3, 2)
    path = tmp_path / "state"
    EntangledKernelRidge().fit_batches(batches_of(X, Y, 10), checkpoint=path)
    saved = read_checkpoint(path)
    change(saved.facts)
    write_checkpoint(path, saved)
    with pytest.raises(CheckpointError, match="is not a checkpoint of"):
        EntangledKernelRidge().fit_batches(batches_of(X, Y, 10), checkpoint=path)


def test_moments_of_other_columns_are_refused(make_rows, tmp_path):
    X, Y = make_rows(60, 3, 2)
    path = tmp_path / "state"
    EntangledKernelRidge().fit_batches(batches_of(X, Y, 10), checkpoint=path)
    saved = read_checkpoint(path)
    other = Moments.from_arrays(X[:, :2], Y)
    write_checkpoint(path, Checkpoint([other], saved.facts, saved.arrays))
    with pytest.raises(CheckpointError, match="its parts do not fit"):
        EntangledKernelRidge().fit_batches(batches_of(X, Y, 10), checkpoint=path)


WRITER = """
    import sys, time
    import numpy as np
    from entangled_kernels import EntangledKernelRidge

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    batches = [(X[i : i + 2], Y[i : i + 2]) for i in range(0, 100, 2)]
    for _ in range(2):
        EntangledKernelRidge().fit_batches(batches, checkpoint=sys.argv[1], checkpoint_every=1)
"""


@pytest.mark.parametrize(
    "model",
    [
        EntangledKernelRidge(),
        EntangledKernelRidgeCV(None, cv=3, param_grid={"shrinkage": (0.5, 1.0)}),
    ],
)
def test_missing_targets_and_samples_survive_an_interruption(make_rows, tmp_path, rng, model):
    X, Y = make_rows(90, 3, 2)
    holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    batches = [(X[rows], holes[rows]) for rows in np.array_split(np.arange(90), 9)]
    whole = clone(model).fit_batches(batches)
    path = tmp_path / "state"

    def broken():
        yield from batches[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(model).fit_batches(broken(), checkpoint=path, checkpoint_every=1)
    resumed = clone(model).fit_batches(batches, checkpoint=path)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    np.testing.assert_array_equal(resumed.residual_covariance_, whole.residual_covariance_)
    np.testing.assert_array_equal(resumed.novelty(3.0 * X), whole.novelty(3.0 * X))


def test_two_processes_may_share_a_checkpoint(tmp_path):
    """Neither deletes what the other is writing; each finds a whole checkpoint or none."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path / "state")]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert read_checkpoint(tmp_path / "state").facts["n_rows"] == 100
