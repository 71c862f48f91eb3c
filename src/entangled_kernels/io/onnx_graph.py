"""An ONNX graph that is built by arithmetic on its tensors, in double precision.

`x - centre` with a `Tensor` x adds a node to the graph of x and returns a new tensor, so that
converters read like formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import AttributeProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from ..linalg import Array
from .onnx_export import ExportError

__all__ = ["OPSETS", "WAY_OUT", "Columns", "Graph", "Tensor", "concatenate"]

ML = "ai.onnx.ml"
# Versions of the operations, old enough for all runtimes of recent years.
OPSETS = {"": 17, ML: 3}
WAY_OUT = (
    "fit the model with a step that can be exported (docs/export.md lists them), or keep it as a "
    "file of save_model"
)
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "text": TensorProto.STRING}


class Graph:
    """Nodes and constants, and the columns of the table that they read.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns of the table.
    new_name : callable, optional
        Returns an unused name for a tensor, given a prefix.

    Attributes
    ----------
    texts : dict of int to list of str
        Columns that are read as text, with the texts that encoders know.
    centre, scale : ndarray of shape (columns,)
        Mean and deviation of columns in training, if a scaler or a map has them; otherwise 0 and 1.
    """

    def __init__(
        self, columns: Sequence[str] = (), new_name: Callable[[str], str] | None = None
    ) -> None:
        self.columns = list(columns)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, TensorProto] = {}
        self.texts: dict[int, list[str]] = {}
        self.centre, self.scale = np.zeros(len(self.columns)), np.ones(len(self.columns))
        self._reads: dict[tuple[int, ...], str] = {}
        self._text_reads: dict[int, str] = {}
        self._products: dict[str, tuple[Tensor, Array, Array]] = {}
        self._path: list[str] = []
        self._known: dict[Any, str] = {}
        self._count = 0
        self._new_name = new_name or self._next_name

    def _next_name(self, prefix: str) -> str:
        self._count += 1
        name = f"{prefix}_{self._count}"
        # Inputs have the names of columns.
        return self._next_name(prefix) if name in self.columns else name

    def __call__(self, operation: str, *inputs: Tensor | ArrayLike, **attributes: Any) -> Tensor:
        """Add a node and return its output; inputs that are not tensors become constants."""
        names = [
            value.name if isinstance(value, Tensor) else self.constant(value) for value in inputs
        ]
        output = self._new_name(operation.lower())
        domain = ML if operation in ("LabelEncoder", "TreeEnsembleRegressor") else ""
        self.nodes.append(
            helper.make_node(operation, names, [output], output, domain=domain, **attributes)
        )
        return Tensor(self, output)

    def constant(self, values: ArrayLike) -> str:
        """Name of a constant: of texts, integers, float32 or, for anything else, doubles."""
        array = np.asarray(values)
        if array.dtype.kind in "OU":
            array = array.astype(object)
        elif array.dtype.kind == "i":
            array = array.astype(np.int64)
        elif array.dtype != np.float32:
            array = array.astype(np.float64)
        values = tuple(array.flat) if array.dtype == object else array.tobytes()
        key = str(array.dtype), array.shape, values
        if key not in self._known:
            self._known[key] = name = self._new_name("constant")
            self.constants[name] = from_array(np.asarray(array, order="C"), name)
        return self._known[key]

    def linear(self, x: Tensor, W: ArrayLike, offset: ArrayLike | None = None) -> Tensor:
        """``x @ W + offset`` with constants; two products in a row become one.

        The operation is Gemm, since onnxruntime merges MatMul and a scalar factor in float32.
        """
        matrix: Array = np.asarray(W, dtype=np.float64)
        row: Array = (
            np.zeros(matrix.shape[1]) if offset is None else np.asarray(offset, dtype=float)
        )
        if x.name in self._products:
            first, A, a = self._products[x.name]
            if A.shape[0] * matrix.shape[1] <= A.size + matrix.size:
                x, matrix, row = first, A @ matrix, a @ matrix + row
        made = self("Gemm", x, matrix, *([row] if row.any() else []))
        self._products[made.name] = x, matrix, row
        return made

    def insert(self, model: Any, x: Tensor) -> Tensor:
        """Add the nodes of a model with one input and one output, and return its output."""
        names = {"": "", model.graph.input[0].name: x.name}
        for constant in model.graph.initializer:
            names[constant.name] = self._new_name("constant")
            self.constants[names[constant.name]] = constant
            constant.name = names[constant.name]
        for node in model.graph.node:
            node.input[:] = [names[name] for name in node.input]
            matrix = self.constants.get(node.input[-1]) if node.op_type == "MatMul" else None
            if matrix is not None and len(matrix.dims) == 2:
                names[node.output[0]] = Tensor(self, node.input[0]).linear(to_array(matrix)).name
                continue
            for name in node.output:
                names[name] = self._new_name(node.op_type.lower())
            node.output[:] = [names[name] for name in node.output]
            node.name = node.output[0]
            self.nodes.append(node)
        return Tensor(self, names[model.graph.output[0].name])

    @contextmanager
    def inside(self, step: str) -> Iterator[None]:
        """Errors in this context name the step, and the steps that it is a part of."""
        self._path.append(step)
        try:
            yield
        except Exception as error:
            if isinstance(error, ExportError) and error.names_step:
                raise
            text = " ".join(str(error).split())
            text = text if isinstance(error, ExportError) else f"{text[:200]}; {WAY_OUT}"
            path = " > ".join(self._path)
            named = ExportError(f"{path} cannot be exported to ONNX: {text}")
            named.names_step = True
            raise named from error
        finally:
            self._path.pop()

    # The columns of the table.

    def read_numbers(self, indices: Iterable[int]) -> Tensor:
        """Columns of the table as doubles, (n, number of columns)."""
        key = tuple(map(int, indices))
        texts = [self.columns[index] for index in key if index in self.texts]
        if texts:
            raise ExportError(f"it needs numbers, and gets the text of column '{texts[0]}'")
        name = self._reads.setdefault(key, "") or self._new_name("columns")
        self._reads[key] = name
        return Tensor(self, name, key)

    def read_text(self, index: int) -> Tensor:
        """One column of the table as text, (n, 1)."""
        if any(index in key for key in self._reads):
            raise ExportError(
                f"it needs the text of column '{self.columns[index]}', which another step takes "
                f"for numbers"
            )
        self.texts.setdefault(index, [])
        name = self._text_reads.setdefault(index, "") or self._new_name("text")
        self._text_reads[index] = name
        return Tensor(self, name)

    @property
    def used(self) -> list[int]:
        """The columns that are read."""
        return sorted({*self._text_reads, *(index for key in self._reads for index in key)})

    @property
    def is_split(self) -> bool:
        """Whether each column is one input, because some are text or not used."""
        return bool(self.texts) or len(self.used) < len(self.columns)

    def inputs(self, dtype: str) -> dict[str, str]:
        """Names of the inputs with their kinds."""
        if not self.is_split:
            return {"X": dtype}
        return {self.columns[i]: "text" if i in self.texts else dtype for i in self.used}

    def finish(self, prediction: Tensor, name: str, output: str, dtype: str) -> Any:
        """The model as a protocol buffer, with inputs and one output of the given type."""
        computed, self.nodes = self.nodes, []
        inputs, cast = self.inputs(dtype), {"to": TensorProto.DOUBLE}
        width = 1 if self.is_split else len(self.columns)
        for index, tensor in self._text_reads.items():
            self._add("Identity", [self.columns[index]], tensor)
        for indices, tensor in self._reads.items():
            if self.is_split:
                parts = [self.columns[index] for index in indices]
                joined = self._new_name("joined")
                self._add("Concat", parts, joined, axis=1)
                self._add("Cast", [joined], tensor, **cast)
            elif indices == tuple(range(width)):
                self._add("Cast", ["X"], tensor, **cast)
            else:
                chosen = self("Gather", Tensor(self, "X"), np.array(indices), axis=1)
                self._add("Cast", [chosen.name], tensor, **cast)
        self.nodes += computed
        self._add("Cast", [prediction.name], output, to=TYPES[dtype])
        self.remove_unused([output])
        graph = helper.make_graph(
            self.nodes,
            name,
            [
                helper.make_tensor_value_info(key, TYPES[kind], ["rows", width])
                for key, kind in inputs.items()
            ],
            [helper.make_tensor_value_info(output, TYPES[dtype], ["rows", None])],
            list(self.constants.values()),
        )
        domains = {"", *(node.domain for node in self.nodes)}
        opsets = [helper.make_opsetid(key, OPSETS[key]) for key in sorted(domains)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _add(self, operation: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(operation, inputs, [output], output, **attributes))

    def remove_unused(self, outputs: Iterable[str]) -> None:
        """Remove nodes and constants that the outputs do not depend on."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                kept.append(node)
                needed |= _names_read(node)
        self.nodes = kept[::-1]
        self.constants = {name: value for name, value in self.constants.items() if name in needed}


