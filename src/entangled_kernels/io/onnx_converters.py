"""The graph of every step: maps and models of this package, and steps of scikit-learn.

skl2onnx converts the steps named in `BY_SKL2ONNX`. The converters here are for steps that it lacks
(the maps and models of this package, `Nystroem`, `RBFSampler`, `MissingIndicator`, `KernelRidge`,
`DummyRegressor`), that it cannot convert in double precision (`PolynomialFeatures`,
`PowerTransformer`, `SimpleImputer`), or where it takes an unknown text for a known one. All converters
compute in double precision: coefficients of kernel ridge are large if alpha is small, and kernel
values in float32 would lose their digits.

A converter is a function ``write(x, step)`` that returns the tensor which the step computes from x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import skl2onnx
from onnx.helper import get_attribute_value
from onnx.numpy_helper import from_array, to_array
from scipy.sparse import issparse
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn import feature_selection
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
)

from ..estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorFourierRidge,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from ..features import (
    ColumnWidthFeatures,
    EvidenceFeatures,
    ForestFeatures,
    OperatorFourierFeatures,
    TargetProcessFeatures,
)
from ..kernels import KrausKernel, SeparableKernel, SumKernel
from ..kernels.scalar import ExponentialDot, FeatureKernel
from ..linalg import Array
from .onnx_export import ExportError
from .onnx_graph import OPSETS, WAY_OUT, Columns, Graph, Tensor, concatenate

__all__ = ["FUNCTIONS", "NAMES", "register_converters", "write_model"]

TINY = float(np.finfo(np.float64).tiny)
# Steps that skl2onnx writes in double precision; tests check them.
# fmt: off
BY_SKL2ONNX = {
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer", "Normalizer",
    "QuantileTransformer", "PCA", "IncrementalPCA", "TruncatedSVD", "KernelPCA",
    "ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars",
    "LarsCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression",
    "LinearSVR", "MLPRegressor", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso",
    "MultiTaskLassoCV", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV",
    "PLSRegression", "QuantileRegressor", "Ridge", "RidgeCV", "SGDRegressor", "TheilSenRegressor",
}
# Trees compare numbers of float32, and skl2onnx writes no doubles for them.
TREES = {
    "DecisionTreeRegressor", "ExtraTreeRegressor", "ExtraTreesRegressor", "RandomForestRegressor",
    "GradientBoostingRegressor",
}
# fmt: on
SELECTORS = [
    kind
    for kind in vars(feature_selection).values()
    if isinstance(kind, type) and hasattr(kind, "get_support")
]
# Fitted attributes that hold the centre and the scale of columns.
SPREADS = (
    ("column_mean_", "column_scale_"),
    ("mean_", "scale_"),
    ("center_", "scale_"),
    ("data_min_", "data_range_"),
)
# Inputs and outputs of a step: a tensor of numbers, or columns of the table that are not changed.
Rows = Tensor | Columns
# Converters by exact type, since a subclass may compute something else, and the types whose
# converters take columns, which may be text.
CONVERTERS: dict[type, Callable[[Any, Any], Rows]] = {}
TAKE_COLUMNS: set[type] = set()

Converter = TypeVar("Converter", bound=Callable[..., Any])


def converts(*kinds: type, columns: bool = False) -> Callable[[Converter], Converter]:
    """Register a converter for some types."""

    def register(write: Converter) -> Converter:
        CONVERTERS.update(dict.fromkeys(kinds, write))
        TAKE_COLUMNS.update(kinds if columns else ())
        return write

    return register


def write_model(model: Any, columns: Sequence[str], dtype: str) -> tuple[Graph, str, Any]:
    """The graph of a fitted regressor, the name of its output, and the ONNX model."""
    graph = Graph(columns)
    rows = Columns(graph, np.arange(len(columns)))
    prediction = write_step(rows, model, predicts=True).numbers()
    output = "prediction" + "_" * ("prediction" in graph.inputs(dtype))
    return graph, output, graph.finish(prediction, type(model).__name__, output, dtype)


def write_step(x: Rows, step: Any, name: str | None = None, *, predicts: bool = False) -> Rows:
    """Add a fitted step to the graph of x and return what it computes.

    Parameters
    ----------
    x : Tensor or Columns
    step : fitted transformer or regressor
    name : str, optional
        Name of the step in its pipeline or model, for errors.
    predicts : bool
        Whether to write predictions, for a step that can also transform.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return x
    kind = type(step)
    with x.graph.inside(kind.__name__ if name is None else f"{name} ({kind.__name__})"):
        if kind is Pipeline:
            for number, (part_name, part) in enumerate(step.steps, start=1):
                x = write_step(x, part, part_name, predicts=predicts and number == len(step.steps))
            return x
        if kind in (FeatureUnion, ColumnTransformer):
            return _write_union(x, step)
        if kind in (GridSearchCV, RandomizedSearchCV):
            return write_step(x, step.best_estimator_, "best_estimator_", predicts=predicts)
        if kind is MultiOutputRegressor:
            parts = [
                write_step(x, part, f"estimators_[{index}]", predicts=predicts).numbers()
                for index, part in enumerate(step.estimators_)
            ]
            return concatenate(x.graph, parts)
        if kind in TAKE_COLUMNS:
            return CONVERTERS[kind](x, step)
        rows = x.numbers()
        _note_spread(rows, step)
        if kind is PLSRegression and not predicts:
            return _pls_features(rows, step)
        write: Callable[[Any, Any], Rows] = CONVERTERS.get(kind) or _write_by_skl2onnx
        return write(rows, step)


