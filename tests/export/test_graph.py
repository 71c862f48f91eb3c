import numpy as np

from entangled_kernels.export.graph import Graph


def test_nodes_and_constants_are_written_once():
    graph = Graph()
    first = graph.add("Sub", "X", np.array([1.0, 2.0]))
    assert graph.add("Sub", "X", [1.0, 2.0]) == first
    assert graph.add("Sub", "X", [1.0, 3.0]) != first
    assert graph.add("Sub", "X", np.array([[1.0, 2.0]])) != first
    assert len(graph.nodes) == len(graph.constants) == 3


def test_attributes_tell_nodes_apart():
    graph = Graph()
    tensors = {
        graph.add("Concat", "a", "b", axis=0),
        graph.add("Concat", "a", "b", axis=1),
        graph.add("Concat", "b", "a", axis=1),
        graph.add("Concat", "a", "b", domain="other", axis=1),
        graph.add("Tree", "a", values=np.array([1.0]), modes=["LEAF"]),
        graph.add("Tree", "a", values=np.array([2.0]), modes=["LEAF"]),
        graph.add("Tree", "a", values=np.array([2.0]), modes=["BRANCH"]),
    }
    assert len(tensors) == len(graph.nodes) == 7
    graph.add("Tree", "a", values=np.array([2.0]), modes=["BRANCH"])
    assert len(graph.nodes) == 7


def test_constants_are_doubles_whole_numbers_or_text():
    graph = Graph()
    kinds = [
        graph.constants[graph.constant(values)].dtype.kind
        + str(graph.constants[graph.constant(values)].itemsize)
        for values in (1, [True, False], np.float32([0.5]), [0.5], np.array([1, 2], np.int32))
    ]
    assert kinds == ["i8", "f8", "f4", "f8", "i8"]
    assert graph.constants[graph.constant(np.array([["a"]]))].dtype.kind == "U"


def test_transposed_constants_are_not_mistaken():
    graph, square = Graph(), np.arange(4.0).reshape(2, 2)
    assert graph.constant(square) != graph.constant(square.T)


def test_reserved_names_are_left_free():
    graph = Graph()
    graph.reserve(["sub_1", "constant_0"])
    names = {graph.add("Sub", "X", [1.0]), *graph.constants}
    assert not names & {"sub_1", "constant_0"}