def _names_read(node: NodeProto) -> set[str]:
    """Tensors that a node reads, the graphs in its attributes included."""
    bodies = [item.g for item in node.attribute if item.type == AttributeProto.GRAPH]
    return set(node.input).union(*(_names_read(part) for body in bodies for part in body.node))


class Tensor:
    """A tensor of a graph; operators add nodes to the graph.

    Parameters
    ----------
    graph : Graph
    name : str
    indices : tuple of int, optional
        The columns of the table whose values these are.
    """

    __array_ufunc__ = None

    def __init__(self, graph: Graph, name: str, indices: tuple[int, ...] | None = None) -> None:
        self.graph, self.name, self.indices = graph, name, indices

    def apply(self, operation: str, *others: Tensor | ArrayLike, **attributes: Any) -> Tensor:
        """The result of an operation on this tensor and others."""
        return self.graph(operation, self, *others, **attributes)

    def __add__(self, other: Tensor | ArrayLike) -> Tensor:
        return self.apply("Add", other)

    def __sub__(self, other: Tensor | ArrayLike) -> Tensor:
        return self.apply("Sub", other)

    def __rsub__(self, other: ArrayLike) -> Tensor:
        return self.graph("Sub", other, self)

    def __mul__(self, other: Tensor | ArrayLike) -> Tensor:
        return self.apply("Mul", other)

    def __truediv__(self, other: Tensor | ArrayLike) -> Tensor:
        return self.apply("Div", other)

    def __pow__(self, other: ArrayLike) -> Tensor:
        return self.apply("Pow", other)

    def linear(self, W: ArrayLike, offset: ArrayLike | None = None) -> Tensor:
        """``self @ W + offset`` with constants."""
        return self.graph.linear(self, W, offset)

    def take(self, columns: ArrayLike) -> Tensor:
        """Some columns."""
        return self.apply("Gather", np.asarray(columns, dtype=np.int64), axis=1)

    def numbers(self) -> Tensor:
        """The tensor itself; `Columns` are read as numbers."""
        return self

    def double(self) -> Tensor:
        """The tensor as doubles."""
        return self.apply("Cast", to=TensorProto.DOUBLE)

    def single(self) -> Tensor:
        """The tensor rounded to float32."""
        return self.apply("Cast", to=TensorProto.FLOAT)

    def row_sums(self) -> Tensor:
        """Sums of rows, (n, 1)."""
        return self.apply("ReduceSum", [1], keepdims=1)


