import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.table_options import TableOptions, read_table_options
from entangled_kernels.streams import TextFormat


def test_options_of_a_table():
    assert read_table_options() == TableOptions()
    found = read_table_options(delimiter="tab", decimal=",", missing="drop", exclude=["a,b", "c"])
    assert found == TableOptions(TextFormat("\t", ","), "drop", ("a,b", "c"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"missing": "mean"}, "--missing must be one of error, drop, median, got 'mean'"),
        ({"delimiter": "ab"}, "--delimiter must be one character"),
        ({"encoding": "no"}, "--encoding must be one that Python knows"),
        ({"delimiter": ",", "decimal": ","}, "--delimiter and decimal must differ"),
    ],
)
def test_wrong_options(settings, sentence):
    with pytest.raises(CommandError, match=sentence):
        read_table_options(**settings)
