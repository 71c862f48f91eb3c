"""Kernels for the contract tests: a kernel is tested by being registered here."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.kernel_approximation import Nystroem

from entangled_kernels.kernels import (
    CurlFreeKernel,
    DivergenceFreeKernel,
    EntangledKernel,
    FeatureKernel,
    KrausKernel,
    PartialTraceKernel,
    SeparableKernel,
    SumKernel,
    TransformableKernel,
)

D = P = 3
M = 4
KERNELS = {}
rng = np.random.default_rng(7)


def psd(size, rank=None):
    B = rng.normal(size=(size, rank or size))
    return B @ B.T


def square(X):
    return X**2


def shifted_outer(Phi, Psi):
    """P = kron(S, phi(x) phi(z)^T) with S of mixed signs: a partial-trace kernel that is indefinite."""
    return np.kron(np.diag([1.0, -2.0, 0.5]), np.einsum("ia,jb->ijab", Phi, Psi))


def row_kernel(x, z):
    return float(1 / (1 + ((x - z) ** 2).sum()))


nystroem = Nystroem(gamma=0.3, n_components=M, random_state=0).fit(rng.normal(size=(20, D)))
T1, T2 = psd(P), psd(P, rank=1)

KERNELS["separable rbf"] = SeparableKernel("rbf", T1, gamma=0.5)
KERNELS["separable identity"] = SeparableKernel("rbf", np.eye(P), gamma=0.5)
KERNELS["separable rank one"] = SeparableKernel("laplacian", T2)
KERNELS["separable linear"] = SeparableKernel("linear", T1)
KERNELS["separable poly"] = SeparableKernel("poly", T1, degree=2)
KERNELS["separable gaussian process"] = SeparableKernel(2.0 * RBF(0.7) + DotProduct(), T1)
KERNELS["separable function of rows"] = SeparableKernel(row_kernel, T1)
KERNELS["separable features"] = SeparableKernel(FeatureKernel(nystroem, psd(M)), T1)
KERNELS["indefinite separable"] = SeparableKernel("rbf", np.diag([1.0, -0.5, 2.0]))
KERNELS["indefinite sigmoid"] = SeparableKernel("sigmoid", T1, gamma=1.0, coef0=-1.0)
KERNELS["sum of separable"] = SumKernel(
    [KERNELS["separable rbf"], KERNELS["separable rank one"]], [1.0, 0.3]
)
KERNELS["multiple of low rank separable"] = 2.0 * KERNELS["separable linear"]
KERNELS["curl free"] = CurlFreeKernel(P, gamma=0.4)
KERNELS["divergence free"] = DivergenceFreeKernel(P, gamma=0.4)
KERNELS["transformable maps"] = TransformableKernel("rbf", [np.eye(D), square, -np.eye(D)])
KERNELS["transformable exponential"] = TransformableKernel.exponential(0.1 * T1)
KERNELS["transformable coordinates"] = TransformableKernel.coordinate_gaussian(P, gamma=0.7)
KERNELS["partial trace of a Kraus kernel"] = KrausKernel(
    rng.normal(size=(2, P, D)), metric=psd(D)
).to_partial_trace()
KERNELS["partial trace of a sum"] = KERNELS["sum of separable"].to_partial_trace()
KERNELS["indefinite partial trace"] = PartialTraceKernel(shifted_outer, n_outputs=P)
KERNELS["entangled"] = EntangledKernel(rng.normal(size=(P * D, P * D)), psd(P))
KERNELS["entangled with features"] = EntangledKernel(
    rng.normal(size=(P * M, P * M)), psd(P, 2), nystroem
)
KERNELS["kraus"] = KrausKernel(rng.normal(size=(2, P, D)))
KERNELS["kraus with metric and features"] = KrausKernel(
    rng.normal(size=(2, P, M)), nystroem, psd(M)
)
KERNELS["sum of kraus and separable"] = 0.5 * KERNELS["kraus"] + KERNELS["separable rbf"]
KERNELS["multiple of kraus"] = 3.0 * KERNELS["kraus with metric and features"]
KERNELS["product of separable"] = KERNELS["separable rbf"] * KERNELS["separable linear"]
KERNELS["product of kraus and separable"] = KERNELS["kraus"] * KERNELS["separable rbf"]
KERNELS["product of kraus and transformable"] = (
    KERNELS["kraus"] * KERNELS["transformable coordinates"]
)
KERNELS["product of a sum and separable"] = (
    KERNELS["sum of separable"] * KERNELS["separable linear"]
)
KERNELS["indefinite difference"] = KERNELS["separable rbf"] + (-1.0) * KERNELS["separable identity"]

INDEFINITE = {name for name in KERNELS if name.startswith("indefinite")}