class Columns:
    """Columns of the table that no step has changed, except that missing text may be filled.

    Parameters
    ----------
    graph : Graph
    indices : array-like of int
    filled : dict of int to Tensor, optional
        Columns of text, (n, 1), whose missing values are filled.
    """

    def __init__(
        self, graph: Graph, indices: ArrayLike, filled: dict[int, Tensor] | None = None
    ) -> None:
        self.graph, self.indices, self.filled = graph, np.asarray(indices, dtype=int), filled or {}

    def take(self, columns: ArrayLike) -> Columns:
        """Some of the columns."""
        chosen: NDArray[Any] = np.asarray(columns, dtype=int)
        return Columns(self.graph, self.indices[chosen], self.filled)

    def numbers(self) -> Tensor:
        """The columns as doubles, (n, number of columns)."""
        return self.graph.read_numbers(self.indices)

    def text(self, index: int, known: Iterable[str]) -> Tensor:
        """One column as text, (n, 1), which in training held the known texts."""
        column = int(self.indices[index])
        tensor = self.filled.get(column) or self.graph.read_text(column)
        self.graph.texts[column] += known
        return tensor


def concatenate(graph: Graph, parts: Sequence[Tensor]) -> Tensor:
    """Tensors side by side."""
    return parts[0] if len(parts) == 1 else graph("Concat", *parts, axis=1)
