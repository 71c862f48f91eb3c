"""Converters for skl2onnx: maps and models of this package, and steps of scikit-learn in double precision.

skl2onnx writes most steps of scikit-learn by itself. Here are converters for what it does not know
(the maps and models of this package, `Nystroem`, `RBFSampler`, `MissingIndicator`, `KernelRidge`,
`DummyRegressor`) and for steps of which its own converter has no double precision, loses values
that are missing, or takes a text that was never seen for a known one. All of them compute with
doubles: coefficients of kernel ridge are large where the ridge is small, and kernel values of
float32 would lose their digits.

A converter is a function ``write(nodes, step, *tensors)`` that adds nodes and returns the name of
the tensor that the step gives; `Nodes` keeps names and constants apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto
from onnx.numpy_helper import from_array
from scipy.sparse import issparse
from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
from sklearn import feature_selection
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
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

__all__ = ["MODELS", "STEPS", "Nodes", "converter", "inner_maps", "pls_features", "set_type"]

ML = "ai.onnx.ml"
TINY = float(np.finfo(np.float64).tiny)


class Nodes:
    """Adds nodes and constants to the graph that skl2onnx writes.

    Parameters
    ----------
    scope, container : objects of skl2onnx
        Which give names, and which take nodes.
    maps : mapping from int to str
        Tensors of the features of maps inside a model, by the identity of the map.
    """

    def __init__(self, scope: Any, container: Any, maps: Mapping[int, str] | None = None) -> None:
        self._scope, self._container, self._maps = scope, container, maps or {}

    def __call__(self, operation: str, *inputs: str | ArrayLike, **attributes: Any) -> str:
        """The tensor that an operation makes; inputs that are not names of tensors are constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = str(self._scope.get_unique_variable_name(operation.lower()))
        domain = ML if operation in ("LabelEncoder", "TreeEnsembleRegressor") else ""
        self._container.add_node(operation, names, output, op_domain=domain, **attributes)
        return output

    def constant(self, values: ArrayLike) -> str:
        """The tensor of an array: of texts, whole numbers, float32 or, of anything else, doubles."""
        array, name = np.asarray(values), str(self._scope.get_unique_variable_name("constant"))
        if array.dtype.kind in "OU":
            texts = [str(value).encode() for value in array.reshape(-1)]
            self._container.add_initializer(name, TensorProto.STRING, list(array.shape), texts)
            return name
        if array.dtype.kind == "i":
            array = array.astype(np.int64)
        elif array.dtype != np.float32:
            array = array.astype(np.float64)
        tensor = from_array(np.asarray(array, order="C"), name)
        self._container.add_initializer(name, tensor.data_type, list(array.shape), tensor)
        return name

    def double(self, tensor: str) -> str:
        """The tensor as doubles."""
        return self("Cast", tensor, to=TensorProto.DOUBLE)

    def product(self, tensor: str, right: Array, offset: ArrayLike | None = None) -> str:
        """The tensor times a constant matrix, plus a constant row."""
        return self(
            "Gemm", tensor, right, *([] if offset is None else [np.asarray(offset, dtype=float)])
        )

    def features(self, feature_map: Any, x: str = "") -> str:
        """Features of a map inside a model, which skl2onnx has written before; without a map x itself."""
        return x if feature_map is None else self._maps[id(feature_map)]

    def row_sums(self, tensor: str) -> str:
        """Sums of rows, (n, 1)."""
        return self("ReduceSum", tensor, [1], keepdims=1)


def converter(write: Callable[..., str]) -> Callable[[Any, Any, Any], None]:
    """What skl2onnx calls, of a function that adds the nodes of a step."""

    def convert(scope: Any, operator: Any, container: Any) -> None:
        nodes, tensors, step = Nodes(scope, container), [], operator.raw_operator
        for variable in operator.inputs:
            plain = isinstance(variable.type, DoubleTensorType | StringTensorType)
            tensors.append(variable.full_name if plain else nodes.double(variable.full_name))
        inner = [] if type(step) not in MODELS else inner_maps(step)
        if inner:
            tensors, found = tensors[: -len(inner)], tensors[-len(inner) :]
            maps = {id(part.map): tensor for part, tensor in zip(inner, found, strict=True)}
            nodes = Nodes(scope, container, maps)
        made, output = write(nodes, step, *tensors), operator.outputs[0]
        if isinstance(output.type, StringTensorType | DoubleTensorType):
            container.add_node("Identity", made, output.full_name)
        else:
            kind = output.type.to_onnx_type().tensor_type.elem_type
            container.add_node("Cast", made, output.full_name, to=kind)

    return convert


def set_type(operator: Any) -> None:
    """Number of columns of what a step gives: left open, since no later step asks for it."""
    operator.outputs[0].type.shape = [None, None]


