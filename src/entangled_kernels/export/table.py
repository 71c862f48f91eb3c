"""The table that a model takes: its columns as inputs of a graph, numbers in one tensor or column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .columns import Columns, ExportError, matrix_columns
from .graph import DOUBLE, Graph

__all__ = ["Table", "TableColumns"]

Array = NDArray[np.float64]


class Table:
    """Inputs of a graph.

    Parameters
    ----------
    graph : Graph
    width : int
        Number of columns.
    names : sequence of str or None
        Of the columns, where they have names.
    text : set of int
        Columns that hold text. Where there are any, every column is an input of its own.

    Attributes
    ----------
    asked : set of int
        Columns that some step has asked for as text.
    centre, scale : ndarray of shape (width,)
        What columns of numbers were like in training, as far as it is known: else 0 and 1.
    texts : dict of int to list of str
        Texts that steps know, by column.
    """

    def __init__(self, graph: Graph, width: int, names: Sequence[str] | None, text: set[int]) -> None:
        self.graph, self.width, self.text = graph, width, text
        self.names = input_names(width, names, text)
        self.asked: set[int] = set()
        self.centre, self.scale = np.zeros(width), np.ones(width)
        self.texts: dict[int, list[str]] = {}

    def columns(self) -> TableColumns:
        """All columns."""
        return TableColumns(self, np.arange(self.width))


class TableColumns(Columns):
    """Some columns of the table.

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
        if not table.text:
            numbers = graph.add("Cast", table.names[0], to=DOUBLE)
            everything = np.array_equal(self.places, np.arange(table.width))
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
        self.table.texts.setdefault(column, []).extend(known)
        # Until it is known which columns are text there is but one input, and what is written is thrown away.
        return self.table.names[column] if column in self.table.text else self.table.names[0]

    def spread_like(self, centre: ArrayLike, scale: ArrayLike) -> None:
        """Take note of what the columns were like in training."""
        self.table.centre[self.places] = centre
        self.table.scale[self.places] = scale


def input_names(width: int, names: Sequence[str] | None, text: set[int]) -> list[str]:
    """Names of the inputs: X, or where there is text those of the columns.

    Examples
    --------
    >>> input_names(2, ["size", "town"], set()), input_names(2, ["size", "town"], {1})
    (['X'], ['size', 'town'])
    """
    if not text:
        return ["X"]
    return [f"x{place}" for place in range(width)] if names is None else list(names)
