import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from sklearn.utils import Bunch

from entangled_kernels.streams import Batch, BatchError, Source, as_batch, read_batches

WRITERS = {
    "parquet": lambda table, path: parquet.write_table(table, path, row_group_size=7),
    "arrow": lambda table, path: write_arrow(table, path),
    "csv": lambda table, path: csv.write_csv(table, path),
    "csv.gz": lambda table, path: path.write_bytes(
        gzip.compress(table.to_pandas().to_csv(index=False).encode())
    ),
    "tsv": lambda table, path: table.to_pandas().to_csv(path, sep="\t", index=False),
}


def write_arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def make_table(rng, n):
    return pa.table(
        {
            "a": rng.normal(size=n),
            "count": rng.integers(0, 100, size=n),
            "kind": rng.choice(["round", "square"], size=n),
            "y": rng.normal(size=n),
            "w": rng.uniform(size=n),
        }
    )


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("batch_rows", [1, 5, 7, 100])
def test_all_rows_in_their_order(rng, tmp_path, suffix, batch_rows):
    tables = {name: make_table(rng, n) for name, n in (("one", 23), ("two", 7))}
    for name, table in tables.items():
        WRITERS[suffix](table, tmp_path / f"{name}.{suffix}")
    reader = read_batches(
        tmp_path, inputs=["count", "a"], targets=["y"], weight="w", batch_rows=batch_rows
    )
    batches = list(reader)
    whole = pd.concat([tables["one"].to_pandas(), tables["two"].to_pandas()], ignore_index=True)
    X = pd.concat([batch.X for batch in batches], ignore_index=True)
    pd.testing.assert_frame_equal(X, whole[["count", "a"]].astype(float))
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in batches])[:, 0], whole["y"])
    np.testing.assert_array_equal(
        np.concatenate([batch.sample_weight for batch in batches]), whole["w"]
    )
    rows = dict.fromkeys(("one", "two"), 0)
    for batch in batches:
        name = next(name for name in rows if name in batch.source.file)
        assert (batch.source.start, batch.source.stop) == (rows[name], rows[name] + len(batch.X))
        rows[name] = batch.source.stop
    assert rows == {"one": 23, "two": 7}
    assert reader.n_rows == (30 if suffix in ("parquet", "arrow") else None)
    assert reader.n_bytes == sum(file.stat().st_size for file in tmp_path.iterdir())


@pytest.mark.parametrize("suffix", WRITERS)
def test_going_on_gives_the_same_batches(rng, tmp_path, suffix):
    for name, n in (("one", 23), ("two", 17)):
        WRITERS[suffix](make_table(rng, n), tmp_path / f"{name}.{suffix}")
    reader = read_batches(tmp_path, targets=["y"], batch_rows=5)
    batches = list(reader)
    for number, batch in enumerate(batches):
        rest = list(reader.after(batch.source))
        assert [other.source for other in rest] == [other.source for other in batches[number + 1 :]]
        for one, other in zip(rest, batches[number + 1 :], strict=True):
            pd.testing.assert_frame_equal(one.X, other.X)
    with pytest.raises(BatchError, match="is not among the files"):
        list(reader.after(Source("elsewhere.csv", 0, 5)))


