from pathlib import Path

import pytest

from entangled_kernels.io import TableError


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({}, "a/t.csv: it is wet"),
        ({"row": 3}, "a/t.csv: row 3: it is wet"),
        ({"column": "net load"}, "a/t.csv: column 'net load': it is wet"),
        ({"row": 3, "column": "net load"}, "a/t.csv: row 3, column 'net load': it is wet"),
    ],
)
def test_the_place_is_named(place, words):
    error = TableError(Path("a", "t.csv"), "it is wet", **place)
    assert str(error) == words
    assert (error.path, error.row, error.column) == (
        "a/t.csv",
        place.get("row"),
        place.get("column"),
    )
    assert isinstance(error, ValueError)
