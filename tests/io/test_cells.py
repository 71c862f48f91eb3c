import numpy as np
import pandas as pd
import pytest

from entangled_kernels.io import (
    Hints,
    TableError,
    read_table,
    require_columns,
    require_numbers,
    require_text,
    text_columns,
)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "a,b\n1,2\n3,\n5,\n",
            r"row 2, column 'b': the cell is empty.*one of 2 such cells, in 2 rows",
        ),
        ("a,b\n1,2\nNA,4\n", "row 2, column 'a': the cell is empty"),
        ("a,b\n1,2\n3,1e300\n", r"row 2, column 'b': 1e\+300 is too large"),
        ("a,b\n1,2\n3,-1e120\n", r"row 2, column 'b': -1e\+120 is too large"),
        ("a,b\n1,2\n3,inf\n", "row 2, column 'b': inf is not finite"),
        ("a,b\n1,2\n3,x\n", "row 2, column 'b': 'x' is no number; do this"),
        (
            'a,b\n1,2\n3,"4,5"\n',
            "row 2, column 'b': '4,5' is no number; if its comma is a decimal sign, read",
        ),
        (
            "a,b\n1,2\n3,12.03.2024\n",
            "'12.03.2024' is no number, it looks like a date or a time; leave",
        ),
        ("a,b\n1,2\n3,9:15\n", "'9:15' is no number, it looks like a date or a time; leave"),
        (
            "a,b\n1,2021-01-01\n3,2022-01-01\n",
            "column 'b': dates and times are no numbers; leave it out",
        ),
        ("a,b\n1,\n3,\n", "row 1, column 'b': the cell is empty"),
    ],
)
def test_cells_that_are_no_numbers(file, content, problem):
    path = file(content)
    with pytest.raises(TableError, match=problem):
        require_numbers(
            read_table(path), ["a", "b"], path, hints=Hints(text="; do this", date="; leave it out")
        )


def test_cells_may_be_blank_where_this_is_asked_for(file):
    path = file("a,b,c\n1,,\nNA,4,\n3,5,\n")
    numbers = require_numbers(read_table(path), ["a", "b", "c"], path, blanks=True)
    assert (numbers.dtypes == np.float64).all()
    np.testing.assert_array_equal(
        numbers, [[1, np.nan, np.nan], [np.nan, 4, np.nan], [3, 5, np.nan]]
    )
    for content, problem in (
        ('a\n""\ninf\n', "inf is not finite"),
        ('a\n""\nx\n', "'x' is no number"),
    ):
        path = file(content)
        with pytest.raises(TableError, match=f"row 2, column 'a': {problem}"):
            require_numbers(read_table(path), ["a"], path, blanks=True)


def test_numbers_of_all_types():
    from decimal import Decimal

    frame = pd.DataFrame({"i": [1, 2], "b": [True, False], "d": [Decimal("1.5"), Decimal("2")]})
    frame["n"] = pd.array([1, 2], dtype="Int64")
    numbers = require_numbers(frame, list(frame), "t.csv")
    assert (numbers.dtypes == np.float64).all()
    assert numbers["d"].tolist() == [1.5, 2.0]
    with pytest.raises(
        TableError, match=r"column 'x': the column holds no plain numbers \(object\)"
    ):
        require_numbers(pd.DataFrame({"x": [[1], [2]]}), ["x"], "t.parquet")


def test_missing_columns_and_their_neighbours():
    frame = pd.DataFrame(columns=["net load", "temperature", "town"])
    with pytest.raises(TableError, match=r"no column 'net_load' \(is it 'net load'\?\)"):
        require_columns(frame, ["town", "net_load"], "t.csv")
    with pytest.raises(
        TableError, match=r"no columns 'q', 'z'; the table has 'net load', 'temperature' and 'town'"
    ):
        require_columns(frame, ["q", "z"], "t.csv")


def test_text():
    frame = pd.DataFrame({"town": ["Ulm", "Aix", "Ulm"], "x": [1.0, 2.0, 3.0]})
    assert text_columns(frame, ["town", "x"]) == ["town"]
    assert text_columns(pd.DataFrame({"day": pd.to_datetime(["2021-01-01"])}), ["day"]) == []
    codes = pd.DataFrame({"code": [7, 12], "town": pd.Categorical(["Ulm", "Aix"])})
    assert require_text(codes, ["code", "town"], "t.csv").to_dict("list") == {
        "code": ["7", "12"],
        "town": ["Ulm", "Aix"],
    }
    with pytest.raises(TableError, match=r"row 2, column 'town': the cell is empty"):
        require_text(pd.DataFrame({"town": ["Ulm", None]}), ["town"], "t.csv")


def test_rows_are_those_of_the_file():
    frame = pd.DataFrame({"x": [1.0, np.nan], "town": ["Ulm", None], "y": ["2", "none"]})
    for column, check in (("x", require_numbers), ("town", require_text), ("y", require_numbers)):
        with pytest.raises(TableError, match=f"row 102, column '{column}'"):
            check(frame, [column], "t.csv", rows_before=100)


def test_all_columns_of_text_are_named_at_once():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [None, "z"], "d": [3, 4]})
    with pytest.raises(
        TableError, match=r"row 1, column 'b': 'x' is no number, and .* 'c' \(row 2\)"
    ):
        require_numbers(frame, ["a", "b", "c", "d"], "t.csv")


def test_numbers_among_texts_have_the_decimal_sign_of_the_file(file):
    frame = pd.DataFrame({"a": ["1,5", "2", "n.d.", None]})
    with pytest.raises(TableError, match=r"row 3, column 'a': 'n.d.' is no number"):
        require_numbers(frame, ["a"], "t.csv", decimal=",")
    for decimal, row in ((",", 2), (".", 1)):
        with pytest.raises(TableError, match=f"row {row},"):
            require_numbers(pd.DataFrame({"a": ["1,5", "1.5"]}), ["a"], "t.csv", decimal=decimal)