def test_which_columns(rng, tmp_path):
    parquet.write_table(make_table(rng, 10), tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    reader = read_batches(path, targets="y")
    assert reader.inputs == ("a", "count", "kind", "w")
    assert set(next(iter(reader)).X["kind"]) == {"round", "square"}
    assert next(iter(read_batches(path, inputs=["a"]))).y is None
    with pytest.raises(BatchError, match=r"has no column 'z'; it has \['a', 'count'"):
        read_batches(path, inputs=["z"])
    with pytest.raises(BatchError, match="column 'kind' must hold numbers, it holds text"):
        read_batches(path, targets=["kind"])
    with pytest.raises(ValueError, match=r"must differ, got \['y'\]"):
        read_batches(path, inputs=["y"], targets=["y"])
    with pytest.raises(ValueError, match="batch_rows must be a whole number of at least 1"):
        read_batches(path, targets=["y"], batch_rows=0)


def test_which_files(rng, tmp_path):
    table = make_table(rng, 4)
    for name in ("b/2.parquet", "a/1.parquet", ".hidden/3.parquet", "_log/4.parquet"):
        (tmp_path / name).parent.mkdir()
        parquet.write_table(table, tmp_path / name)
    (tmp_path / "notes.txt").write_text("not a table")
    names = lambda path: [file[len(str(tmp_path)) + 1 :] for file in read_batches(path).files]  # noqa: E731
    assert names(tmp_path) == names(f"{tmp_path}/[ab]/*.parquet") == ["a/1.parquet", "b/2.parquet"]
    assert names([tmp_path / "b", tmp_path / "a/1.parquet"]) == ["b/2.parquet", "a/1.parquet"]
    with pytest.raises(BatchError, match=r"nothing.parquet: no such file"):
        read_batches(tmp_path / "nothing.parquet")
    with pytest.raises(BatchError, match="the name must end in one of"):
        read_batches(tmp_path / "notes.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BatchError, match=r"the folder holds no \.csv, .*\.parquet"):
        read_batches(tmp_path / "empty")
    with pytest.raises(BatchError, match="empty list"):
        read_batches([])


def test_numbers_of_all_types(tmp_path):
    columns = {
        "float32": pa.array([1.5, None], pa.float32()),
        "bool": pa.array([True, False]),
        "decimal": pa.array([1, 2], pa.decimal128(5, 2)),
        "uint8": pa.array([1, None], pa.uint8()),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    X = next(iter(read_batches(tmp_path / "t.parquet"))).X
    np.testing.assert_array_equal(X, [[1.5, 1, 1, 1], [np.nan, 0, 2, np.nan]])
    assert (
        next(iter(read_batches(tmp_path / "t.parquet", inputs=["float32"]))).X.dtypes.iloc[0]
        == np.float32
    )
    parquet.write_table(pa.table({"t": pa.array([0], pa.timestamp("s"))}), tmp_path / "t.parquet")
    with pytest.raises(BatchError, match=r"must hold numbers or text, got timestamp\[ms\] in 't'"):
        read_batches(tmp_path / "t.parquet")


def test_batch_size_from_memory(rng, tmp_path):
    parquet.write_table(make_table(rng, 4), tmp_path / "t.parquet")
    rows = [
        read_batches(tmp_path, targets=["y"], max_memory=size).batch_rows for size in (1, 1e6, 1e12)
    ]
    assert rows == [256, 6250, 65_536]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_a_file_that_differs(rng, tmp_path, suffix):
    """The batches of the files before it are given out, and the error names it."""
    table = make_table(rng, 10)
    WRITERS[suffix](table, tmp_path / f"1.{suffix}")
    words = table.set_column(0, "a", pa.array(["word"] * 10))
    for wrong, message in (
        (table.drop_columns("a"), "has no column 'a'"),
        (words, "column 'a' holds text, before it held number"),
    ):
        WRITERS[suffix](wrong, tmp_path / f"2.{suffix}")
        read = []
        with pytest.raises(BatchError, match=rf"2\.{suffix}, from row 1 on: {message}"):
            read.extend(read_batches(tmp_path, targets=["y"], batch_rows=4))
        batches = iter(read_batches(tmp_path, targets=["y"], batch_rows=4))
        assert [len(next(batches).X) for _ in range(3)] == [4, 4, 2]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "csv.gz"])
def test_a_file_cut_short(rng, tmp_path, suffix):
    table = make_table(rng, 1000)
    for name in "12":
        WRITERS[suffix](table, tmp_path / f"{name}.{suffix}")
    second = tmp_path / f"2.{suffix}"
    # Within the line "number," so that columns are missing.
    content = second.read_bytes()[: -50 if suffix.endswith("gz") else -80]
    second.write_bytes(content[: content.rindex(b",")] if suffix == "csv" else content)
    with pytest.raises(BatchError, match=rf"2\.{suffix}, from row \d+ on: cannot be read"):
        list(read_batches(tmp_path, targets=["y"], batch_rows=100))
    batches = iter(read_batches(tmp_path, targets=["y"], batch_rows=100))
    assert sum(len(next(batches).X) for _ in range(10)) == 1000


def test_a_word_among_the_numbers_of_a_csv(tmp_path):
    lines = [f"{i},{i / 7}" for i in range(200_000)]
    lines[150_000] = "word,1"
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    batches = []
    with pytest.raises(BatchError, match=r"t\.csv, from row \d+ on: cannot be read: .*'word'"):
        batches.extend(read_batches(tmp_path / "t.csv", targets=["y"], batch_rows=1000))
    rest = iter(read_batches(tmp_path / "t.csv", targets=["y"], batch_rows=1000))
    assert sum(len(next(rest).X) for _ in range(50)) == 50_000


def test_whole_numbers_followed_by_others(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,2\n" * 300_000 + "1.5,2\n")
    *_, last = read_batches(tmp_path / "t.csv", targets=["y"])
    assert last.X["x"].iloc[-1] == 1.5


def test_what_counts_as_a_batch():
    X, y, w = np.ones((2, 2)), np.ones(2), np.ones(2)
    assert as_batch((X, y)) == Batch(X, y)
    assert as_batch([X, y, w]).sample_weight is w
    assert as_batch(Bunch(data=X, target=y)).y is y
    frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})
    batch = as_batch(frame, targets=["b"])
    assert list(batch.X.columns) == ["a", "c"]
    assert list(batch.y.columns) == ["b"]
    with pytest.raises(TypeError, match="targets must name the columns"):
        as_batch(frame)
    batch = as_batch((X, y, None, w))
    assert batch.sample_weight is None
    assert batch.groups is w
    assert as_batch(Bunch(data=X, target=y, groups=w)).groups is w
    batch = as_batch(frame, targets=["b"], groups="a")
    assert list(batch.X.columns) == ["c"]
    assert batch.groups.tolist() == [1.0]
    with pytest.raises(ValueError, match="groups must name a column of every batch, got 'd'"):
        as_batch(frame, targets=["b"], groups="d")
    with pytest.raises(TypeError, match="got tuple of 5 items"):
        as_batch((X, y, w, w, w))
    with pytest.raises(TypeError, match="got ndarray"):
        as_batch(X)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_and_truth_values_of_text(tmp_path, delimiter):
    lines = [
        delimiter.join(row)
        for row in (["a", "on", "y"], ["1.5", "true", "2"], ["2.5", "false", "3.5"])
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    (batch,) = read_batches(tmp_path, targets=["y"])
    np.testing.assert_array_equal(batch.X, [[1.5, 1.0], [2.5, 0.0]])
    np.testing.assert_array_equal(batch.y, [[2.0], [3.5]])
