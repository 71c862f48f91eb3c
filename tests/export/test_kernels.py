import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.preprocessing import StandardScaler

from entangled_kernels import OperatorValuedKernelRidge
from entangled_kernels.export.kernels import KERNELS, NAMES
from entangled_kernels.io import ExportError, export_onnx
from entangled_kernels.kernels import FeatureKernel, SeparableKernel
from entangled_kernels.kernels.scalar import ExponentialDot


@pytest.fixture
def ridge(rows, new_rows, agrees):
    """Kernel ridge with a scalar kernel, whose file is to agree with it."""

    def check(kernel, **params):
        X, Y = rows
        scaler = StandardScaler().fit(X)
        separable = SeparableKernel(kernel, np.eye(3), **params)
        indefinite = "krein" if kernel == "sigmoid" else "error"
        model = OperatorValuedKernelRidge(separable, alpha=0.1, indefinite=indefinite)
        model.fit(scaler.transform(X), Y)
        agrees(model, scaler.transform(new_rows), 1e-7)

    return check


OBJECTS = [
    RBF(1.5),
    RBF([1.0, 2.0, 3.0, 4.0]),
    Matern(1.5, nu=0.5),
    Matern([1.0, 2.0, 3.0, 4.0], nu=1.5),
    Matern(1.5, nu=2.5),
    Matern(1.5, nu=np.inf),
    RationalQuadratic(1.5, 0.7),
    ConstantKernel(2.0) + RBF(1.0),
    RBF(1.0) + WhiteKernel(0.3),
    DotProduct(0.5),
    ConstantKernel(0.5) * RBF(2.0) + 0.1 * DotProduct(0.0),
    RBF(3.0) * DotProduct(1.0),
    DotProduct(1.0) ** 2,
    ExponentialDot(),
    FeatureKernel(None),
    FeatureKernel(None, np.diag([1.0, 2.0, 3.0, 4.0])),
]


def test_all_types_are_tried():
    def types(kernel):
        yield type(kernel)
        for name in ("k1", "k2", "kernel"):
            if hasattr(kernel, name):
                yield from types(getattr(kernel, name))

    assert {kind for kernel in OBJECTS for kind in types(kernel)} == set(KERNELS)


@pytest.mark.parametrize("kernel", OBJECTS, ids=lambda own: type(own).__name__)
def test_kernels_of_gaussian_processes(kernel, ridge):
    ridge(kernel)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_by_name(name, ridge):
    ridge(name)
    if name not in ("linear", "cosine"):
        ridge(name, gamma=0.05)


def test_powers_and_offsets(ridge):
    ridge("poly", degree=2, coef0=0.5)


def test_columns_far_from_zero_keep_their_digits(rng, agrees):
    X = 1e5 + rng.normal(size=(30, 2))
    Y = np.sin(X - 1e5)
    model = OperatorValuedKernelRidge(SeparableKernel(RBF(1.0), np.eye(2)), alpha=1e-4).fit(X, Y)
    agrees(model, X + 0.25 * rng.normal(size=X.shape), 1e-6)


@pytest.mark.parametrize("kernel", [ExpSineSquared(), Matern(nu=2.0), "chi2"], ids=repr)
def test_other_kernels_are_named(kernel, rows, tmp_path):
    X = np.abs(rows[0])
    model = OperatorValuedKernelRidge(SeparableKernel(kernel, np.eye(3)), alpha=100.0).fit(X[:8], rows[1][:8])
    with pytest.raises(
        ExportError, match=r"there is no graph for (the kernel ExpSine|Matern kernels of nu=2|kernel='chi2')"
    ):
        export_onnx(model, tmp_path / "model.onnx")