# Scalar kernels.


def gram(nodes: Nodes, kernel: Any, x: str, Z: Any, params: Mapping[str, Any] | None = None) -> str:
    """Values of a kernel, by name or as an object, of rows with constant rows Z, (n, m)."""
    Z = np.asarray(Z.toarray() if issparse(Z) else Z, dtype=np.float64)
    if isinstance(kernel, str) and kernel in NAMES:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        return NAMES[kernel](
            nodes, x, Z, {"gamma": 1.0 / Z.shape[1], "degree": 3, "coef0": 1} | given
        )
    kind = type(kernel)
    if kind in (gp.Sum, gp.Product):
        return nodes(
            "Add" if kind is gp.Sum else "Mul",
            *(gram(nodes, k, x, Z) for k in (kernel.k1, kernel.k2)),
        )
    if kind is gp.Exponentiation:
        return nodes("Pow", gram(nodes, kernel.kernel, x, Z), float(kernel.exponent))
    if kind in (gp.ConstantKernel, gp.WhiteKernel):
        # New rows share no noise with those of training.
        value = kernel.constant_value if kind is gp.ConstantKernel else 0.0
        return nodes.product(x, np.zeros_like(Z).T, np.full(len(Z), value))
    if kind is gp.DotProduct:
        return nodes.product(x, Z.T, np.full(len(Z), float(kernel.sigma_0) ** 2))
    if kind is ExponentialDot:
        return nodes("Exp", nodes.product(x, Z.T))
    if kind is FeatureKernel:
        Psi = np.asarray(kernel.factors(Z, None)[0])
        right = Psi.T if kernel.root is None else kernel.root @ Psi.T
        return nodes.product(nodes.features(kernel.feature_map, x), right)
    if kind is gp.RBF or (kind is gp.Matern and kernel.nu == np.inf):
        return nodes("Exp", half_squares(nodes, x, Z, kernel.length_scale))
    if kind is gp.RationalQuadratic:
        halves = half_squares(nodes, x, Z, kernel.length_scale)
        base = nodes("Sub", 1.0, nodes("Mul", halves, 1.0 / kernel.alpha))
        return nodes("Pow", base, -float(kernel.alpha))
    if kind is gp.Matern:
        return _matern(nodes, kernel, x, Z)
    named = f"the kernel {kind.__name__}" if isinstance(kernel, gp.Kernel) else f"kernel={kernel!r}"
    raise ExportError(f"there is no graph for {named}")


def half_squares(nodes: Nodes, x: str, Z: Array, widths: Any) -> str:
    """Minus half the squared distances of rows from constant rows, in units of the widths of columns, (n, m).

    Rows are centred first, which leaves distances as they are and keeps the digits of columns that
    are far from zero.
    """
    centre = Z.mean(axis=0)
    x = nodes("Div", nodes("Sub", x, centre), np.asarray(widths, dtype=float))
    Z = (Z - centre) / widths
    own = nodes("Mul", nodes.row_sums(nodes("Mul", x, x)), -0.5)
    return nodes("Add", nodes.product(x, Z.T, -0.5 * np.sum(Z**2, axis=1)), own)


def _matern(nodes: Nodes, kernel: Any, x: str, Z: Array) -> str:
    """With s = sqrt(2 nu) distance: exp(-s), (1 + s) exp(-s), (1 + s + s^2 / 3) exp(-s)."""
    if kernel.nu not in (0.5, 1.5, 2.5):
        raise ExportError(
            f"there is no graph for Matern kernels of nu={kernel.nu}, only of 0.5, 1.5, 2.5, inf"
        )
    halves = half_squares(nodes, x, Z, np.asarray(kernel.length_scale) / np.sqrt(2.0 * kernel.nu))
    s = nodes("Sqrt", nodes("Max", nodes("Mul", halves, -2.0), 0.0))
    decay = nodes("Exp", nodes("Neg", s))
    if kernel.nu == 0.5:
        return decay
    bend = nodes("Add", s, 1.0)
    if kernel.nu == 2.5:
        bend = nodes("Add", bend, nodes("Mul", nodes("Mul", s, s), 1.0 / 3.0))
    return nodes("Mul", bend, decay)


def _scaled_dot(nodes: Nodes, x: str, Z: Array, settings: Mapping[str, Any]) -> str:
    return nodes.product(
        x, Z.T * float(settings["gamma"]), np.full(len(Z), float(settings["coef0"]))
    )


def _cosines(nodes: Nodes, x: str, Z: Array, settings: Mapping[str, Any]) -> str:
    sizes = np.linalg.norm(Z, axis=1, keepdims=True)
    # Rows of zeros have a cosine of zero with all others.
    size = nodes("Max", nodes("Sqrt", nodes.row_sums(nodes("Mul", x, x))), TINY)
    return nodes.product(nodes("Div", x, size), (Z / np.where(sizes > 0.0, sizes, 1.0)).T)


