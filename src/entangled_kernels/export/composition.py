"""Steps that are made of steps: pipelines, unions, and transformers for some of the columns."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import (
    RFE,
    RFECV,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from .columns import Beside, Columns, Products, matrix_columns
from .writer import Step, Writer

__all__ = ["REGRESSORS", "TRANSFORMERS"]


def _pipeline(writer: Writer, step: Any, columns: Columns) -> Columns:
    for name, part in step.steps:
        columns = writer.features(part, columns, name)
    return columns


def _feature_union(writer: Writer, step: Any, columns: Columns) -> Columns:
    weights, parts = step.transformer_weights or {}, []
    for name, part in step.transformer_list:
        if isinstance(part, str) and part == "drop":
            continue
        made = writer.features(part, columns, name)
        if name in weights:
            made = Products(writer.graph, made.width, [(made.matrix(), float(weights[name]))])
        parts.append(made)
    return Beside(writer.graph, parts)


def _column_transformer(writer: Writer, step: Any, columns: Columns) -> Columns:
    weights, parts = step.transformer_weights or {}, []
    for name, part, _ in step.transformers_:
        places = step._transformer_to_input_indices[name]
        if (isinstance(part, str) and part == "drop") or not len(places):
            continue
        made = writer.features(part, columns.select(places), name)
        if name in weights:
            made = Products(writer.graph, made.width, [(made.matrix(), float(weights[name]))])
        parts.append(made)
    return Beside(writer.graph, parts)


def _selector(writer: Writer, step: Any, columns: Columns) -> Columns:
    # All columns are taken first: a selection changes nothing about the table that the model takes.
    everything = matrix_columns(writer.graph, columns.matrix(), columns.width)
    return everything.select(step.get_support(indices=True))


def _pipeline_regressor(writer: Writer, model: Any, columns: Columns) -> Columns:
    for name, part in model.steps[:-1]:
        columns = writer.features(part, columns, name)
    name, last = model.steps[-1]
    return writer.predictions(last, columns, name)


def _search(writer: Writer, model: Any, columns: Columns) -> Columns:
    return writer.predictions(model.best_estimator_, columns, "best_estimator_")


def _several_regressors(writer: Writer, model: Any, columns: Columns) -> Columns:
    parts = [
        writer.predictions(part, columns, f"estimators_[{place}]")
        for place, part in enumerate(model.estimators_)
    ]
    return Beside(writer.graph, parts)


TRANSFORMERS: dict[type, Step] = {
    Pipeline: _pipeline,
    FeatureUnion: _feature_union,
    ColumnTransformer: _column_transformer,
    **dict.fromkeys(
        (
            GenericUnivariateSelect,
            RFE,
            RFECV,
            SelectFdr,
            SelectFpr,
            SelectFromModel,
            SelectFwe,
            SelectKBest,
            SelectPercentile,
            SequentialFeatureSelector,
            VarianceThreshold,
        ),
        _selector,
    ),
}
REGRESSORS: dict[type, Step] = {
    Pipeline: _pipeline_regressor,
    GridSearchCV: _search,
    RandomizedSearchCV: _search,
    MultiOutputRegressor: _several_regressors,
}
