import pytest

from entangled_kernels.export.columns import ExportError
from entangled_kernels.export.graph import Graph
from entangled_kernels.export.table import Table


def table(*, apart=False, text=frozenset()):
    return Table(Graph(), ["size", "town", "age"], apart=apart, text=set(text))


def test_numbers_are_one_input():
    numbers = table()
    columns = numbers.columns()
    assert columns.matrix() == columns.matrix()
    assert [node.operation for node in numbers.graph.nodes] == ["Cast"]
    assert numbers.inputs() == ["X"]
    assert numbers.settled


def test_a_text_that_was_not_expected_unsettles_the_table():
    numbers = table()
    numbers.columns().select([1]).text(0, ["Ulm"])
    assert not numbers.settled
    assert numbers.asked == {1}
    assert numbers.texts == {1: ["Ulm"]}


def test_columns_that_are_not_used_are_no_inputs():
    numbers = table()
    numbers.columns().select([2, 0]).matrix()
    assert not numbers.settled
    apart = table(apart=True)
    apart.columns().select([2, 0]).matrix()
    assert apart.settled
    assert apart.inputs() == ["size", "age"]


def test_text_is_no_number():
    mixed = table(apart=True, text={1})
    columns = mixed.columns()
    assert columns.text(1) == "town"
    assert columns.select([2]).matrix() == columns.select([2]).matrix()
    with pytest.raises(ExportError, match="needs numbers, and gets the text of column 'town'"):
        columns.matrix()


def test_what_columns_were_like_is_kept():
    numbers = table()
    numbers.columns().select([2, 0]).spread_like([5.0, 6.0], 2.0)
    assert numbers.centre.tolist() == [6.0, 0.0, 5.0]
    assert numbers.scale.tolist() == [2.0, 1.0, 2.0]
