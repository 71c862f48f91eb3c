import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.export.columns import Beside, Columns, ExportError, Products, Texts, matrix_columns
from entangled_kernels.export.graph import Graph


def evaluate(graph, tensor, given):
    """The few operations that columns use, by numpy."""
    known = {**graph.constants, **given}
    operations = {
        "Gemm": lambda a, b: a @ b,
        "Mul": lambda a, b: a * b,
        "Add": lambda a, b: a + b,
        "Gather": lambda a, places, axis: a.take(places, axis=axis),
        "Concat": lambda *parts, axis: np.concatenate(parts, axis=axis),
    }
    for node in graph.nodes:
        inputs = [known[name] for name in node.inputs]
        known[node.output] = operations[node.operation](*inputs, **node.attributes)
    return known[tensor]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sums_of_products_are_what_they_say(seed):
    rng = np.random.default_rng(seed)
    graph, given_tensors = Graph(), {"A": rng.normal(size=(3, 2)), "B": rng.normal(size=(3, 4))}
    R, offset, W = rng.normal(size=(2, 4)), rng.normal(size=4), rng.normal(size=(4, 3))
    columns = Products(graph, 4, [("A", R), ("B", 0.5)], offset)
    dense = given_tensors["A"] @ R + 0.5 * given_tensors["B"] + offset
    cases = [
        (columns.matrix(), dense),
        (columns.times(W), dense @ W),
        (columns.into(W).matrix(), dense @ W),
        (columns.scaled(2.0).matrix(), 2.0 * dense),
        (columns.plus(matrix_columns(graph, "B", 4)).times(W), (dense + given_tensors["B"]) @ W),
        (columns.plus(columns).matrix(), 2.0 * dense),
        (columns.select([3, 1]).matrix(), dense[:, [3, 1]]),
        (columns.select(np.arange(4)).matrix(), dense),
    ]
    for tensor, wanted in cases:
        np.testing.assert_allclose(evaluate(graph, tensor, given_tensors), wanted, atol=1e-12)


def test_columns_side_by_side(rng):
    graph, tensors = Graph(), {"A": rng.normal(size=(3, 2)), "B": rng.normal(size=(3, 1))}
    parts = [matrix_columns(graph, "A", 2), Products(graph, 0, []), Products(graph, 1, [("B", 2.0)])]
    columns, W = Beside(graph, parts), rng.normal(size=(3, 2))
    dense = np.hstack([tensors["A"], 2.0 * tensors["B"]])
    np.testing.assert_allclose(evaluate(graph, columns.matrix(), tensors), dense)
    np.testing.assert_allclose(evaluate(graph, columns.times(W), tensors), dense @ W)
    np.testing.assert_allclose(evaluate(graph, columns.select([2, 0]).matrix(), tensors), dense[:, [2, 0]])


def test_what_is_known_of_columns_reaches_those_that_remember():
    class Remembering(Columns):
        def spread_like(self, centre, scale):
            self.known = np.asarray(centre), np.asarray(scale)

    graph = Graph()
    first, second = Remembering(graph, 1), Remembering(graph, 2)
    filled = Products(graph, 2, [("A", 1.0)], source=second)
    Beside(graph, [first, filled]).spread_like([1.0, 2.0, 3.0], 4.0)
    assert first.known[0].tolist() == [1.0]
    assert second.known[0].tolist() == [2.0, 3.0]
    assert second.known[1].tolist() == [4.0, 4.0]


def test_text_and_numbers_are_told_apart():
    graph = Graph()
    texts = Texts(graph, ["a", "b"])
    assert texts.select([1]).text(0) == "b"
    with pytest.raises(ExportError, match="needs numbers"):
        texts.matrix()
    with pytest.raises(ExportError, match="needs text"):
        matrix_columns(graph, "A", 2).text(1)
