"""Transformers of scikit-learn for columns with few values, text among them, and for blanks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from .columns import Beside, Columns, Products, Texts, matrix_columns
from .graph import DOUBLE, FLOAT
from .writer import Step, Writer

__all__ = ["TRANSFORMERS"]

BLANK_WAY_OUT = "fill blanks first, with SimpleImputer(strategy='constant', fill_value='missing')"


def _one_hot(writer: Writer, step: Any, columns: Columns) -> Columns:
    if getattr(step, "_infrequent_enabled", False):
        raise writer.refuse(
            "there is no graph for infrequent categories", "leave out min_frequency and max_categories"
        )
    dropped = [None] * columns.width if step.drop_idx_ is None else step.drop_idx_
    parts = []
    for place, categories in enumerate(step.categories_):
        hits = _hits(writer, columns, place, categories)
        if step.handle_unknown == "error":
            hits = _nan_without_hit(writer, hits)
        kept = np.flatnonzero(
            np.arange(len(categories)) != (-1 if dropped[place] is None else dropped[place])
        )
        parts.append(matrix_columns(writer.graph, hits, len(categories)).select(kept))
    return Beside(writer.graph, parts)


def _ordinal(writer: Writer, step: Any, columns: Columns) -> Columns:
    if getattr(step, "_infrequent_enabled", False):
        raise writer.refuse(
            "there is no graph for infrequent categories", "leave out min_frequency and max_categories"
        )
    graph, parts = writer.graph, []
    for place, categories in enumerate(step.categories_):
        hits, codes = _hits(writer, columns, place, categories), np.arange(len(categories), dtype=float)
        if step.handle_unknown == "error":
            code = graph.add("Gemm", _nan_without_hit(writer, hits), codes[:, None])
        else:
            # A hit of category j gives the unknown value, plus j less the unknown value.
            unknown = float(step.unknown_value)
            if np.isnan(unknown):
                code = graph.add("Gemm", _nan_without_hit(writer, hits), codes[:, None])
            else:
                code = graph.add("Add", graph.add("Gemm", hits, codes[:, None] - unknown), unknown)
        parts.append(matrix_columns(graph, code, 1))
    return Beside(graph, parts)


def _hits(writer: Writer, columns: Columns, place: int, categories: NDArray[Any]) -> str:
    """Which of the categories a column holds, as 0 and 1, (n, number of categories)."""
    graph = writer.graph
    if all(isinstance(value, str) for value in categories):
        texts = [str(value) for value in categories]
        code = graph.add(
            "LabelEncoder",
            columns.text(place, texts),
            domain="ai.onnx.ml",
            keys_strings=texts,
            values_int64s=list(range(len(texts))),
            default_int64=-1,
        )
        equal = graph.add("Equal", code, np.arange(len(texts)))
    elif all(isinstance(value, int | float | np.number) and value == value for value in categories):
        # In float32, in which 0.1 of the table and 0.1 of the model are the same.
        numbers = graph.add("Cast", columns.select([place]).matrix(), to=FLOAT)
        equal = graph.add("Equal", numbers, categories.astype(np.float32))
    else:
        raise writer.refuse(
            f"column {place} has blanks, or both texts and numbers, as categories", BLANK_WAY_OUT
        )
    return graph.add("Cast", equal, to=DOUBLE)


def _nan_without_hit(writer: Writer, hits: str) -> str:
    """NaN in rows without any hit: what `transform` refuses must not become a number."""
    graph = writer.graph
    count = graph.add("ReduceSum", hits, [1], keepdims=1)
    # 0 / 0 where there is none, else 1.
    return graph.add("Mul", hits, graph.add("Div", count, count))


def _simple_imputer(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph, texts = writer.graph, [isinstance(value, str) for value in step.statistics_]
    if all(texts):
        return _fill_texts(writer, step, columns)
    if any(texts):
        raise writer.refuse("it fills texts and numbers at once", "give each kind an imputer of its own")
    blank, statistics = _blank(writer, step, columns), np.asarray(step.statistics_, dtype=np.float64)
    kept = np.arange(columns.width) if step.keep_empty_features else np.flatnonzero(~np.isnan(statistics))
    filled = graph.add("Where", blank, np.nan_to_num(statistics)[None], columns.matrix())
    source = columns if len(kept) == columns.width else None
    numbers = Products(graph, columns.width, [(filled, 1.0)], source=source).select(kept)
    if step.indicator_ is None:
        return numbers
    marks = matrix_columns(graph, graph.add("Cast", blank, to=DOUBLE), columns.width)
    return Beside(graph, [numbers, marks.select(step.indicator_.features_)])


def _fill_texts(writer: Writer, step: Any, columns: Columns) -> Columns:
    """A text that is empty is a blank: tensors of text have no other."""
    if step.indicator_ is not None:
        raise writer.refuse("there is no graph for add_indicator with text", "use add_indicator=False")
    graph, tensors = writer.graph, []
    for place, text in enumerate(step.statistics_):
        column = columns.text(place)
        empty = graph.add(
            "LabelEncoder", column, domain="ai.onnx.ml", keys_strings=[""], values_int64s=[1], default_int64=0
        )
        tensors.append(graph.add("Where", graph.add("Equal", empty, [1]), np.array([[text]]), column))
    return Texts(graph, tensors)


def _missing_indicator(writer: Writer, step: Any, columns: Columns) -> Columns:
    marks = writer.graph.add("Cast", _blank(writer, step, columns), to=DOUBLE)
    return matrix_columns(writer.graph, marks, columns.width).select(step.features_)


def _blank(writer: Writer, step: Any, columns: Columns) -> str:
    if isinstance(step.missing_values, float) and np.isnan(step.missing_values):
        return writer.graph.add("IsNaN", columns.matrix())
    if not isinstance(step.missing_values, int | float | np.number):
        raise writer.refuse(f"there is no graph for missing_values={step.missing_values!r}", "use NaN")
    return writer.graph.add("Equal", columns.matrix(), float(step.missing_values))


TRANSFORMERS: dict[type, Step] = {
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    SimpleImputer: _simple_imputer,
    MissingIndicator: _missing_indicator,
}
