"""From a fitted model to a graph of skl2onnx: every step declared, named in errors, and in doubles."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import numpy as np
import skl2onnx
from numpy.typing import ArrayLike
from onnx.numpy_helper import from_array, to_array
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common._registration import register_converter, register_shape_calculator
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from .onnx_converters import MODELS, STEPS, Nodes, converter, inner_maps, pls_features, set_type
from .onnx_export import ExportError

__all__ = ["convert_model", "inner_maps", "register_converters"]

# Versions of the operations: those that all runtimes of the last years read.
OPSETS = {"": 17, "ai.onnx.ml": 3}
TYPES = {"float32": FloatTensorType, "float64": DoubleTensorType, "text": StringTensorType}
# Steps that skl2onnx writes by itself, in double precision, and that tests hold to 1e-5.
# fmt: off
BY_SKL2ONNX = {
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer", "Normalizer",
    "QuantileTransformer", "PCA", "IncrementalPCA", "TruncatedSVD", "KernelPCA",
    "ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV",
    "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "LinearSVR",
    "MLPRegressor", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV",
    "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "PLSRegression", "QuantileRegressor",
    "Ridge", "RidgeCV", "SGDRegressor", "TheilSenRegressor",
}
# Trees compare numbers of float32, and skl2onnx knows no doubles for them.
TREES = {
    "DecisionTreeRegressor", "ExtraTreeRegressor", "ExtraTreesRegressor", "RandomForestRegressor",
    "GradientBoostingRegressor",
}
# fmt: on
PREFIX = "EntangledKernels"
WAY_OUT = (
    "fit the model with a step that can be exported (docs/export.md lists them), or keep it as a file of "
    "save_model"
)


def convert_model(
    model: Any, inputs: Mapping[str, str], places: Sequence[int] | None, output: str, dtype: str
) -> Any:
    """The graph of a model, as what the package onnx writes to a file.

    Parameters
    ----------
    model : fitted regressor
    inputs : mapping from names to "float32", "float64" or "text"
    places : sequence of int or None
        Columns of the table that the inputs are; None for one input of all columns.
    output : str
        Its name.
    dtype : {"float32", "float64"}
        Of the output; in between all numbers are doubles.
    """
    writer, log = Writer(places), logging.getLogger("skl2onnx")
    width = int(model.n_features_in_) if places is None else 1
    level = log.level
    # It would speak of every type that has a parser for this call.
    log.setLevel(logging.ERROR)
    try:
        with writer.naming(model):
            # skl2onnx takes names of letters and digits only.
            kinds = [
                (f"input{i}", TYPES[kind]([None, width])) for i, kind in enumerate(inputs.values())
            ]
            proto = skl2onnx.convert_sklearn(
                model,
                name=type(model).__name__,
                initial_types=kinds,
                final_types=[("output0", TYPES[dtype]([None, None]))],
                target_opset=OPSETS,
                custom_parsers={type(model): writer.model},
            )
    except ExportError as error:
        text = str(error)
        for i, name in enumerate(inputs):
            text = text.replace(f"column 'input{i}'", f"column '{name}'")
        raise ExportError(text) from error.__cause__
    finally:
        log.setLevel(level)
    names = {f"input{i}": name for i, name in enumerate(inputs)}
    _rename(proto.graph, names | {"output0": output})
    _keep_digits(proto.graph)
    _merge_products(proto.graph)
    return proto


def _keep_digits(graph: Any) -> None:
    """Products by ``Gemm``: onnxruntime merges a number beside ``MatMul`` into it as a float32."""
    matrices = {own.name for own in graph.initializer if len(own.dims) == 2}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in matrices:
            node.op_type = "Gemm"


def _merge_products(graph: Any) -> None:
    """One product for two in a row, such as those with the root of a kernel and with coefficients."""
    constants = {own.name: own for own in graph.initializer}
    products = {node.output[0]: node for node in graph.node if node.op_type == "Gemm"}
    used = Counter(name for node in graph.node for name in node.input)
    for second in list(graph.node):
        first = products.get(second.input[0]) if second.op_type == "Gemm" else None
        known = first is not None and {*first.input[1:], *second.input[1:]} <= constants.keys()
        if first is None or not known or used[second.input[0]] > 1:
            continue
        A, *a = (to_array(constants[name]) for name in first.input[1:])
        B, *b = (to_array(constants[name]) for name in second.input[1:])
        offset = sum([own @ B for own in a] + b, np.zeros(B.shape[1]))
        names = [second.output[0] + "_matrix", second.output[0] + "_row"]
        made = [from_array(A @ B, names[0]), from_array(offset, names[1])]
        graph.initializer.extend(made)
        constants |= {own.name: own for own in made}
        second.input[:] = [first.input[0], *names]
        graph.node.remove(first)
    needed = {name for node in graph.node for name in node.input}
    for own in list(graph.initializer):
        if own.name not in needed:
            graph.initializer.remove(own)


def _rename(graph: Any, names: dict[str, str]) -> None:
    """Give inputs and outputs their names, and another name to what had one of these."""
    inside = {own.name for own in graph.initializer} | {
        name for node in graph.node for name in node.output
    }
    for name in sorted(inside - set(names)):
        new = name
        while new in names.values():
            new += "_"
        names[name] = new
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = names[value.name]
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names[name] for name in node.output]


def register_converters() -> None:
    """Add to skl2onnx the steps and models that it lacks."""
    for kind, write in (STEPS | MODELS).items():
        if kind not in sklearn_operator_name_map:
            parser = Writer().model if kind in MODELS else None
            skl2onnx.update_registered_converter(
                kind, PREFIX + kind.__name__, set_type, converter(write), parser=parser
            )


class Writer:
    """Declares the steps of a model to skl2onnx, one after the other, and names them in errors.

    Parameters
    ----------
    places : sequence of int, optional
        Columns of the table that the inputs are, where each is an input.
    """

    def __init__(self, places: Sequence[int] | None = None) -> None:
        self._places = places
        self._path: list[str] = []
        self._names: dict[int, str] = {}
        _register()

    def model(
        self, scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None
    ) -> list[Any]:
        """Variables of the predictions; numbers are doubles from the first step on."""
        inputs = [
            own
            if isinstance(own.type, StringTensorType)
            else _declare(scope, "SklearnCast", None, [own])
            for own in inputs
        ]
        if self._places is not None:
            given = dict(zip(self._places, inputs, strict=True))
            inputs = [given.get(place) for place in range(int(model.n_features_in_))]
        return [_join(scope, self.step(scope, model, inputs, None, predicts=True))]

    def step(
        self, scope: Any, step: Any, inputs: list[Any], name: str | None, predicts: bool = False
    ) -> list[Any]:
        """Variables that a step gives: several only where nothing has been done to the columns."""
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return inputs
        kind = type(step)
        with self._inside(kind.__name__ if name is None else f"{name} ({kind.__name__})"):
            self._names[id(step)] = " > ".join(self._path)
            if kind is Pipeline:
                for number, (own, part) in enumerate(step.steps):
                    last = number == len(step.steps) - 1
                    inputs = self.step(scope, part, inputs, own, predicts=predicts and last)
                return inputs
            if kind in (FeatureUnion, ColumnTransformer):
                weights = step.transformer_weights or {}
                parts = [
                    (
                        _join(scope, self.step(scope, part, chosen, own)),
                        float(weights.get(own, 1.0)),
                    )
                    for own, part, chosen in _parts(scope, step, inputs)
                ]
                return [_join(scope, [made for made, _ in parts], [weight for _, weight in parts])]
            if kind in (GridSearchCV, RandomizedSearchCV):
                return self.step(scope, step.best_estimator_, inputs, "best_estimator_", predicts)
            if kind is MultiOutputRegressor:
                made = [
                    _join(scope, self.step(scope, part, inputs, f"estimators_[{place}]", predicts))
                    for place, part in enumerate(step.estimators_)
                ]
                return [_join(scope, made)]
            if kind in MODELS and predicts:
                return [self._own_model(scope, step, inputs)]
            return [self._leaf(scope, step, inputs, predicts)]

    def _own_model(self, scope: Any, model: Any, inputs: list[Any]) -> Any:
        """A model of this package, which takes the features of its maps, and rows where it needs them."""
        maps = inner_maps(model)
        takes_rows = not maps or maps[0].name not in ("feature_map_", "features_")
        taken = [_join(scope, inputs)] if takes_rows else []
        for own in maps:
            rows = (
                inputs
                if own.columns is None
                else [_columns(scope, _join(scope, inputs), own.columns)]
            )
            taken.append(_join(scope, self.step(scope, own.map, rows, own.name)))
        return _declare(scope, PREFIX + type(model).__name__, model, taken)

    def _leaf(self, scope: Any, step: Any, inputs: list[Any], predicts: bool) -> Any:
        """A step that one converter writes."""
        kind = type(step)
        text = kind is SimpleImputer and any(isinstance(own, str) for own in step.statistics_)
        if not (text or kind in (OneHotEncoder, OrdinalEncoder)):
            inputs = [_join(scope, inputs)]
            _require_numbers(inputs)
        if kind.__name__ == "PLSRegression" and not predicts:
            return _declare(scope, PREFIX + "PLS", step, inputs)
        if kind in STEPS:
            return _declare(scope, PREFIX + kind.__name__, step, inputs, text=text)
        ours = kind.__module__.startswith("sklearn.") and kind in sklearn_operator_name_map
        if not ours or kind.__name__ not in BY_SKL2ONNX | TREES:
            raise ExportError(f"there is no graph for {kind.__module__}.{kind.__name__}; {WAY_OUT}")
        alias = sklearn_operator_name_map[kind]
        if kind.__name__ not in TREES:
            return _declare(scope, alias, step, inputs)
        single = _declare(scope, "SklearnCast", None, inputs, type=FloatTensorType)
        made = _declare(scope, alias, step, [single], type=FloatTensorType)
        return _declare(scope, "SklearnCast", None, [made])

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        self._path.append(name)
        try:
            yield
        except ExportError as error:
            if "cannot be exported" in str(error):
                raise
            raise ExportError(
                f"{' > '.join(self._path)} cannot be exported to ONNX: {error}"
            ) from None
        finally:
            self._path.pop()

    @contextmanager
    def naming(self, model: Any) -> Iterator[None]:
        """Errors of converters name the step that they were called for."""
        try:
            yield
        except Exception as error:
            if isinstance(error, ExportError) and "cannot be exported" in str(error):
                raise
            operators = [
                frame.f_locals.get("operator") for frame, _ in walk_tb(error.__traceback__)
            ]
            steps = [id(getattr(own, "raw_operator", None)) for own in operators]
            named = [self._names[step] for step in steps if step in self._names]
            where = named[-1] if named else type(model).__name__
            raise ExportError(f"{where} cannot be exported to ONNX: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ExportError) else f"{text[:200]}; {WAY_OUT}"


def _parts(scope: Any, step: Any, inputs: list[Any]) -> Iterator[tuple[str, Any, list[Any]]]:
    """Parts of a union or of a transformer of columns, with the variables that they take."""
    if isinstance(step, FeatureUnion):
        for name, part in step.transformer_list:
            if not (isinstance(part, str) and part == "drop"):
                yield name, part, inputs
        return
    for name, part, _ in step.transformers_:
        places = step._transformer_to_input_indices[name]
        if (isinstance(part, str) and part == "drop") or not len(places):
            continue
        chosen = (
            [inputs[i] for i in places] if len(inputs) > 1 else [_columns(scope, inputs[0], places)]
        )
        yield name, part, chosen


def _declare(
    scope: Any,
    alias: str,
    step: Any,
    inputs: list[Any],
    *,
    text: bool = False,
    type: Any = DoubleTensorType,
) -> Any:
    """The variable that an operator of skl2onnx gives."""
    operator = scope.declare_local_operator(alias, step)
    operator.inputs = list(inputs)
    made = scope.declare_local_variable(
        "variable", (StringTensorType if text else type)([None, None])
    )
    operator.outputs.append(made)
    return made


def _columns(scope: Any, variable: Any, places: ArrayLike) -> Any:
    """Some columns of a variable."""
    operator = scope.declare_local_operator(PREFIX + "Columns")
    operator.inputs, operator.places = [variable], np.asarray(places, dtype=np.int64)
    made = scope.declare_local_variable(
        "columns", type(variable.type)([None, len(operator.places)])
    )
    operator.outputs.append(made)
    return made


def _join(scope: Any, variables: list[Any], weights: list[float] | None = None) -> Any:
    """Variables side by side, as doubles, each times its weight."""
    if len(variables) == 1 and (weights is None or weights == [1.0]):
        return variables[0]
    _require_numbers(variables)
    operator = scope.declare_local_operator(PREFIX + "Join")
    operator.inputs, operator.weights = list(variables), weights
    made = scope.declare_local_variable("joined", DoubleTensorType([None, None]))
    operator.outputs.append(made)
    return made


def _require_numbers(variables: list[Any]) -> None:
    texts = [own.raw_name for own in variables if isinstance(own.type, StringTensorType)]
    if texts:
        raise ExportError(f"it needs numbers, and gets the text of column '{texts[0]}'")


def _write_columns(scope: Any, operator: Any, container: Any) -> None:
    chosen = Nodes(scope, container)(
        "Gather", operator.inputs[0].full_name, operator.places, axis=1
    )
    container.add_node("Identity", chosen, operator.outputs[0].full_name)


def _write_join(scope: Any, operator: Any, container: Any) -> None:
    nodes, parts = Nodes(scope, container), [own.full_name for own in operator.inputs]
    weights = operator.weights or [1.0] * len(parts)
    parts = [
        part if w == 1.0 else nodes("Mul", part, w) for part, w in zip(parts, weights, strict=True)
    ]
    container.add_node("Concat", parts, operator.outputs[0].full_name, axis=1)


def _register() -> None:
    """Converters under names that nobody else uses."""
    named: dict[str, Callable[[Any, Any, Any], None]] = {
        "Columns": _write_columns,
        "Join": _write_join,
        "PLS": converter(pls_features),
    }
    named |= {kind.__name__: converter(write) for kind, write in (STEPS | MODELS).items()}
    for name, convert in named.items():
        register_converter(PREFIX + name, convert, overwrite=True)
        register_shape_calculator(PREFIX + name, set_type, overwrite=True)