def _write_union(x: Rows, step: Any) -> Rows:
    """Parts of a union or of a ColumnTransformer side by side, each times its weight."""
    if isinstance(step, FeatureUnion):
        parts = [(name, part, x) for name, part in step.transformer_list]
    else:
        indices = step._transformer_to_input_indices
        parts = [
            (name, part, x.take(indices[name]))
            for name, part, _ in step.transformers_
            if len(indices[name])
        ]
    weights, made = step.transformer_weights or {}, []
    for name, part, rows in parts:
        if not (isinstance(part, str) and part == "drop"):
            values = write_step(rows, part, name)
            weight = weights.get(name, 1.0)
            made.append(values if weight == 1.0 else values.numbers() * float(weight))
    return made[0] if len(made) == 1 else concatenate(x.graph, [part.numbers() for part in made])


def _write_by_skl2onnx(x: Tensor, step: Any) -> Tensor:
    """A step of scikit-learn with the converter of skl2onnx."""
    kind = type(step)
    known = kind.__module__.startswith("sklearn.") and kind in sklearn_operator_name_map
    if not known or kind.__name__ not in BY_SKL2ONNX | TREES:
        raise ExportError(f"there is no graph for {kind.__module__}.{kind.__name__}; {WAY_OUT}")
    tree = kind.__name__ in TREES
    taken = (FloatTensorType if tree else DoubleTensorType)([None, step.n_features_in_])
    model = skl2onnx.convert_sklearn(step, initial_types=[("X", taken)], target_opset=OPSETS)
    made = x.graph.insert(model, x.single() if tree else x)
    return made.double() if tree else made


def _note_spread(x: Tensor, step: Any) -> None:
    """Keep the centre and scale of columns that a step has from training."""
    for names in SPREADS:
        values: list[Any] = [getattr(step, name, None) for name in names]
        if x.indices and all(np.shape(value) == (len(x.indices),) for value in values):
            indices = list(x.indices)
            x.graph.centre[indices], x.graph.scale[indices] = values
            return


def register_converters() -> None:
    """Add to skl2onnx the steps and models that it lacks."""
    for kind in CONVERTERS:
        if kind not in sklearn_operator_name_map:
            name = f"EntangledKernels{kind.__name__}"
            skl2onnx.update_registered_converter(kind, name, _set_shape, _convert)


