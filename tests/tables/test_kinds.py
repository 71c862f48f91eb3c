import pandas as pd
import pytest

from entangled_kernels.streams import KINDS
from entangled_kernels.tables import TableError, read_table, table_kind, write_table


def test_names_that_tell_no_kind(tmp_path):
    assert table_kind("a/b.CSV") == "csv"
    with pytest.raises(TableError, match=r"must end in one of \.csv.*got '\.xlsx'; save the sheet as CSV"):
        read_table(tmp_path / "book.xlsx")
    with pytest.raises(TableError, match=r"got '\.xlsx'$"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "book.xlsx")
    with pytest.raises(TableError, match=r"got ''"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "plain")
    with pytest.raises(TableError, match=r"got '\.gz'"):
        table_kind("a.parquet.gz", compressed=True)


@pytest.mark.parametrize("ending", KINDS)
def test_kinds_are_those_of_streams(ending):
    assert table_kind(f"t{ending}") == KINDS[ending]
