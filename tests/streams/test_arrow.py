import sys
from itertools import pairwise

import pyarrow as pa
import pytest
from pyarrow import parquet

from entangled_kernels.streams.arrow import (
    bytes_per_row,
    column_kinds,
    cut_tables,
    need_arrow,
    open_table,
    unreadable,
)
from entangled_kernels.streams.batch import BatchError


def test_rows_are_cut_to_one_height():
    ends = (0, 3, 3, 10, 11)
    tables = [pa.table({"a": list(range(*pair))}) for pair in pairwise(ends)]
    cut = list(cut_tables(tables, 4))
    assert [table.num_rows for table in cut] == [4, 4, 3]
    assert pa.concat_tables(cut).column("a").to_pylist() == list(range(11))


def test_kinds_of_columns():
    schema = pa.schema(
        {
            "count": pa.int8(),
            "share": pa.float32(),
            "flag": pa.bool_(),
            "price": pa.decimal128(5, 2),
            "name": pa.string(),
            "kind": pa.dictionary(pa.int8(), pa.string()),
            "nothing": pa.null(),
            "day": pa.date32(),
        }
    )
    kinds = column_kinds(schema)
    assert list(kinds.values()) == ["number"] * 4 + ["text"] * 2 + ["number", "date32[day]"]
    twice = pa.schema([("a", pa.int8()), ("b", pa.int8()), ("a", pa.string())])
    assert column_kinds(twice) == {"a": "several columns", "b": "number"}


@pytest.mark.parametrize("row", [0, 4, 5, 12, 19, 20])
def test_reading_starts_at_any_row(tmp_path, row):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": list(range(20)), "b": [0.0] * 20}), path, row_group_size=6)
    opened = open_table(str(path))
    assert opened.n_rows == 20
    values = [
        value for table in opened.tables(["a"], row, 5) for value in table.column("a").to_pylist()
    ]
    assert values == list(range(row, 20))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"nothing")
    with pytest.raises(BatchError, match=r"t\.parquet, from row 1 on: cannot be read"):
        open_table(str(tmp_path / "t.parquet"))


def test_mean_length_of_lines(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert bytes_per_row(str(tmp_path / "t.csv")) == 4.0
    assert bytes_per_row("t.csv.gz") == 0.0


@pytest.mark.parametrize("row", range(4))
def test_text_is_gone_on_with_after_blank_lines_and_lines_in_quotes(tmp_path, row):
    """Blank lines are no rows, names have no spaces around them, and cells may hold lines."""
    (tmp_path / "t.csv").write_text('a ;name; b\n1;"x\ny";2\n\n3;;\n4;"q;\n\nr";5.5\n')
    opened = open_table(str(tmp_path / "t.csv"), text=["name"])
    assert opened.schema.names == ["a", "name", "b"]
    columns = {"b": [2.0, None, 5.5], "name": ["x\ny", None, "q;\n\nr"]}
    rows = [one for table in opened.tables(list(columns), row, 5) for one in table.to_pylist()]
    assert rows == [{"b": b, "name": name} for b, name in zip(*columns.values(), strict=True)][row:]


def test_rows_of_text_are_counted_below_the_header(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4,5\n")
    with pytest.raises(
        BatchError, match=r"t\.csv, from row 1 on: cannot be read: .* row 2: Expected 2 columns"
    ):
        open_table(str(tmp_path / "t.csv"))
    assert (
        str(unreadable("t", 6, ValueError("In Row #9: x")))
        == "t, from row 7 on: cannot be read: In row 8: x"
    )


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"pandas and pyarrow: pip install \"entangled-kernels\[data\]\""
    ):
        need_arrow()