def _set_shape(operator: Any) -> None:
    operator.outputs[0].type.shape = [None, None]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The converter for skl2onnx: writes the graph of a step, and copies it into the container."""
    graph = Graph(new_name=scope.get_unique_variable_name)
    parts = [Tensor(graph, variable.full_name).double() for variable in operator.inputs]
    rows = concatenate(graph, parts)
    made = write_step(rows, operator.raw_operator, predicts=True).numbers()
    output = operator.outputs[0]
    kind = output.type.to_onnx_type().tensor_type.elem_type
    graph.remove_unused([made.name])
    for name, tensor in graph.constants.items():
        array = to_array(tensor)
        container.add_initializer(
            name, tensor.data_type, list(tensor.dims), array.reshape(-1).tolist()
        )
    for node in graph.nodes:
        attributes = {item.name: get_attribute_value(item) for item in node.attribute}
        container.add_node(
            node.op_type, [*node.input], [*node.output], op_domain=node.domain, **attributes
        )
    container.add_node("Cast", made.name, output.full_name, to=kind)


# Scalar kernels.


def gram(x: Tensor, kernel: Any, Z: Any, params: Mapping[str, Any] | None = None) -> Tensor:
    """Values of a kernel, by name or as an object, of rows with constant rows Z, (n, m)."""
    Z = np.asarray(Z.toarray() if issparse(Z) else Z, dtype=np.float64)
    if isinstance(kernel, str) and kernel in NAMES:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        settings = {"gamma": 1.0 / Z.shape[1], "degree": 3, "coef0": 1} | given
        return NAMES[kernel](x, Z, {name: float(settings[name]) for name in SETTINGS})
    kind = type(kernel)
    if kind is gp.Sum:
        return gram(x, kernel.k1, Z) + gram(x, kernel.k2, Z)
    if kind is gp.Product:
        return gram(x, kernel.k1, Z) * gram(x, kernel.k2, Z)
    if kind is gp.Exponentiation:
        return gram(x, kernel.kernel, Z) ** float(kernel.exponent)
    if kind is gp.ConstantKernel:
        return x.linear(np.zeros_like(Z).T, np.full(len(Z), kernel.constant_value))
    if kind is gp.WhiteKernel:
        # New rows share no noise with those of training.
        return x.linear(np.zeros_like(Z).T)
    if kind is gp.DotProduct:
        return x.linear(Z.T, np.full(len(Z), float(kernel.sigma_0) ** 2))
    if kind is ExponentialDot:
        return x.linear(Z.T).apply("Exp")
    if kind is FeatureKernel:
        Psi = np.asarray(kernel.factors(Z, None)[0])
        return _features(x, kernel.feature_map).linear(
            Psi.T if kernel.root is None else kernel.root @ Psi.T
        )
    if kind is gp.RBF or (kind is gp.Matern and kernel.nu == np.inf):
        return half_squares(x, Z, kernel.length_scale).apply("Exp")
    if kind is gp.RationalQuadratic:
        halves, alpha = half_squares(x, Z, kernel.length_scale), float(kernel.alpha)
        return (1.0 - halves * (1.0 / alpha)) ** -alpha
    if kind is gp.Matern:
        return _matern(x, kernel, Z)
    named = f"the kernel {kind.__name__}" if isinstance(kernel, gp.Kernel) else f"kernel={kernel!r}"
    raise ExportError(f"there is no graph for {named}")


def half_squares(x: Tensor, Z: Array, widths: Any) -> Tensor:
    """``-|x - z|^2 / 2`` for rows x and constant rows z, columns divided by widths, (n, m).

    Rows are centred first, which leaves distances as they are and keeps the digits of columns that
    are far from zero.
    """
    centre = Z.mean(axis=0)
    x, Z = (x - centre) / np.asarray(widths, dtype=float), (Z - centre) / widths
    return x.linear(Z.T, -0.5 * np.sum(Z**2, axis=1)) + (x * x).row_sums() * -0.5


def _matern(x: Tensor, kernel: Any, Z: Array) -> Tensor:
    """With s = sqrt(2 nu) distance: exp(-s), (1 + s) exp(-s), (1 + s + s^2 / 3) exp(-s)."""
    if kernel.nu not in (0.5, 1.5, 2.5):
        raise ExportError(
            f"there is no graph for Matern kernels of nu={kernel.nu}, only of 0.5, 1.5, 2.5, inf"
        )
    halves = half_squares(x, Z, np.asarray(kernel.length_scale) / np.sqrt(2.0 * kernel.nu))
    s = (halves * -2.0).apply("Max", 0.0).apply("Sqrt")
    decay = s.apply("Neg").apply("Exp")
    if kernel.nu == 0.5:
        return decay
    bend = s + 1.0
    return (bend if kernel.nu == 1.5 else bend + s * s * (1.0 / 3.0)) * decay


def _cosines(x: Tensor, Z: Array, settings: Mapping[str, float]) -> Tensor:
    sizes = np.linalg.norm(Z, axis=1, keepdims=True)
    # Rows of zeros have a cosine of zero with all others.
    size = (x * x).row_sums().apply("Sqrt").apply("Max", TINY)
    return (x / size).linear((Z / np.where(sizes > 0.0, sizes, 1.0)).T)


def _laplacian(x: Tensor, Z: Array, settings: Mapping[str, float]) -> Tensor:
    apart = (x.apply("Unsqueeze", [1]) - Z[None]).apply("Abs")  # (n, m, d)
    return (apart.apply("ReduceSum", [2], keepdims=0) * -settings["gamma"]).apply("Exp")


def _rbf(x: Tensor, Z: Array, settings: Mapping[str, float]) -> Tensor:
    return half_squares(x, Z, 1.0 / np.sqrt(2.0 * settings["gamma"])).apply("Exp")


def _scaled_dot(x: Tensor, Z: Array, settings: Mapping[str, float]) -> Tensor:
    return x.linear(Z.T * settings["gamma"], np.full(len(Z), settings["coef0"]))


def _power_of_dot(x: Tensor, Z: Array, settings: Mapping[str, float]) -> Tensor:
    return _scaled_dot(x, Z, settings) ** settings["degree"]


SETTINGS = ("gamma", "degree", "coef0")
NAMES: dict[str, Callable[[Tensor, Array, Mapping[str, float]], Tensor]] = {
    "linear": lambda x, Z, settings: x.linear(Z.T),
    "rbf": _rbf,
    "poly": _power_of_dot,
    "polynomial": _power_of_dot,
    "sigmoid": lambda x, Z, settings: _scaled_dot(x, Z, settings).apply("Tanh"),
    "cosine": _cosines,
    "laplacian": _laplacian,
}


# Feature maps of this package, and kernel approximations of scikit-learn.


def _features(x: Rows, feature_map: Any, name: str = "feature_map") -> Tensor:
    """Features of a map inside a model or a kernel; the rows themselves without a map."""
    return write_step(x, feature_map, name).numbers()


def _within(x: Tensor, lower: Any, upper: Any) -> Tensor:
    """Columns clipped to limits, not changed where these are infinite; infinity becomes NaN."""
    if not np.isfinite(lower).all():
        return x
    return x.apply("Max", lower).apply("Min", upper) + (x - x)


def _cos(x: Tensor) -> Tensor:
    """The cosine as a sine, since onnxruntime 1.18 has cosines of float32 only."""
    return (x + 0.5 * np.pi).apply("Sin")


@converts(ColumnWidthFeatures, EvidenceFeatures)
def _kernel_features(x: Tensor, step: Any) -> Tensor:
    x = _within(x, step.lower_, step.upper_)
    if step.warp:
        x = _yeo_johnson((x - step.column_mean_) / step.column_scale_, step.powers_)
    Z = (x - step.mean_) / step.scale_
    return gram(Z, step.kernel_, step.components_).linear(step._whitener)


@converts(TargetProcessFeatures)
def _target_processes(x: Tensor, step: Any) -> Tensor:
    parts = _within(x, step.lower_, step.upper_), _within(x, *step.range_)
    predictions = []
    for target, dual in enumerate(step.dual_coef_.T):
        relative, kernels = step.kernels(target)
        scale, R = step.scale_ * relative, step.components_ / relative
        first, second = (
            gram((rows - step.mean_) / scale, kernel, R)
            for kernel, rows in zip(kernels, parts, strict=True)
        )
        predictions.append((first + second).linear(dual[:, None]))
    return concatenate(x.graph, predictions)


@converts(ForestFeatures)
def _forest_features(x: Tensor, step: Any) -> Tensor:
    """Shares of trees in which a row has the leaf of a component, and means of targets in leaves.

    The operation for trees adds numbers of float32, so it gets integers, whose sums are exact. A
    mean is the sum of a whole number of units and of a rest that is so small that its rounding does
    not matter.
    """
    m, n_trees = step.components_.shape
    x = ((x - step.mean_) / step.scale_).single().double()
    component, _ = np.indices(step.components_.shape)
    ones = np.ones(component.size)
    counts = _tree_sums(x, step.trees_, step.components_.ravel(), component.ravel(), ones, m)
    features = counts / float(n_trees)
    if step._forecasts.size:
        leaves = np.flatnonzero(step.trees_.children[:, 0] == np.arange(len(step.trees_.feature)))
        values, q = step._forecasts[leaves] / n_trees, step._forecasts.shape[1]
        unit = 2.0 ** np.ceil(np.log2(np.abs(values).max() * n_trees + TINY) - 22.0)
        whole = np.round(values / unit)
        at, column = np.repeat(leaves, q), np.tile(np.arange(q), len(leaves))
        units = _tree_sums(x, step.trees_, at, column, whole.ravel(), q)
        rest = _tree_sums(x, step.trees_, at, column, (values - whole * unit).ravel(), q)
        features = concatenate(x.graph, [features, units * float(unit) + rest])
    if step._whitener is not None:
        features = features.linear(step._whitener)
    # Rows with NaN give NaN, as everywhere else.
    return features + (x * 0.0).row_sums()


def _tree_sums(
    x: Tensor, trees: Any, at: Any, target: Any, numbers: Array, n_targets: int
) -> Tensor:
    """Sums over trees of the numbers in the leaves that rows reach, (n, number of targets).

    Number i is of the node ``at[i]``, and added to the column ``target[i]``.
    """
    n = len(trees.feature)
    tree = np.repeat(np.arange(len(trees.roots)), np.diff(np.append(trees.roots, n)))
    first = np.searchsorted(tree, tree)
    node, leaf = np.arange(n) - first, trees.children[:, 0] == np.arange(n)
    # The children of a leaf are the leaf itself here; ONNX wants none, which is 0.
    children = np.where(leaf[:, None], 0, trees.children - first[:, None])
    used = np.flatnonzero(numbers)
    thresholds = np.where(leaf, 0.0, trees.threshold).astype(np.float64)
    sums = x.apply(
        "TreeEnsembleRegressor",
        n_targets=int(n_targets),
        aggregate_function="SUM",
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=trees.feature.tolist(),
        nodes_values_as_tensor=from_array(thresholds, "values"),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_truenodeids=children[:, 0].tolist(),
        nodes_falsenodeids=children[:, 1].tolist(),
        target_treeids=tree[at[used]].tolist(),
        target_nodeids=node[at[used]].tolist(),
        target_ids=np.asarray(target)[used].tolist(),
        target_weights_as_tensor=from_array(numbers[used].astype(np.float64), "weights"),
    )
    return sums.double()


@converts(OperatorFourierFeatures)
def _operator_fourier_features(x: Tensor, step: Any) -> Tensor:
    angles = x.linear(step.frequencies_.T)
    waves = concatenate(x.graph, [_cos(angles), angles.apply("Sin")])
    return waves / float(np.sqrt(step.n_frequencies))


@converts(Nystroem)
def _nystroem(x: Tensor, step: Any) -> Tensor:
    params = {name: getattr(step, name) for name in SETTINGS}
    return gram(x, step.kernel, step.components_, params).linear(step.normalization_.T)


@converts(RBFSampler)
def _rbf_sampler(x: Tensor, step: Any) -> Tensor:
    angles = x.linear(step.random_weights_, step.random_offset_)
    return _cos(angles) * float(np.sqrt(2.0 / len(step.random_offset_)))


# Transformers of columns.


@converts(PowerTransformer)
def _power_transformer(x: Tensor, step: Any) -> Tensor:
    apply = _box_cox if step.method == "box-cox" else _yeo_johnson
    x = apply(x, np.asarray(step.lambdas_, dtype=float))
    return (x - step._scaler.mean_) / step._scaler.scale_ if step.standardize else x


def _yeo_johnson(x: Tensor, powers: Array) -> Tensor:
    """Box-Cox of 1 + x above zero, and of 1 - x with the power 2 - lambda, mirrored, below."""
    above = _box_cox(x.apply("Max", 0.0) + 1.0, powers)
    return above - _box_cox(1.0 - x.apply("Min", 0.0), 2.0 - powers)


def _box_cox(x: Tensor, powers: Array) -> Tensor:
    """(x^power - 1) / power of every column, its logarithm where the power is zero."""
    none = np.abs(powers) < np.finfo(np.float64).eps
    some = np.where(none, 1.0, powers)
    power = (x**some - 1.0) / some
    if not none.any():
        return power
    return power * (1.0 - none) + x.apply("Log") * none.astype(float)


@converts(FunctionTransformer)
def _function_transformer(x: Tensor, step: Any) -> Tensor:
    if step.func is None:
        return x
    if step.kw_args or step.func not in FUNCTIONS:
        name = getattr(step.func, "__name__", repr(step.func))
        name += " with kw_args" if step.kw_args else ""
        known = ", ".join(sorted(function.__name__ for function in FUNCTIONS))
        raise ExportError(f"there is no graph for func={name}; use one of numpy's {known}")
    function = FUNCTIONS[step.func]
    return x.apply(function) if isinstance(function, str) else function(x)


# Functions of numpy for FunctionTransformer: the name of an operation, or a formula. The inverse of
# sinh is one since onnxruntime has that of float32 only.
FUNCTIONS: dict[Any, Any] = {
    np.abs: "Abs",
    np.arcsinh: lambda x: (
        x.apply("Sign") * (x.apply("Abs") + (x * x + 1.0).apply("Sqrt")).apply("Log")
    ),
    np.cbrt: lambda x: x.apply("Sign") * x.apply("Abs") ** (1.0 / 3.0),
    np.cos: _cos,
    np.exp: "Exp",
    np.expm1: lambda x: x.apply("Exp") - 1.0,
    np.log: "Log",
    np.log10: lambda x: x.apply("Log") / np.log(10.0),
    np.log1p: lambda x: (x + 1.0).apply("Log"),
    np.log2: lambda x: x.apply("Log") / np.log(2.0),
    np.negative: "Neg",
    np.reciprocal: "Reciprocal",
    np.sin: "Sin",
    np.sqrt: "Sqrt",
    np.square: lambda x: x * x,
    np.tanh: "Tanh",
}


@converts(PolynomialFeatures)
def _polynomials(x: Tensor, step: Any) -> Tensor:
    """Products of columns, a column of ones among them."""
    powers = step.powers_  # (m, d)
    d, degree = powers.shape[1], int(powers.sum(axis=1).max())
    ones = x.linear(np.zeros((d, 1)), np.ones(1))
    extended = concatenate(x.graph, [x, ones])
    factors = np.full((degree, len(powers)), d)
    for term, exponents in enumerate(powers):
        used = np.repeat(np.arange(d), exponents)
        factors[: len(used), term] = used
    product = ones
    for number, columns in enumerate(factors):
        product = product * extended.take(columns) if number else extended.take(columns)
    return product


def _pls_features(x: Tensor, step: Any) -> Tensor:
    """Scores of PLS as a transformer; skl2onnx converts its predictions only."""
    standardised: Tensor = (x - step._x_mean) / step._x_std
    return standardised.linear(step.x_rotations_)


@converts(*SELECTORS)
def _select(x: Tensor, step: Any) -> Tensor:
    return x.take(step.get_support(indices=True))


# Missing values and categories, where columns may be text.


@converts(SimpleImputer, columns=True)
def _simple_imputer(x: Rows, step: Any) -> Rows:
    """Missing values filled; in tensors of text the empty text is the missing value."""
    texts = [isinstance(value, str) for value in step.statistics_]
    if any(texts):
        if not all(texts):
            raise ExportError(
                "it fills texts and numbers at once; give each kind an imputer for itself"
            )
        if step.indicator_ is not None:
            raise ExportError(
                "there is no graph for add_indicator with text; use add_indicator=False"
            )
        columns = _need_columns(x)
        filled = dict(columns.filled)
        for index, value in enumerate(step.statistics_):
            text = columns.text(index, [value])
            known = {"keys_strings": [""], "values_int64s": [1], "default_int64": 0}
            empty = text.apply("LabelEncoder", **known).apply("Equal", [1])
            filled[int(columns.indices[index])] = empty.apply(
                "Where", np.array([[value]], dtype=object), text
            )
        return Columns(x.graph, columns.indices, filled)
    rows = x.numbers()
    missing, statistics = _missing(rows, step), np.asarray(step.statistics_, dtype=np.float64)
    made = missing.apply("Where", np.nan_to_num(statistics)[None], rows)
    if step.keep_empty_features or np.isfinite(statistics).all():
        made.indices = rows.indices
    else:
        made = made.take(np.flatnonzero(~np.isnan(statistics)))
    if step.indicator_ is None:
        return made
    marks = missing.double().take(step.indicator_.features_)
    return concatenate(x.graph, [made, marks])


@converts(MissingIndicator)
def _missing_indicator(x: Tensor, step: Any) -> Tensor:
    return _missing(x, step).double().take(step.features_)


def _missing(x: Tensor, step: Any) -> Tensor:
    """Which values are missing, as truth values."""
    if isinstance(step.missing_values, float) and np.isnan(step.missing_values):
        return x.apply("IsNaN")
    if not isinstance(step.missing_values, int | float | np.number):
        raise ExportError(f"there is no graph for missing_values={step.missing_values!r}; use NaN")
    return x.apply("Equal", float(step.missing_values))


def _need_columns(x: Rows) -> Columns:
    """The columns of the table that text is read from."""
    if isinstance(x, Tensor):
        raise ExportError("it needs text, and gets the numbers of another step")
    return x


@converts(OneHotEncoder, columns=True)
def _one_hot(x: Rows, step: Any) -> Tensor:
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    parts = []
    for hits, drop, categories in zip(_hits(x, step), dropped, step.categories_, strict=True):
        hits = _nan_without_hit(hits) if step.handle_unknown == "error" else hits
        kept = np.arange(len(categories))
        parts.append(hits.take(kept if drop is None else kept[kept != drop]))
    return concatenate(x.graph, parts)


@converts(OrdinalEncoder, columns=True)
def _ordinal(x: Rows, step: Any) -> Tensor:
    parts = []
    for hits, categories in zip(_hits(x, step), step.categories_, strict=True):
        codes = np.arange(len(categories), dtype=float)[:, None]
        if step.handle_unknown == "error" or np.isnan(step.unknown_value):
            parts.append(_nan_without_hit(hits).linear(codes))
        else:
            # A hit of category j gives the unknown value, plus j less the unknown value.
            unknown = float(step.unknown_value)
            parts.append(hits.linear(codes - unknown, [unknown]))
    return concatenate(x.graph, parts)


def _hits(x: Rows, step: Any) -> list[Tensor]:
    """Which of its categories each column holds, as 0 and 1, (n, number of categories) each."""
    if getattr(step, "_infrequent_enabled", False):
        raise ExportError(
            "there is no graph for infrequent categories; leave out min_frequency and "
            "max_categories"
        )
    made = []
    for index, categories in enumerate(step.categories_):
        if all(isinstance(value, str) for value in categories):
            known = [str(value) for value in categories]
            numbers = {"values_int64s": list(range(len(known))), "default_int64": -1}
            text = _need_columns(x).text(index, known)
            code = text.apply("LabelEncoder", keys_strings=known, **numbers)
            equal = code.apply("Equal", np.arange(len(known)))
        elif all(
            isinstance(value, int | float | np.number) and value == value for value in categories
        ):
            # In float32, in which 0.1 of the table and 0.1 of the model are the same.
            column = x.take([index]).numbers().single()
            equal = column.apply("Equal", categories.astype(np.float32))
        else:
            raise ExportError(
                f"column {index} has missing values, or both texts and numbers, as categories; "
                f"fill them first, with SimpleImputer(strategy='constant', fill_value='missing')"
            )
        made.append(equal.double())
    return made


def _nan_without_hit(hits: Tensor) -> Tensor:
    """NaN in rows without any hit, where `transform` would raise an error."""
    count = hits.row_sums()
    # 0 / 0 without a hit, else 1.
    return hits * (count / count)


# Models.


def _linear(x: Tensor, coef: Any, intercept: Any) -> Tensor:
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
    offset = np.asarray(intercept, dtype=float).reshape(-1)
    return x.linear(W, np.broadcast_to(offset, W.shape[1]))


@converts(EntangledKernelRidge, EntangledKernelRidgeCV, columns=True)
def _entangled(x: Rows, model: Any) -> Tensor:
    """Entangled models are linear in their features; after partial_fit they are solved first."""
    if hasattr(model, "solve"):
        model.solve()
    features = _features(x, model.feature_map_, "feature_map_")
    values = _linear(features, model.coef_, model.intercept_)
    if model.target_transform_ is None:
        return values
    kinds = getattr(model.target_transform_, "kinds", None)
    if kinds is None:
        kind = type(model.target_transform_.transformer).__name__
        raise ExportError(
            f"its targets are transformed by {kind}; 'log', 'log1p' and None can be exported"
        )
    powers = values.apply("Exp")
    for kind, undone in (("log", powers), ("log1p", (powers - 1.0).apply("Max", 0.0))):
        chosen = np.array([[target_kind == kind for target_kind in kinds]], dtype=float)
        if chosen.any():
            values = x.graph("Greater", chosen, 0.5).apply("Where", undone, values)
    return values


@converts(OperatorFourierRidge, columns=True)
def _operator_fourier(x: Rows, model: Any) -> Tensor:
    return _linear(_features(x, model.features_, "features_"), model.coef_, model.intercept_)


@converts(OutputKernelRidge, OutputKernelRidgeCV)
def _output_kernel(x: Tensor, model: Any) -> Tensor:
    params = {"gamma": model.gamma, **(model.kernel_params or {})}
    coef = model.dual_coef_.reshape(len(model.dual_coef_), -1) @ model.output_kernel_  # (n, p)
    return _linear(gram(x, model.kernel, model.X_fit_, params), coef.T, model.intercept_)


@converts(MultipleKernelRidge, MultiViewKernelRidge)
def _kernel_sum(x: Tensor, model: Any) -> Tensor:
    """Sums of kernels; a view whose columns are all NaN in a row adds nothing to that row."""
    views = isinstance(model, MultiViewKernelRidge)
    sums, offset = [], np.zeros(len(model.intercept_))
    for part, learned in zip(model._parts, model._coefs, strict=True):
        coef, offset = learned if views else (learned, offset)
        kernel, inputs = part.kernel, x.take(part.columns)
        if hasattr(kernel, "transform"):
            values = _features(inputs, kernel, part.name).linear(coef)
        elif kernel == "linear":
            values = inputs.linear(coef)
        else:
            Z = model.X_fit_[:, part.columns]
            values = gram(inputs, kernel, Z[~np.isnan(Z).all(axis=1)] if views else Z).linear(coef)
        if views:
            known = (1.0 - inputs.apply("IsNaN").double()).row_sums().apply("Greater", 0.5)
            values = known.apply("Where", values + offset[None], np.zeros((1, 1)))
        sums.append(values)
    return _sum(sums) + np.asarray(model.intercept_, dtype=float).reshape(-1)


def _sum(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@converts(OperatorValuedKernelRidge)
def _operator_valued(x: Tensor, model: Any) -> Tensor:
    C = model.dual_coef_.reshape(len(model.X_fit_), model.kernel_.n_outputs)  # (n, p)
    values = _operator_kernel(x, model.kernel_, model.X_fit_, C)
    return values + np.asarray(model.intercept_, dtype=float).reshape(-1)


def _operator_kernel(x: Tensor, kernel: Any, Z: Array, C: Array) -> Tensor:
    """The sums sum_j K(x, z_j) c_j over constant rows Z (m, d) with coefficients C (m, p)."""
    if type(kernel) is SeparableKernel:
        # K(x, z) = k(x, z) T with a symmetric T.
        return gram(x, kernel.kernel, Z, kernel.params).linear(C @ kernel.T)
    if type(kernel) is SumKernel:
        parts = zip(kernel.kernels, kernel.weights, strict=True)
        return _sum([_operator_kernel(x, inner, Z, weight * C) for inner, weight in parts])
    if type(kernel) is KrausKernel:
        # sum_i M_i phi(x) s_i, s_i = sum_j <M_i phi(z_j), c_j>, is linear in phi(x).
        Psi = Z if kernel.feature_map is None else np.asarray(kernel.feature_map.transform(Z))
        shares = np.einsum("ipm,jm,jp->i", kernel.kraus, Psi, C, optimize=True)
        W = np.einsum("i,ipm->mp", shares, kernel.kraus)
        W = W if kernel.metric is None else W + kernel.metric @ Psi.T @ C
        return _features(x, kernel.feature_map).linear(W)
    raise ExportError(f"there is no graph for the kernel {type(kernel).__name__}")


@converts(KernelRidge)
def _kernel_ridge(x: Tensor, model: Any) -> Tensor:
    params = {name: getattr(model, name) for name in SETTINGS} | (model.kernel_params or {})
    dual = model.dual_coef_.reshape(len(model.dual_coef_), -1)  # (n, p)
    return gram(x, model.kernel, model.X_fit_, params).linear(dual)


@converts(GaussianProcessRegressor)
def _gaussian_process(x: Tensor, model: Any) -> Tensor:
    right = model.alpha_.reshape(len(model.alpha_), -1) * model._y_train_std  # (n, p)
    return _linear(gram(x, model.kernel_, model.X_train_), right.T, model._y_train_mean)


@converts(DummyRegressor)
def _dummy(x: Tensor, model: Any) -> Tensor:
    constant = np.asarray(model.constant_, dtype=float).reshape(-1)
    return x.linear(np.zeros((model.n_features_in_, len(constant))), constant)
