import gzip
import io
import os
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.io import TableError, append_table, read_table, text_appender, write_table

KINDS = ["csv", "tsv", "parquet", "pq", "arrow", "feather", "npz"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_read(kind, tmp_path):
    frame = pd.DataFrame(
        {
            "net load": [0.1, 1 / 3, -1e300],
            "n": [1, 2, 3],
            "file": ["é", "b,c", 'd "e"'],
            "on": [True, False, True],
        }
    )
    path = tmp_path / f"table.{kind}"
    write_table(frame, path)
    again = read_table(path)
    pd.testing.assert_frame_equal(again, frame, check_exact=True, check_dtype=False)
    assert again["net load"].dtype == np.float64
    assert list(tmp_path.iterdir()) == [path]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
@settings(max_examples=20)
def test_numbers_keep_every_digit(tmp_path_factory, numbers):
    for kind in KINDS:
        path = tmp_path_factory.getbasetemp() / f"digits.{kind}"
        write_table(pd.DataFrame({"a": numbers, "b": 1.5}), path)
        assert np.array_equal(read_table(path)["a"].to_numpy(dtype=float), np.array(numbers))


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "npz"])
def test_full_disk_keeps_the_old_file(tmp_path, monkeypatch, kind):
    path = tmp_path / f"table.{kind}"
    write_table(pd.DataFrame({"a": [1.0]}), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_table(pd.DataFrame({"a": [2.0]}), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_appears_when_it_is_complete(tmp_path):
    with pytest.raises(RuntimeError), append_table(tmp_path / "t.csv") as append:  # noqa: PT012
        append(pd.DataFrame({"a": [1]}))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_pieces_make_one_table(tmp_path, kind):
    frame = pd.DataFrame({"a": [0.1, 1 / 3, -5.0], "b": ["x", "=y", "z"]})
    with append_table(tmp_path / f"pieces.{kind}") as append:
        append(frame[:1])
        append(frame[1:])
    write_table(frame, tmp_path / f"whole.{kind}")
    pieces, whole = (read_table(tmp_path / f"{name}.{kind}") for name in ("pieces", "whole"))
    pd.testing.assert_frame_equal(pieces, whole, check_exact=True)


def test_npz_is_not_written_in_pieces(tmp_path):
    with (
        pytest.raises(TableError, match="cannot be written piece by piece"),
        append_table(tmp_path / "t.npz"),
    ):
        pass


FORMULAS = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "='http://x'!A1"]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_text_is_no_formula(tmp_path, text, ending):
    """In names and in cells of text; numbers, dates and other text stay as they are."""
    frame = pd.DataFrame(
        {text: [-1.5, 2.0], "b": [text, "a=b"], "c": ["'q", None], "d": [date(2021, 1, 2)] * 2}
    )
    frame["e"], frame["f"] = (
        pd.Categorical([text, "x"]),
        pd.to_datetime(["2021-01-02", "2021-01-03"]),
    )
    write_table(frame, tmp_path / f"t.{ending}")
    # As spreadsheets read it: every cell is text, and what begins with a quote is never a formula.
    cells = pd.read_csv(
        tmp_path / f"t.{ending}", sep="," if ending == "csv" else "\t", header=None, dtype=str
    )
    assert cells.values.tolist() == [
        [f"'{text}", "b", "c", "d", "e", "f"],
        ["-1.5", f"'{text}", "'q", "2021-01-02", f"'{text}", "2021-01-02"],
        ["2.0", "a=b", pytest.approx(np.nan, nan_ok=True), "2021-01-02", "x", "2021-01-03"],
    ]
    assert frame.columns[0] == text
    assert frame["b"][0] == text


@pytest.mark.parametrize("kind", ["parquet", "arrow", "npz"])
def test_other_kinds_keep_text_as_it_is(tmp_path, kind):
    write_table(pd.DataFrame({"-a": ["=1+1"]}), tmp_path / f"t.{kind}")
    assert read_table(tmp_path / f"t.{kind}").to_dict("list") == {"-a": ["=1+1"]}


def test_the_quote_is_read_as_it_stands(tmp_path):
    write_table(pd.DataFrame({"-a": ["=1+1"]}), tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"'-a": ["'=1+1"]}


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_compressed_text_is_the_same_text(tmp_path, kind):
    frame = pd.DataFrame({"a": [0.1, 1 / 3], "b": ["=1", "größe"]})
    write_table(frame, tmp_path / f"t.{kind}")
    for name in ("t", "u"):
        write_table(frame, tmp_path / f"{name}.{kind}.gz")
    packed = (tmp_path / f"t.{kind}.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / f"t.{kind}").read_bytes()
    assert packed == (tmp_path / f"u.{kind}.gz").read_bytes()


def test_text_goes_to_any_stream(tmp_path):
    frame, stream = pd.DataFrame({"a": [0.5, 1.5]}), io.StringIO()
    append = text_appender(stream)
    append(frame)
    append(frame)
    assert stream.getvalue() == "a\n0.5\n1.5\n0.5\n1.5\n"
