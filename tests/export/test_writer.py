import pytest

from entangled_kernels.export.columns import ExportError, Texts, matrix_columns
from entangled_kernels.export.graph import Graph
from entangled_kernels.export.writer import Writer


class Inner:
    pass


class Outer:
    inner = Inner()


class Child(Inner):
    pass


def writer(**known):
    return Writer(
        Graph(), {Outer: lambda own, step, columns: own.features(step.inner, columns, "inner"), **known}, {}
    )


def test_no_step_leaves_columns_as_they_are():
    columns = matrix_columns(Graph(), "A", 2)
    assert writer().features(None, columns) is columns
    assert writer().features("passthrough", columns) is columns


def test_an_unknown_step_is_named_with_the_way_to_it():
    with pytest.raises(
        ExportError,
        match=r"^Outer > inner \(Inner\) cannot be exported to ONNX: there is no graph for .*Inner; fit",
    ):
        writer().features(Outer(), matrix_columns(Graph(), "A", 2))


def test_a_subclass_is_another_type():
    own = Writer(Graph(), {Inner: lambda own, step, columns: columns}, {})
    columns = matrix_columns(Graph(), "A", 2)
    assert own.features(Inner(), columns) is columns
    with pytest.raises(ExportError, match="Child"):
        own.features(Child(), columns)


def test_what_columns_complain_of_is_said_of_the_step():
    own = Writer(Graph(), {Inner: lambda own, step, columns: columns.matrix()}, {})
    with pytest.raises(
        ExportError, match=r"^Inner cannot be exported to ONNX: it needs numbers, and gets text; "
    ):
        own.features(Inner(), Texts(Graph(), ["a"]))