def _laplacian(nodes: Nodes, x: str, Z: Array, settings: Mapping[str, Any]) -> str:
    apart = nodes("Abs", nodes("Sub", nodes("Unsqueeze", x, [1]), Z[None]))  # (n, m, d)
    sums = nodes("ReduceSum", apart, [2], keepdims=0)
    return nodes("Exp", nodes("Mul", sums, -float(settings["gamma"])))


NAMES: dict[str, Callable[[Nodes, str, Array, Mapping[str, Any]], str]] = {
    "linear": lambda nodes, x, Z, own: nodes.product(x, Z.T),
    "rbf": lambda nodes, x, Z, own: nodes(
        "Exp", half_squares(nodes, x, Z, 1.0 / np.sqrt(2.0 * float(own["gamma"])))
    ),
    "poly": lambda nodes, x, Z, own: nodes(
        "Pow", _scaled_dot(nodes, x, Z, own), float(own["degree"])
    ),
    "polynomial": lambda nodes, x, Z, own: NAMES["poly"](nodes, x, Z, own),
    "sigmoid": lambda nodes, x, Z, own: nodes("Tanh", _scaled_dot(nodes, x, Z, own)),
    "cosine": _cosines,
    "laplacian": _laplacian,
}


# Feature maps of this package, and kernel approximations of scikit-learn.


def standardised(nodes: Nodes, x: str, centre: Any, scale: Any) -> str:
    """Columns less their centre, over their scale."""
    return nodes("Div", nodes("Sub", x, np.asarray(centre)), np.asarray(scale))


def _within(nodes: Nodes, x: str, lower: Any, upper: Any) -> str:
    """Columns within limits, as they are where these are infinite; infinite columns give NaN."""
    if not np.isfinite(lower).all():
        return x
    limited = nodes("Min", nodes("Max", x, lower), upper)
    return nodes("Add", limited, nodes("Sub", x, x))


def _cos(nodes: Nodes, x: str) -> str:
    """The cosine, as a sine: onnxruntime 1.18 has cosines of float32 only."""
    return nodes("Sin", nodes("Add", x, 0.5 * np.pi))


def _kernel_features(nodes: Nodes, step: Any, x: str) -> str:
    x = _within(nodes, x, step.lower_, step.upper_)
    if step.warp:
        x = _yeo_johnson(
            nodes, standardised(nodes, x, step.column_mean_, step.column_scale_), step.powers_
        )
    values = gram(
        nodes, step.kernel_, standardised(nodes, x, step.mean_, step.scale_), step.components_
    )
    return nodes.product(values, step._whitener)


def _target_processes(nodes: Nodes, step: Any, x: str) -> str:
    rows, inside = _within(nodes, x, step.lower_, step.upper_), _within(nodes, x, *step.range_)
    predictions = []
    for target, dual in enumerate(step.dual_coef_.T):
        relative, kernels = step.kernels(target)
        scale, R = step.scale_ * relative, step.components_ / relative
        values = [
            gram(nodes, kernel, standardised(nodes, own, step.mean_, scale), R)
            for kernel, own in zip(kernels, (rows, inside), strict=True)
        ]
        predictions.append(nodes.product(nodes("Add", *values), dual[:, None]))
    return nodes("Concat", *predictions, axis=1)


class Forest(NamedTuple):
    """The parts of fitted `ForestFeatures`: nodes are numbered through, tree after tree.

    Attributes
    ----------
    feature, threshold, tree : ndarray of shape (nodes,)
    children : ndarray of shape (nodes, 2)
        Of a leaf the node itself.
    leaves : ndarray of shape (number of components, trees)
        In which the rows are that carry the features.
    forecasts : ndarray of shape (nodes, q)
        Means of targets, which are features too; q may be 0.
    root : ndarray or None
        By which the shares of leaves and the forecasts are multiplied.
    """

    feature: NDArray[Any]
    threshold: NDArray[Any]
    tree: NDArray[Any]
    children: NDArray[Any]
    leaves: NDArray[Any]
    forecasts: Array
    root: Array | None


def forest_parts(step: Any) -> Forest:
    """What is read of fitted `ForestFeatures`."""
    trees, n = step.trees_, len(step.trees_.feature)
    tree = np.repeat(np.arange(len(trees.roots)), np.diff(np.append(trees.roots, n)))
    forecasts = step._forecasts if step._forecasts.size else np.empty((n, 0))
    return Forest(
        trees.feature,
        trees.threshold,
        tree,
        trees.children,
        step.components_,
        forecasts,
        step._whitener,
    )


