import numpy as np
import pytest
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.export.scaling import FUNCTIONS, TRANSFORMERS
from entangled_kernels.io import ExportError, export_onnx

STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
    MinMaxScaler((-1.0, 2.0)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    Normalizer(),
    Normalizer("l1"),
    Normalizer("max"),
    Binarizer(threshold=0.5),
    PowerTransformer(),
    PowerTransformer(standardize=False),
    FunctionTransformer(),
]


def test_all_types_are_tried():
    assert {type(step) for step in STEPS} == set(TRANSFORMERS)


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_columns_are_those_of_scikit_learn(step, rows, new_rows, same_features):
    same_features(step.fit(rows[0]), new_rows)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda own: own.__name__)
def test_functions_of_numpy(function, new_rows, same_features):
    X = np.abs(new_rows) + 0.1
    X = X if function in (np.log, np.log2, np.log10, np.log1p, np.sqrt) else X * np.sign(new_rows)
    same_features(FunctionTransformer(function).fit(X / 10.0), X / 10.0)


def test_powers_of_zero_are_logarithms(rows, new_rows, same_features):
    step = PowerTransformer("box-cox").fit(np.abs(rows[0]) + 0.1)
    step.lambdas_[1] = 0.0
    same_features(step, np.abs(new_rows) + 0.1)


def test_rows_of_zeros_stay(same_features):
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    same_features(Normalizer().fit(X), X)


def test_columns_far_from_zero_keep_their_digits(rng, same_features):
    X = 1e9 + rng.normal(size=(20, 2))
    same_features(StandardScaler().fit(X), X)


@pytest.mark.parametrize(
    "step", [FunctionTransformer(np.round), FunctionTransformer(np.log, kw_args={"where": True})]
)
def test_other_functions_are_named(step, rows, tmp_path):
    X = np.abs(rows[0]) + 1.0
    model = EntangledKernelRidge(step).fit(X, rows[1])
    with pytest.raises(
        ExportError, match=r"feature_map_ \(FunctionTransformer\).*func=(round|log).*use one of numpy's"
    ):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
