"""Tables as people have them: every odd file is refused with its place named."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from entangled_kernels.io import TableError, read_table, require_numbers, table_kind, write_table
from entangled_kernels.streams import KINDS, BatchError, TextFormat, table_columns


@pytest.mark.parametrize(
    "content",
    [
        "a b,c\r\n1,2.5\r\n3,4.5\r\n",
        "\ufeffa b,c\n1,2.5\n3,4.5\n",
        '"a b","c"\n1,2.5\n3,"4.5"\n',
        "a b , c\n1,2.5\n3, 4.5",
        "a b;c\n1;2.5\n3;4.5\n",
        "a b\tc\n1\t2.5\n3\t4.5\n",
        "a b,c,\n1,2.5,\n3,4.5,\n",
        "\n\na b,c\n1,2.5\n\n3,4.5\n\n",
        "a b,c\r1,2.5\r3,4.5\r",
    ],
    ids=[
        "windows",
        "bom",
        "quotes",
        "spaces",
        "semicolons",
        "tabs",
        "trailing",
        "blank",
        "old mac",
    ],
)
def test_dialects_of_csv(file, content):
    frame = read_table(file(content))
    assert frame.to_dict("list") == {"a b": [1, 3], "c": [2.5, 4.5]}


def test_compressed_text(file):
    assert read_table(file(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz")).to_dict("list") == {
        "a": [1],
        "b": [2],
    }
    assert read_table(file(gzip.compress(b"a\tb\n1\t2\n"), "t.tsv.gz")).to_dict("list") == {
        "a": [1],
        "b": [2],
    }


def test_two_hundred_columns(file):
    names = [f"sensor {i}" for i in range(200)]
    rows = np.random.default_rng(0).normal(size=(30, 200))
    path = file(
        ",".join(names) + "\n" + "\n".join(",".join(map(repr, row.tolist())) for row in rows)
    )
    frame = read_table(path)
    assert list(frame.columns) == names
    assert np.array_equal(require_numbers(frame, names, path).to_numpy(), rows)


def test_type_of_a_column_is_found_from_all_its_cells(file):
    """A word after two megabytes of numbers makes the column text, and is found."""
    path = file("a,b\n" + "1,2\n" * 500_000 + "1,none yet\n")
    frame = read_table(path)
    with pytest.raises(TableError, match=r"row 500001, column 'b': 'none yet' is no number"):
        require_numbers(frame, ["a", "b"], path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("\n\n", "no line that could be a header"),
        ("a,b", "no line that could be a header|no rows"),
        ("a,b\n", "the table has a header but no rows"),
        ("a,b\n1,2\n3,4,5\n", "row 2: 3 cells where the header has 2"),
        ("a,b\n1,2\n3\n", "row 2: 1 cell where the header has 2"),
        ("größe,b\n1,2\n".encode("latin1"), "the file is not text in UTF-8"),
        (
            "a,b\ngroß,2\n".encode("latin1"),
            "column 'a': text that is not in UTF-8; name its encoding",
        ),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "the file is not text in UTF-8"),
    ],
)
def test_odd_text_is_refused(file, content, problem):
    path = file(content)
    with pytest.raises(TableError, match=problem) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather", "npz"])
@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", b"PK\x03\x04", b"PAR1PAR1", b"ARROW1\0\0" + bytes(40)]
)
def test_files_of_another_kind_are_refused(file, kind, content):
    with pytest.raises(
        TableError, match=r"table.*: the file is not a whole (Parquet|Arrow|NPZ) file"
    ):
        read_table(file(content, f"table.{kind}"))


@pytest.mark.parametrize("kind", ["parquet", "arrow", "npz"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_files_cut_short_are_refused(tmp_path, kind, share):
    path = tmp_path / f"table.{kind}"
    write_table(
        pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=list("abcd")), path
    )
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(TableError, match="the file is not a whole"):
        read_table(path)


def test_arrow_streams_are_read(tmp_path):
    table = pa.table({"a": [1.0, 2.0]})
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    assert list(read_table(tmp_path / "t.arrow")["a"]) == [1.0, 2.0]


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_npz_of_matrices(file):
    frame = read_table(
        file(npz(X=np.arange(6.0).reshape(3, 2), y=np.arange(3, dtype=">i4")), "t.npz")
    )
    assert frame.to_dict("list") == {"X_0": [0, 2, 4], "X_1": [1, 3, 5], "y": [0, 1, 2]}


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"a": np.ones((2, 2, 2))}, "'a' has 3"),
        ({"a": np.ones(2), "b": np.ones(3)}, "'a' has 2 and 'b' 3"),
        ({"a": np.array([{}, {}])}, "not a whole NPZ file of numbers and text"),
    ],
)
def test_npz_that_is_no_table(file, arrays, problem):
    with pytest.raises(TableError, match=problem):
        read_table(file(npz(**arrays), "t.npz"))


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nothing.csv")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"pandas and pyarrow: pip install \"entangled-kernels\[data\]\""
    ):
        read_table(tmp_path / "t.csv")


def test_names_that_tell_no_kind(tmp_path):
    assert table_kind("a/b.CSV") == "csv"
    with pytest.raises(TableError, match=r"must end in one of \.csv.*got '\.xlsx'; use CSV"):
        read_table(tmp_path / "book.xlsx")
    with pytest.raises(TableError, match=r"got '\.xlsx'; use CSV"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "book.xlsx")
    with pytest.raises(TableError, match=r"got ''"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "plain")
    with pytest.raises(TableError, match=r"got '\.gz'"):
        table_kind("a.parquet.gz")


@pytest.mark.parametrize("ending", KINDS)
def test_kinds_are_those_of_streams(ending):
    assert table_kind(f"t{ending}") == KINDS[ending]


def test_a_name_may_stand_for_several_columns_that_nobody_needs(file):
    path = file("a,b, a\n1,2,x\n3,4,y\n")
    frame = read_table(path)
    assert list(frame.columns) == ["a", "b", "a"]
    assert require_numbers(frame, ["b"], path).to_dict("list") == {"b": [2.0, 4.0]}
    with pytest.raises(
        TableError, match=r"2 columns have the name 'a' \(columns 1 and 3\); rename or exclude"
    ):
        require_numbers(frame, ["a", "b"], path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_other_encodings_and_decimal_commas(file, encoding):
    path = file("größe;b\n1,5;é\n3;x\n".encode(encoding))
    text_format = TextFormat(encoding="cp1252") if encoding == "cp1252" else None
    assert read_table(path, text_format).to_dict("list") == {"größe": [1.5, 3.0], "b": ["é", "x"]}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("read", [read_table, table_columns])
def test_random_bytes_are_refused_with_a_sentence(read, seed, file, capfd):
    path = file(np.random.default_rng(seed).bytes(50 if seed % 2 else 500))
    with pytest.raises((TableError, BatchError), match=r"table\.csv"):
        read(path)
    assert "Traceback" not in "".join(capfd.readouterr())