def _forest_features(nodes: Nodes, step: Any, x: str) -> str:
    """Trees add float32 numbers only, so they add whole ones, of which every sum is exact.

    Of a row in the leaf they add one. A forecast is cut in two parts, so many whole units and the
    rest, which is so small that its rounding does not matter.
    """
    forest = forest_parts(step)
    m, n_trees = forest.leaves.shape
    x = standardised(nodes, x, step.mean_, step.scale_)
    # Trees compare numbers of float32.
    x = nodes.double(nodes("Cast", x, to=TensorProto.FLOAT))
    target, _ = np.indices(forest.leaves.shape)
    counts = _tree_sums(
        nodes, forest, x, forest.leaves.reshape(-1), target.reshape(-1), np.ones(m * n_trees), m
    )
    parts = [nodes("Div", counts, float(n_trees))]
    if forest.forecasts.shape[1]:
        ends = np.flatnonzero(forest.children[:, 0] == np.arange(len(forest.tree)))
        values, q = forest.forecasts[ends] / n_trees, forest.forecasts.shape[1]
        unit = 2.0 ** np.ceil(np.log2(np.abs(values).max() * n_trees + TINY) - 22.0)
        whole = np.round(values / unit)
        at, column = np.repeat(ends, q), np.tile(np.arange(q), len(ends))
        for numbers, size in ((whole, float(unit)), (values - whole * unit, 1.0)):
            sums = _tree_sums(nodes, forest, x, at, column, numbers.reshape(-1), q)
            parts.append(nodes("Mul", sums, size))
    features = parts[0]
    if len(parts) > 1:
        features = nodes("Concat", parts[0], nodes("Add", parts[1], parts[2]), axis=1)
    if forest.root is not None:
        features = nodes.product(features, forest.root)
    # Rows with NaN give NaN, as everywhere else.
    return nodes("Add", features, nodes.row_sums(nodes("Mul", x, 0.0)))


def _tree_sums(
    nodes: Nodes, forest: Forest, x: str, at: Any, target: Any, numbers: Array, n_targets: int
) -> str:
    """Sums over trees of the numbers of the leaves that rows reach, (n, number of targets)."""
    n = len(forest.tree)
    first = np.searchsorted(forest.tree, forest.tree)
    own, leaf = np.arange(n) - first, forest.children[:, 0] == np.arange(n)
    # A leaf has no children, which are numbered 0.
    children = np.where(leaf[:, None], 0, forest.children - first[:, None])
    used = np.flatnonzero(numbers)
    sums = nodes(
        "TreeEnsembleRegressor",
        x,
        n_targets=int(n_targets),
        aggregate_function="SUM",
        nodes_treeids=forest.tree.tolist(),
        nodes_nodeids=own.tolist(),
        nodes_featureids=forest.feature.tolist(),
        nodes_values_as_tensor=from_array(
            np.where(leaf, 0.0, forest.threshold).astype(np.float64), "values"
        ),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_truenodeids=children[:, 0].tolist(),
        nodes_falsenodeids=children[:, 1].tolist(),
        target_treeids=forest.tree[at[used]].tolist(),
        target_nodeids=own[at[used]].tolist(),
        target_ids=np.asarray(target)[used].tolist(),
        target_weights_as_tensor=from_array(numbers[used].astype(np.float64), "weights"),
    )
    return nodes.double(sums)


def _operator_fourier_features(nodes: Nodes, step: Any, x: str) -> str:
    angles = nodes.product(x, step.frequencies_.T)
    waves = nodes("Concat", _cos(nodes, angles), nodes("Sin", angles), axis=1)
    return nodes("Div", waves, float(np.sqrt(step.n_frequencies)))


def _nystroem(nodes: Nodes, step: Any, x: str) -> str:
    params = {name: getattr(step, name) for name in ("gamma", "degree", "coef0")}
    return nodes.product(
        gram(nodes, step.kernel, x, step.components_, params), step.normalization_.T
    )


def _rbf_sampler(nodes: Nodes, step: Any, x: str) -> str:
    angles = nodes.product(x, step.random_weights_, step.random_offset_)
    return nodes("Mul", _cos(nodes, angles), float(np.sqrt(2.0 / len(step.random_offset_))))


# Columns by themselves.


def _power_transformer(nodes: Nodes, step: Any, x: str) -> str:
    apply = _box_cox if step.method == "box-cox" else _yeo_johnson
    x = apply(nodes, x, np.asarray(step.lambdas_, dtype=float))
    return (
        standardised(nodes, x, step._scaler.mean_, step._scaler.scale_) if step.standardize else x
    )


