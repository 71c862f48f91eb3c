"""Nodes of a graph of tensors, before they become a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DOUBLE", "FLOAT", "Graph", "Node"]

# Numbers of ONNX for the types that `Cast` goes to.
FLOAT, DOUBLE = 1, 11


@dataclass(frozen=True, eq=False)
class Node:
    """One operation, which makes one tensor.

    Attributes
    ----------
    operation, domain : str
        As ONNX names them; the domain of the standard operations is empty.
    inputs : tuple of str
        Names of tensors.
    output : str
    attributes : dict
        Numbers, texts, lists of them, or arrays.
    """

    operation: str
    inputs: tuple[str, ...]
    output: str
    domain: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)


class Graph:
    """Nodes in the order in which they are computed, and the constants that they use.

    Attributes
    ----------
    nodes : list of Node
    constants : dict of ndarray

    Notes
    -----
    A node that was added before, and a constant that is there already, are not added again. So feature maps
    that begin alike share what is alike. Names are numbers in the order of writing: the same model gives the
    same graph.

    Matrix products are ``Gemm``, not ``MatMul``: onnxruntime merges a number that stands beside a ``MatMul``
    into it, as a float32, and digits are lost.

    Examples
    --------
    >>> graph = Graph()
    >>> graph.add("Sub", "X", [1.0, 2.0]) == graph.add("Sub", "X", [1.0, 2.0])
    True
    >>> len(graph.nodes)
    1
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._taken: set[str] = set()
        self._known: dict[Any, str] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for inputs and outputs: no tensor of the graph gets one of them."""
        self._taken.update(names)

    def add(self, operation: str, *inputs: str | ArrayLike, domain: str = "", **attributes: Any) -> str:
        """The tensor that an operation makes; inputs that are not names of tensors are constants."""
        names = tuple(value if isinstance(value, str) else self.constant(value) for value in inputs)
        key = (operation, domain, names, *((name, _key(value)) for name, value in attributes.items()))
        if key not in self._known:
            self._known[key] = self._name(operation)
            self.nodes.append(Node(operation, names, self._known[key], domain, attributes))
        return self._known[key]

    def constant(self, values: ArrayLike) -> str:
        """The tensor of a constant array: texts, whole numbers or, as arrays of anything else, doubles."""
        array = np.asarray(values)
        if array.dtype.kind == "i":
            array = array.astype(np.int64)
        elif array.dtype.kind not in "OU" and array.dtype != np.float32:
            array = array.astype(np.float64)
        key = ("constant", array.shape, _key(array))
        if key not in self._known:
            self._known[key] = self._name("constant")
            self.constants[self._known[key]] = array
        return self._known[key]

    def _name(self, kind: str) -> str:
        number = len(self.nodes) + len(self.constants)
        name = f"{kind.lower()}_{number}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _key(value: Any) -> Any:
    """What tells an attribute or a constant from others."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, tuple(value.ravel()) if value.dtype.kind in "OU" else value.tobytes()
    return tuple(value) if isinstance(value, list) else value
