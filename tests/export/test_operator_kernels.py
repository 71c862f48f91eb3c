import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from entangled_kernels import OperatorValuedKernelRidge
from entangled_kernels.export.operator_kernels import OPERATOR_KERNELS
from entangled_kernels.io import ExportError, export_onnx
from entangled_kernels.kernels import CurlFreeKernel, KrausKernel, SeparableKernel, SumKernel

T = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 0.5]])


def kernels(rng, X):
    separable = SeparableKernel("rbf", T, gamma=0.3)
    scaler = StandardScaler().fit(X)
    return [
        separable,
        2.0 * separable + SeparableKernel("linear", np.eye(3)),
        KrausKernel(rng.normal(size=(2, 3, 4)), scaler),
        KrausKernel(rng.normal(size=(2, 3, 4)), scaler, np.diag([1.0, 2.0, 3.0, 4.0])),
    ]


@pytest.mark.parametrize("place", range(4))
def test_predictions_are_those_of_the_kernel(place, rng, rows, new_rows, agrees):
    X, Y = rows
    chosen = kernels(rng, X)[place]
    assert {type(own) for own in kernels(rng, X)} == set(OPERATOR_KERNELS)
    assert isinstance(chosen, SumKernel | SeparableKernel | KrausKernel)
    agrees(OperatorValuedKernelRidge(chosen, alpha=0.1).fit(X, Y), new_rows, 1e-7)


def test_without_intercept(rng, rows, new_rows, agrees):
    X, Y = rows
    agrees(OperatorValuedKernelRidge(kernels(rng, X)[0], fit_intercept=False).fit(X, Y), new_rows, 1e-7)


def test_other_kernels_are_named(rng, tmp_path):
    X = rng.normal(size=(10, 2))
    model = OperatorValuedKernelRidge(CurlFreeKernel(2)).fit(X, X)
    with pytest.raises(ExportError, match="there is no graph for the kernel CurlFreeKernel"):
        export_onnx(model, tmp_path / "model.onnx")
