"""Regressors of scikit-learn, which models of this package may hold or be compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPRegressor
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from ..features.trees import Trees
from .columns import Columns, Products, matrix_columns
from .kernels import gram_columns
from .scaling import standardise
from .tree_ensembles import LeafColumns
from .writer import Step, Writer

__all__ = ["REGRESSORS", "linear_predictions"]


def linear_predictions(writer: Writer, columns: Columns, coef: Any, intercept: Any) -> Columns:
    """Predictions x coef^T + intercept, of coefficients (p, m) or (m,)."""
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
    offset = np.broadcast_to(np.asarray(intercept, dtype=np.float64).reshape(-1), W.shape[1])
    return Products(writer.graph, W.shape[1], [(columns.times(W), 1.0)], offset)


def _linear(writer: Writer, model: Any, columns: Columns) -> Columns:
    return linear_predictions(writer, columns, model.coef_, model.intercept_)


def _pls(writer: Writer, model: Any, columns: Columns) -> Columns:
    centred = standardise(columns, model._x_mean, None)
    return linear_predictions(writer, centred, model.coef_, model.intercept_)


def _dummy(writer: Writer, model: Any, columns: Columns) -> Columns:
    constant = np.asarray(model.constant_, dtype=np.float64).reshape(-1)
    return linear_predictions(writer, columns, np.zeros((len(constant), columns.width)), constant)


def _kernel_ridge(writer: Writer, model: Any, columns: Columns) -> Columns:
    if callable(model.kernel) or model.kernel == "precomputed":
        raise writer.refuse(f"there is no graph for kernel={model.kernel!r}")
    params = {name: getattr(model, name) for name in ("gamma", "degree", "coef0")}
    gram = gram_columns(writer, model.kernel, columns, model.X_fit_, params)
    return gram.into(model.dual_coef_.reshape(len(model.dual_coef_), -1))  # (n, p)


def _gaussian_process(writer: Writer, model: Any, columns: Columns) -> Columns:
    right = model.alpha_.reshape(len(model.alpha_), -1) * model._y_train_std  # (n, p)
    values = gram_columns(writer, model.kernel_, columns, model.X_train_).into(right)
    mean = np.broadcast_to(np.asarray(model._y_train_mean, dtype=np.float64), values.width)
    return values.plus(Products(writer.graph, values.width, [], mean))


def _tree(writer: Writer, model: Any, columns: Columns) -> Columns:
    return _average_of_trees(writer, [model], columns)


def _forest(writer: Writer, model: Any, columns: Columns) -> Columns:
    return _average_of_trees(writer, model.estimators_, columns)


def _average_of_trees(writer: Writer, grown: Any, columns: Columns) -> Columns:
    V = np.vstack([tree.tree_.value[:, :, 0] for tree in grown]) / len(grown)  # (nodes, p)
    return _sum_of_trees(writer, grown, V, columns)


def _sum_of_trees(writer: Writer, grown: Any, V: Any, columns: Columns) -> Columns:
    blank_left = np.concatenate([tree.tree_.missing_go_to_left for tree in grown])
    trees = Trees.from_estimators(grown)
    return LeafColumns(writer.graph, columns.matrix(), trees, V.shape[1], lambda W: V @ W, blank_left)


def _gradient_boosting(writer: Writer, model: Any, columns: Columns) -> Columns:
    grown = list(model.estimators_[:, 0])
    V = model.learning_rate * np.vstack([tree.tree_.value[:, :, 0] for tree in grown])
    sums = _sum_of_trees(writer, grown, V, columns).matrix()
    if isinstance(model.init_, str):
        return matrix_columns(writer.graph, sums, 1)
    start = writer.predictions(model.init_, columns, "init_").matrix()
    return matrix_columns(writer.graph, writer.graph.add("Add", start, sums), 1)


def _network(writer: Writer, model: Any, columns: Columns) -> Columns:
    graph, names = writer.graph, {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid"}
    layers = list(zip(model.coefs_, model.intercepts_, strict=True))
    for number, (weights, offset) in enumerate(layers):
        tensor = columns.times(weights.astype(np.float64))
        tensor = graph.add("Add", tensor, offset.astype(np.float64))
        if number < len(layers) - 1 and model.activation != "identity":
            tensor = graph.add(names[model.activation], tensor)
        columns = matrix_columns(graph, tensor, weights.shape[1])
    if model.out_activation_ != "identity":
        raise writer.refuse(f"there is no graph for loss={model.loss!r}", "use loss='squared_error'")
    return columns


LINEAR = (
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lars",
    "LarsCV",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "LinearRegression",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "SGDRegressor",
    "TheilSenRegressor",
)
REGRESSORS: dict[type, Step] = {
    **dict.fromkeys((getattr(linear_model, name) for name in LINEAR), _linear),
    LinearSVR: _linear,
    PLSRegression: _pls,
    DummyRegressor: _dummy,
    KernelRidge: _kernel_ridge,
    GaussianProcessRegressor: _gaussian_process,
    DecisionTreeRegressor: _tree,
    ExtraTreeRegressor: _tree,
    ExtraTreesRegressor: _forest,
    RandomForestRegressor: _forest,
    GradientBoostingRegressor: _gradient_boosting,
    MLPRegressor: _network,
}