def _yeo_johnson(nodes: Nodes, x: str, powers: Array) -> str:
    """Box-Cox of 1 + x above zero, and of 1 - x with the power 2 - lambda, mirrored, below."""
    above = _box_cox(nodes, nodes("Add", nodes("Max", x, 0.0), 1.0), powers)
    below = _box_cox(nodes, nodes("Sub", 1.0, nodes("Min", x, 0.0)), 2.0 - powers)
    return nodes("Sub", above, below)


def _box_cox(nodes: Nodes, x: str, powers: Array) -> str:
    """(x^power - 1) / power of every column, its logarithm where the power is zero."""
    none = np.abs(powers) < np.finfo(np.float64).eps
    some = np.where(none, 1.0, powers)
    power = nodes("Div", nodes("Sub", nodes("Pow", x, some), 1.0), some)
    if not none.any():
        return power
    log = nodes("Mul", nodes("Log", x), none.astype(float))
    return nodes("Add", nodes("Mul", power, 1.0 - none), log)


def _function_transformer(nodes: Nodes, step: Any, x: str) -> str:
    if step.func is None:
        return x
    if step.kw_args or step.func not in FUNCTIONS:
        name = getattr(step.func, "__name__", repr(step.func)) + (
            " with kw_args" if step.kw_args else ""
        )
        known = ", ".join(sorted(own.__name__ for own in FUNCTIONS))
        raise ExportError(f"there is no graph for func={name}; use one of numpy's {known}")
    function = FUNCTIONS[step.func]
    return nodes(function, x) if isinstance(function, str) else str(function(nodes, x))


def _arcsinh(nodes: Nodes, x: str) -> str:
    """The inverse of sinh, of which onnxruntime has that of float32 only."""
    root = nodes("Sqrt", nodes("Add", nodes("Mul", x, x), 1.0))
    return nodes("Mul", nodes("Sign", x), nodes("Log", nodes("Add", nodes("Abs", x), root)))


# Functions of numpy that a FunctionTransformer may have: the name of an operation, or what writes
# several.
FUNCTIONS: dict[Any, Any] = {
    np.abs: "Abs",
    np.arcsinh: _arcsinh,
    np.cbrt: lambda nodes, x: nodes(
        "Mul", nodes("Sign", x), nodes("Pow", nodes("Abs", x), 1.0 / 3.0)
    ),
    np.cos: _cos,
    np.exp: "Exp",
    np.expm1: lambda nodes, x: nodes("Sub", nodes("Exp", x), 1.0),
    np.log: "Log",
    np.log10: lambda nodes, x: nodes("Div", nodes("Log", x), np.log(10.0)),
    np.log1p: lambda nodes, x: nodes("Log", nodes("Add", x, 1.0)),
    np.log2: lambda nodes, x: nodes("Div", nodes("Log", x), np.log(2.0)),
    np.negative: "Neg",
    np.reciprocal: "Reciprocal",
    np.sin: "Sin",
    np.sqrt: "Sqrt",
    np.square: lambda nodes, x: nodes("Mul", x, x),
    np.tanh: "Tanh",
}


def _polynomials(nodes: Nodes, step: Any, x: str) -> str:
    powers = step.powers_  # (m, d)
    d, degree = powers.shape[1], int(powers.sum(axis=1).max())
    # Products of columns, a column of ones among them.
    ones = nodes.product(x, np.zeros((d, 1)), np.ones(1))
    extended = nodes("Concat", x, ones, axis=1)
    factors = np.full((degree, len(powers)), d)
    for term, own in enumerate(powers):
        used = np.repeat(np.arange(d), own)
        factors[: len(used), term] = used
    product = ones
    for number, places in enumerate(factors):
        factor = nodes("Gather", extended, places, axis=1)
        product = nodes("Mul", product, factor) if number else factor
    return product


def _select(nodes: Nodes, step: Any, x: str) -> str:
    return nodes("Gather", x, step.get_support(indices=True), axis=1)


def pls_features(nodes: Nodes, step: Any, x: str) -> str:
    """What PLS gives as a transformer: skl2onnx writes predictions, whatever comes next."""
    return nodes.product(standardised(nodes, x, step._x_mean, step._x_std), step.x_rotations_)


# Missing values and categories, of one column a tensor where some of them are text.


