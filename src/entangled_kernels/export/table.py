"""The table that a model takes, as inputs of a graph: one tensor of numbers, or one for every column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..linalg import Array
from .columns import Columns, ExportError, matrix_columns
from .graph import DOUBLE, Graph

__all__ = ["Table", "TableColumns"]


class Table:
    """Inputs of a graph: one tensor ``X``, (rows, columns), or a tensor (rows, 1) for every column.

    Parameters
    ----------
    graph : Graph
    names : sequence of str
        Of the columns.
    apart : bool
        Whether every column is an input of its own.
    text : set of int
        Columns that hold text.

    Attributes
    ----------
    asked : set of int
        Columns that some step has asked for as text.
    used : set of int
        Columns that some step has asked for.
    centre, scale : ndarray of shape (columns,)
        What columns of numbers were like in training, as far as it is known: else 0 and 1.
    texts : dict of int to list of str
        Texts that steps know, by column.
    """

    def __init__(self, graph: Graph, names: Sequence[str], *, apart: bool, text: set[int]) -> None:
        self.graph, self.names, self.apart, self.text = graph, list(names), apart, text
        self.asked: set[int] = set()
        self.used: set[int] = set()
        self.centre, self.scale = np.zeros(len(names)), np.ones(len(names))
        self.texts: dict[int, list[str]] = {}

    @property
    def settled(self) -> bool:
        """Whether it was known beforehand which columns are text, and whether they come apart."""
        return self.asked <= self.text and (self.apart or len(self.used) == len(self.names))

    def inputs(self) -> list[str]:
        """Names of the inputs: X, or the columns that some step uses."""
        return [self.names[place] for place in sorted(self.used)] if self.apart else ["X"]

    def columns(self) -> TableColumns:
        """All columns."""
        return TableColumns(self, np.arange(len(self.names)))


class TableColumns(Columns):
    """Some columns of the table, of which only those that some step uses become inputs.

    Parameters
    ----------
    table : Table
    places : ndarray of int
    """

    def __init__(self, table: Table, places: NDArray[Any]) -> None:
        super().__init__(table.graph, len(places))
        self.table, self.places = table, np.asarray(places, dtype=np.int64)

    def matrix(self) -> str:
        """The tensor of all columns as doubles, (n, width)."""
        table, graph = self.table, self.graph
        table.used.update(self.places.tolist())
        if not table.apart:
            numbers = graph.add("Cast", "X", to=DOUBLE)
            everything = np.array_equal(self.places, np.arange(len(table.names)))
            return numbers if everything else graph.add("Gather", numbers, self.places, axis=1)
        for place in self.places:
            if place in table.text:
                raise ExportError(f"needs numbers, and gets the text of column {table.names[place]!r}")
        tensors = [graph.add("Cast", table.names[place], to=DOUBLE) for place in self.places]
        return tensors[0] if len(tensors) == 1 else graph.add("Concat", *tensors, axis=1)

    def times(self, W: Array) -> str:
        """The tensor of the product with a matrix (width, p), (n, p)."""
        return matrix_columns(self.graph, self.matrix(), self.width).times(W)

    def select(self, places: ArrayLike) -> Columns:
        """Some of the columns."""
        return TableColumns(self.table, self.places[np.asarray(places, dtype=np.int64)])

    def text(self, place: int, known: Sequence[str] = ()) -> str:
        """The tensor of a column of text, (n, 1)."""
        column = int(self.places[place])
        self.table.asked.add(column)
        self.table.used.add(column)
        self.table.texts.setdefault(column, []).extend(known)
        return self.table.names[column]

    def spread_like(self, centre: ArrayLike, scale: ArrayLike) -> None:
        """Take note of what the columns were like in training."""
        self.table.centre[self.places] = centre
        self.table.scale[self.places] = scale
