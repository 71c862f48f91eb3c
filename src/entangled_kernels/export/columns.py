"""Columns that flow from one step of a model to the next, as tensors of a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array
from .graph import Graph

__all__ = ["Beside", "Columns", "ExportError", "Products", "Texts", "matrix_columns"]

Term = tuple[str, "float | Array"]


class ExportError(ValueError):
    """A model, or a step of one, that cannot be written as a graph."""


class Columns:
    """Columns of rows, (n, width), that a step of a model has made.

    Parameters
    ----------
    graph : Graph
    width : int
    """

    def __init__(self, graph: Graph, width: int) -> None:
        self.graph, self.width = graph, width

    def matrix(self) -> str:
        """The tensor of all columns as doubles, (n, width)."""
        return self.times(np.eye(self.width))

    def times(self, W: Array) -> str:
        """The tensor of the product with a matrix (width, p), (n, p).

        It is often shorter than the columns themselves: what the step ends with is multiplied with W here,
        once, and not with every row.
        """
        raise NotImplementedError

    def select(self, places: ArrayLike) -> Columns:
        """Some of the columns."""
        chosen = np.asarray(places, dtype=np.int64)
        if np.array_equal(chosen, np.arange(self.width)):
            return self
        return matrix_columns(
            self.graph, self.graph.add("Gather", self.matrix(), chosen, axis=1), len(chosen)
        )

    def text(self, place: int, known: Sequence[str] = ()) -> str:
        """The tensor of a column of text, (n, 1); ``known`` are texts of training, where they are known."""
        raise ExportError(f"needs text in column {place}, and gets numbers")

    def spread_like(self, centre: ArrayLike, scale: ArrayLike) -> None:
        """Take note of what the columns were like in training; only those of the table remember it."""


class Products(Columns):
    """A sum of products of tensors and constants: sum_i T_i R_i + offset.

    Parameters
    ----------
    graph : Graph
    width : int
    terms : sequence of (str, float or ndarray)
        Tensors T_i (n, k_i) and constants R_i (k_i, width); a number stands for a multiple of the identity.
    offset : ndarray of shape (width,), optional
    source : Columns, optional
        Columns of which these are a copy, filled or kept within limits.
    """

    def __init__(
        self,
        graph: Graph,
        width: int,
        terms: Sequence[Term],
        offset: Array | None = None,
        source: Columns | None = None,
    ) -> None:
        super().__init__(graph, width)
        self.terms, self.offset, self.source = list(terms), offset, source

    def matrix(self) -> str:
        """The tensor of all columns as doubles, (n, width)."""
        parts = []
        for tensor, right in self.terms:
            if isinstance(right, np.ndarray):
                parts.append(self.graph.add("Gemm", tensor, right))
            else:
                parts.append(tensor if right == 1.0 else self.graph.add("Mul", tensor, right))
        return self._total(parts, self.offset)

    def times(self, W: Array) -> str:
        """The tensor of the product with a matrix (width, p), (n, p)."""
        return self.into(W).matrix()

    def into(self, W: Array) -> Products:
        """The columns multiplied by a matrix (width, p)."""
        terms = [
            (tensor, right @ W if isinstance(right, np.ndarray) else right * W)
            for tensor, right in self.terms
        ]
        return Products(self.graph, W.shape[1], terms, None if self.offset is None else self.offset @ W)

    def scaled(self, factor: float) -> Products:
        """The columns multiplied by a number."""
        terms = [(tensor, right * factor) for tensor, right in self.terms]
        return Products(self.graph, self.width, terms, None if self.offset is None else self.offset * factor)

    def plus(self, other: Products) -> Products:
        """The sum of columns with others."""
        offsets = [offset for offset in (self.offset, other.offset) if offset is not None]
        offset = np.sum(offsets, axis=0) if offsets else None
        return Products(self.graph, self.width, [*self.terms, *other.terms], offset)

    def spread_like(self, centre: ArrayLike, scale: ArrayLike) -> None:
        """Take note of what the columns were like in training."""
        if self.source is not None:
            self.source.spread_like(centre, scale)

    def _total(self, parts: Sequence[str], offset: Array | None) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.graph.add("Add", total, part)
        return total if offset is None else self.graph.add("Add", total, offset)


class Beside(Columns):
    """Columns that stand side by side.

    Parameters
    ----------
    graph : Graph
    parts : sequence of Columns
    """

    def __init__(self, graph: Graph, parts: Sequence[Columns]) -> None:
        super().__init__(graph, sum(part.width for part in parts))
        self.parts = [part for part in parts if part.width]
        self._ends = np.cumsum([part.width for part in self.parts])[:-1]

    def matrix(self) -> str:
        """The tensor of all columns as doubles, (n, width)."""
        tensors = [part.matrix() for part in self.parts]
        return tensors[0] if len(tensors) == 1 else self.graph.add("Concat", *tensors, axis=1)

    def times(self, W: Array) -> str:
        """The tensor of the product with a matrix (width, p), (n, p): the sum over the parts."""
        blocks = np.split(W, self._ends)
        total, *others = [part.times(block) for part, block in zip(self.parts, blocks, strict=True)]
        for other in others:
            total = self.graph.add("Add", total, other)
        return total

    def spread_like(self, centre: ArrayLike, scale: ArrayLike) -> None:
        """Take note of what the columns were like in training."""
        both = (np.split(np.broadcast_to(value, self.width), self._ends) for value in (centre, scale))
        for part, own_centre, own_scale in zip(self.parts, *both, strict=True):
            part.spread_like(own_centre, own_scale)


class Texts(Columns):
    """Columns of text.

    Parameters
    ----------
    graph : Graph
    tensors : sequence of str
        Tensors (n, 1).
    """

    def __init__(self, graph: Graph, tensors: Sequence[str]) -> None:
        super().__init__(graph, len(tensors))
        self.tensors = list(tensors)

    def matrix(self) -> str:
        """Text is no matrix of numbers."""
        raise ExportError("needs numbers, and gets text")

    def select(self, places: ArrayLike) -> Columns:
        """Some of the columns."""
        return Texts(self.graph, [self.tensors[place] for place in np.asarray(places)])

    def text(self, place: int, known: Sequence[str] = ()) -> str:
        """The tensor of a column of text, (n, 1)."""
        return self.tensors[place]


def matrix_columns(graph: Graph, tensor: str, width: int) -> Products:
    """Columns that are a tensor, (n, width)."""
    return Products(graph, width, [(tensor, 1.0)])