def _simple_imputer(nodes: Nodes, step: Any, *tensors: str) -> str:
    """Missing values replaced; a text that is empty is missing, since tensors of text have no other."""
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
        columns = [
            nodes("Where", _empty_texts(nodes, own), np.array([[text]], dtype=object), own)
            for own, text in zip(_apart(nodes, tensors, len(texts)), step.statistics_, strict=True)
        ]
        return nodes("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
    (x,) = tensors
    missing, statistics = _missing(nodes, step, x), np.asarray(step.statistics_, dtype=np.float64)
    kept = (
        np.arange(len(statistics))
        if step.keep_empty_features
        else np.flatnonzero(~np.isnan(statistics))
    )
    filled = nodes("Where", missing, np.nan_to_num(statistics)[None], x)
    filled = nodes("Gather", filled, kept, axis=1)
    if step.indicator_ is None:
        return filled
    marks = nodes("Gather", nodes.double(missing), step.indicator_.features_, axis=1)
    return nodes("Concat", filled, marks, axis=1)


def _missing_indicator(nodes: Nodes, step: Any, x: str) -> str:
    return nodes("Gather", nodes.double(_missing(nodes, step, x)), step.features_, axis=1)


def _missing(nodes: Nodes, step: Any, x: str) -> str:
    """Which values are missing, as truth values."""
    if isinstance(step.missing_values, float) and np.isnan(step.missing_values):
        return nodes("IsNaN", x)
    if not isinstance(step.missing_values, int | float | np.number):
        raise ExportError(f"there is no graph for missing_values={step.missing_values!r}; use NaN")
    return nodes("Equal", x, float(step.missing_values))


def _empty_texts(nodes: Nodes, text: str) -> str:
    known = {"keys_strings": [""], "values_int64s": [1], "default_int64": 0}
    return nodes("Equal", nodes("LabelEncoder", text, **known), [1])


def _apart(nodes: Nodes, tensors: Sequence[str], width: int) -> list[str]:
    """Tensors of one column each, (n, 1)."""
    if len(tensors) == width:
        return list(tensors)
    return [nodes("Gather", tensors[0], [place], axis=1) for place in range(width)]


def _one_hot(nodes: Nodes, step: Any, *tensors: str) -> str:
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    parts = []
    for place, hits in enumerate(_hits(nodes, step, tensors)):
        n = len(step.categories_[place])
        kept = np.flatnonzero(np.arange(n) != (-1 if dropped[place] is None else dropped[place]))
        hits = _nan_without_hit(nodes, hits) if step.handle_unknown == "error" else hits
        parts.append(nodes("Gather", hits, kept, axis=1))
    return nodes("Concat", *parts, axis=1)


def _ordinal(nodes: Nodes, step: Any, *tensors: str) -> str:
    parts = []
    for place, hits in enumerate(_hits(nodes, step, tensors)):
        codes = np.arange(len(step.categories_[place]), dtype=float)[:, None]
        if step.handle_unknown == "error" or np.isnan(step.unknown_value):
            parts.append(nodes.product(_nan_without_hit(nodes, hits), codes))
        else:
            # A hit of category j gives the unknown value, plus j less the unknown value.
            unknown = float(step.unknown_value)
            parts.append(nodes.product(hits, codes - unknown, [unknown]))
    return nodes("Concat", *parts, axis=1)


def _hits(nodes: Nodes, step: Any, tensors: Sequence[str]) -> list[str]:
    """Which of its categories each column holds, as 0 and 1, (n, number of categories) each."""
    if getattr(step, "_infrequent_enabled", False):
        raise ExportError(
            "there is no graph for infrequent categories; leave out min_frequency and max_categories"
        )
    found = []
    for place, column in enumerate(_apart(nodes, tensors, len(step.categories_))):
        categories = step.categories_[place]
        if all(isinstance(value, str) for value in categories):
            known = [str(value) for value in categories]
            numbers = {"values_int64s": list(range(len(known))), "default_int64": -1}
            code = nodes("LabelEncoder", column, keys_strings=known, **numbers)
            equal = nodes("Equal", code, np.arange(len(known)))
        elif all(
            isinstance(value, int | float | np.number) and value == value for value in categories
        ):
            # In float32, in which 0.1 of the table and 0.1 of the model are the same.
            single = nodes("Cast", column, to=TensorProto.FLOAT)
            equal = nodes("Equal", single, categories.astype(np.float32))
        else:
            raise ExportError(
                f"column {place} has missing values, or both texts and numbers, as categories; fill them "
                f"first, with SimpleImputer(strategy='constant', fill_value='missing')"
            )
        found.append(nodes.double(equal))
    return found


def _nan_without_hit(nodes: Nodes, hits: str) -> str:
    """NaN in rows without any hit: what `transform` refuses must not become a number."""
    count = nodes.row_sums(hits)
    # 0 / 0 where there is none, else 1.
    return nodes("Mul", hits, nodes("Div", count, count))


# Models.


class InnerMap(NamedTuple):
    """A map inside a model, and the columns that it takes; None for all."""

    name: str
    map: Any
    columns: NDArray[Any] | None


class FittedParts(NamedTuple):
    """What is read of fitted entangled estimators."""

    feature_map: Any
    coef: Array
    intercept: Array
    target_transform: Any


def fitted_parts(model: Any) -> FittedParts:
    """What is read of fitted entangled estimators; rows that came by partial_fit are solved for first."""
    if hasattr(model, "solve"):
        model.solve()
    return FittedParts(model.feature_map_, model.coef_, model.intercept_, model.target_transform_)


class KernelPart(NamedTuple):
    """What one kernel adds in a model of several."""

    name: str
    kernel: Any
    columns: NDArray[Any]
    coef: Array
    offset: Array | None

    @property
    def is_map(self) -> bool:
        """Whether the kernel is the inner product of what a transformer gives."""
        return hasattr(self.kernel, "transform")


def kernel_parts(model: Any) -> list[KernelPart]:
    """What is read of fitted sums of kernels and of views."""
    views = isinstance(model, MultiViewKernelRidge)
    names = model.view_names_ if views else model.kernel_names_
    offsets = model._offsets if views else [None] * len(names)
    parts = zip(names, model._fitted, model._columns, model._coefs, offsets, strict=True)
    return [KernelPart(*part) for part in parts]


def inner_maps(model: Any) -> list[InnerMap]:
    """The feature maps inside a model of this package, in the order in which its converter gets them."""
    if isinstance(model, EntangledKernelRidge | EntangledKernelRidgeCV):
        feature_map = fitted_parts(model).feature_map
        return [] if feature_map is None else [InnerMap("feature_map_", feature_map, None)]
    if isinstance(model, OperatorFourierRidge):
        return [InnerMap("features_", model.features_, None)]
    if isinstance(model, MultipleKernelRidge | MultiViewKernelRidge):
        return [InnerMap(p.name, p.kernel, p.columns) for p in kernel_parts(model) if p.is_map]
    if isinstance(model, OperatorValuedKernelRidge):
        return [
            InnerMap("feature_map", own, None)
            for own in _kernel_maps(model.kernel_)
            if own is not None
        ]
    return []


def _kernel_maps(kernel: Any) -> list[Any]:
    """Feature maps of a kernel, each once."""
    maps = [getattr(kernel, "feature_map", None)]
    for part in (getattr(kernel, "kernel", None), *getattr(kernel, "kernels", ())):
        maps += [] if part is None or isinstance(part, str) else _kernel_maps(part)
    return list({id(own): own for own in maps}.values())


def _linear(nodes: Nodes, x: str, coef: Any, intercept: Any) -> str:
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
    return nodes.product(
        x, W, np.broadcast_to(np.asarray(intercept, dtype=float).reshape(-1), W.shape[1])
    )


def _entangled(nodes: Nodes, model: Any, x: str = "") -> str:
    parts = fitted_parts(model)
    values = _linear(nodes, nodes.features(parts.feature_map, x), parts.coef, parts.intercept)
    if parts.target_transform is None:
        return values
    kinds = getattr(parts.target_transform, "kinds", None)
    if kinds is None:
        kind = type(parts.target_transform.transformer).__name__
        raise ExportError(
            f"its targets are transformed by {kind}; 'log', 'log1p' and None can be exported"
        )
    powers = nodes("Exp", values)
    for kind, undone in (("log", powers), ("log1p", nodes("Max", nodes("Sub", powers, 1.0), 0.0))):
        chosen = np.array([[float(own == kind) for own in kinds]])
        if chosen.any():
            values = nodes("Where", nodes("Greater", chosen, 0.5), undone, values)
    return values


def _operator_fourier(nodes: Nodes, model: Any) -> str:
    return _linear(nodes, nodes.features(model.features_), model.coef_, model.intercept_)


def _output_kernel(nodes: Nodes, model: Any, x: str) -> str:
    params = {"gamma": model.gamma, **(model.kernel_params or {})}
    coef = model.dual_coef_.reshape(len(model.dual_coef_), -1) @ model.output_kernel_  # (n, p)
    return _linear(
        nodes, gram(nodes, model.kernel, x, model.X_fit_, params), coef.T, model.intercept_
    )


def _kernel_sum(nodes: Nodes, model: Any, x: str) -> str:
    """Sums of kernels; a view that a row lacks, all of whose columns are NaN, adds nothing."""
    views, total = isinstance(model, MultiViewKernelRidge), ""
    for part in kernel_parts(model):
        own = nodes("Gather", x, part.columns, axis=1)
        if part.is_map or part.kernel == "linear":
            values = nodes.product(
                nodes.features(part.kernel if part.is_map else None, own), part.coef
            )
        else:
            Z = model.X_fit_[:, part.columns]
            Z = Z[~np.isnan(Z).all(axis=1)] if views else Z
            values = nodes.product(gram(nodes, part.kernel, own, Z), part.coef)
        if views:
            values = nodes(
                "Add", values, np.broadcast_to(np.asarray(part.offset), (1, len(model.intercept_)))
            )
            here = nodes.row_sums(nodes("Sub", 1.0, nodes.double(nodes("IsNaN", own))))
            values = nodes("Where", nodes("Greater", here, 0.5), values, np.zeros((1, 1)))
        total = nodes("Add", total, values) if total else values
    return nodes("Add", total, np.asarray(model.intercept_, dtype=float).reshape(-1))


def _operator_valued(nodes: Nodes, model: Any, x: str) -> str:
    C = model.dual_coef_.reshape(len(model.X_fit_), model.kernel_.n_outputs)  # (n, p)
    values = _operator_kernel(nodes, model.kernel_, x, model.X_fit_, C)
    return nodes("Add", values, np.asarray(model.intercept_, dtype=float).reshape(-1))


def _operator_kernel(nodes: Nodes, kernel: Any, x: str, Z: Array, C: Array) -> str:
    """The sums sum_j K(x, z_j) c_j over constant rows Z (m, d) with coefficients C (m, p)."""
    if type(kernel) is SeparableKernel:
        # K(x, z) = k(x, z) T with a symmetric T.
        return nodes.product(gram(nodes, kernel.kernel, x, Z, kernel.params), C @ kernel.T)
    if type(kernel) is SumKernel:
        total = ""
        for weight, own in zip(kernel.weights, kernel.kernels, strict=True):
            part = _operator_kernel(nodes, own, x, Z, weight * C)
            total = nodes("Add", total, part) if total else part
        return total
    if type(kernel) is KrausKernel:
        # sum_i M_i phi(x) s_i, s_i = sum_j <M_i phi(z_j), c_j>, is linear in phi(x).
        Psi = Z if kernel.feature_map is None else np.asarray(kernel.feature_map.transform(Z))
        shares = np.einsum("ipm,jm,jp->i", kernel.kraus, Psi, C, optimize=True)
        W = np.einsum("i,ipm->mp", shares, kernel.kraus)
        W = W if kernel.metric is None else W + kernel.metric @ Psi.T @ C
        return nodes.product(nodes.features(kernel.feature_map, x), W)
    raise ExportError(f"there is no graph for the kernel {type(kernel).__name__}")


def _kernel_ridge(nodes: Nodes, model: Any, x: str) -> str:
    params = {name: getattr(model, name) for name in ("gamma", "degree", "coef0")} | (
        model.kernel_params or {}
    )
    dual = model.dual_coef_.reshape(len(model.dual_coef_), -1)  # (n, p)
    return nodes.product(gram(nodes, model.kernel, x, model.X_fit_, params), dual)


def _gaussian_process(nodes: Nodes, model: Any, x: str) -> str:
    right = model.alpha_.reshape(len(model.alpha_), -1) * model._y_train_std  # (n, p)
    mean = np.broadcast_to(np.asarray(model._y_train_mean, dtype=float), right.shape[1])
    return nodes.product(gram(nodes, model.kernel_, x, model.X_train_), right, mean)


def _dummy(nodes: Nodes, model: Any, x: str) -> str:
    constant = np.asarray(model.constant_, dtype=float).reshape(-1)
    return nodes.product(x, np.zeros((model.n_features_in_, len(constant))), constant)


SELECTORS = (
    "GenericUnivariateSelect",
    "RFE",
    "RFECV",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "VarianceThreshold",
)
#: Models of this package, by their exact type.
MODELS: dict[type, Callable[..., str]] = {
    EntangledKernelRidge: _entangled,
    EntangledKernelRidgeCV: _entangled,
    OutputKernelRidge: _output_kernel,
    OutputKernelRidgeCV: _output_kernel,
    MultipleKernelRidge: _kernel_sum,
    MultiViewKernelRidge: _kernel_sum,
    OperatorFourierRidge: _operator_fourier,
    OperatorValuedKernelRidge: _operator_valued,
}
#: Steps that are written here, by their exact type.
STEPS: dict[type, Callable[..., str]] = {
    ColumnWidthFeatures: _kernel_features,
    EvidenceFeatures: _kernel_features,
    ForestFeatures: _forest_features,
    OperatorFourierFeatures: _operator_fourier_features,
    TargetProcessFeatures: _target_processes,
    Nystroem: _nystroem,
    RBFSampler: _rbf_sampler,
    FunctionTransformer: _function_transformer,
    MissingIndicator: _missing_indicator,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    PolynomialFeatures: _polynomials,
    PowerTransformer: _power_transformer,
    SimpleImputer: _simple_imputer,
    **dict.fromkeys((getattr(feature_selection, name) for name in SELECTORS), _select),
    DummyRegressor: _dummy,
    GaussianProcessRegressor: _gaussian_process,
    KernelRidge: _kernel_ridge,
}
