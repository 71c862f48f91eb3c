"""What every operator-valued kernel promises, checked on every registered kernel."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

from entangled_kernels.kernels import (
    CurlFreeKernel,
    EntangledKernel,
    FeatureKernel,
    HadamardKernel,
    KrausKernel,
    OperatorValuedKernel,
    PartialTraceKernel,
    SeparableKernel,
    SumKernel,
    TransformableKernel,
    entanglement_report,
)
from entangled_kernels.kernels.base import as_points, frozen_array
from entangled_kernels.linalg import DenseOperator
from kernels.registry import INDEFINITE, KERNELS, D, P

from reference.blocks import dense_from_blocks

rng = np.random.default_rng(3)
X, Z = rng.normal(size=(9, D)), rng.normal(size=(6, D))
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("name", KERNELS)
def test_psd_or_declared_indefinite(name):
    kernel = KERNELS[name]
    points = np.vstack([X, 0.1 * Z])
    eigenvalues = np.linalg.eigvalsh(dense_from_blocks(kernel.blocks(points)))
    psd = eigenvalues[0] >= -1e-10 * eigenvalues[-1]
    assert psd == (name not in INDEFINITE)
    assert kernel.is_psd(points) == psd
    if name in INDEFINITE:
        assert not kernel.guaranteed_psd


@every_kernel
def test_exchanging_the_points_transposes_the_block(kernel):
    np.testing.assert_allclose(
        kernel.blocks(X, Z), kernel.blocks(Z, X).transpose(1, 0, 3, 2), **CLOSE
    )


@every_kernel
def test_lazy_equals_dense_and_blocks(kernel):
    operator, blocks = kernel(X, Z), kernel.blocks(X, Z)
    assert isinstance(operator, LinearOperator)
    assert blocks.shape == (9, 6, P, P)
    assert kernel.n_outputs == P
    dense = dense_from_blocks(blocks)
    np.testing.assert_allclose(operator.to_dense(), dense, **CLOSE)
    V = rng.normal(size=(6 * P, 4))
    np.testing.assert_allclose(operator @ V, dense @ V, **CLOSE)
    W = rng.normal(size=(9 * P, 4))
    np.testing.assert_allclose(operator.T @ W, dense.T @ W, **CLOSE)


@every_kernel
def test_every_block_is_the_kernel_of_its_pair(kernel):
    blocks = kernel.blocks(X, Z)
    for i, j in [(0, 0), (3, 5), (8, 2)]:
        np.testing.assert_allclose(
            kernel.blocks(X[i : i + 1], Z[j : j + 1])[0, 0], blocks[i, j], **CLOSE
        )


@every_kernel
def test_one_sample_and_diagonal(kernel):
    blocks = kernel.blocks(X)
    np.testing.assert_allclose(blocks, kernel.blocks(X, X), **CLOSE)
    diagonal = blocks[np.arange(9), np.arange(9)]
    np.testing.assert_allclose(kernel.diag(X), diagonal, **CLOSE)
    np.testing.assert_allclose(kernel(X).diagonal_blocks(), diagonal, **CLOSE)


@every_kernel
@pytest.mark.parametrize("other", ["separable rbf", "kraus", "transformable coordinates"])
def test_sums_and_products(kernel, other):
    second = KERNELS[other]
    A, B = kernel.blocks(X, Z), second.blocks(X, Z)
    np.testing.assert_allclose((kernel + second).blocks(X, Z), A + B, **CLOSE)
    np.testing.assert_allclose((kernel * second).blocks(X, Z), A * B, **CLOSE)
    np.testing.assert_allclose((0.5 * kernel).blocks(X, Z), 0.5 * A, **CLOSE)
    np.testing.assert_allclose(sum([kernel, second]).blocks(X, Z), A + B, **CLOSE)
    mixed = kernel * 2.0 + -1.5 * (second + kernel)
    np.testing.assert_allclose(mixed.blocks(X, Z), 0.5 * A - 1.5 * B, **CLOSE)
    np.testing.assert_allclose((kernel + second).diag(X), kernel.diag(X) + second.diag(X), **CLOSE)
    if kernel.guaranteed_psd and second.guaranteed_psd:
        assert (kernel + second).guaranteed_psd
        assert (kernel * second).is_psd(X)


@every_kernel
def test_copies_and_pickles(kernel):
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(twin.blocks(X, Z), kernel.blocks(X, Z))
    assert repr(kernel)


def test_arrays_are_copied_and_read_only():
    T = np.eye(P)
    kernel = SeparableKernel("linear", T)
    T[0, 0] = 5.0
    assert kernel.T[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        kernel.T[0, 0] = 2.0


def test_a_negative_eigenvalue_counts_against_the_largest_absolute_one():
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]

    class GivenGram(OperatorValuedKernel):
        n_outputs = 3

        def __init__(self, eigenvalues):
            self.gram = (Q * eigenvalues) @ Q.T

        def __call__(self, X, Z=None):
            return DenseOperator(self.gram.reshape(2, 3, 2, 3).swapaxes(1, 2))

    nearly = GivenGram([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0])
    assert not nearly.is_psd(X, tol=0.99)
    assert nearly.is_psd(X, tol=1.01)
    assert GivenGram([0.0, 0.0, 0.0, 0.5, 1.0, 2.0]).is_psd(X)


def test_errors_name_the_argument():
    kernel = SeparableKernel("rbf", np.eye(2))
    with pytest.raises(TypeError, match="unsupported operand"):
        kernel + 1.0
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        kernel * "a"
    with pytest.raises(
        ValueError, match=r"Z must be a matrix .* got shape \(4,\); use Z.reshape\(-1, 1\)"
    ):
        as_points(np.ones(4), "Z")
    with pytest.raises(ValueError, match=r"U must have 2 dimensions, got shape \(2,\)"):
        frozen_array(np.ones(2), "U", 2)
    with pytest.raises(ValueError, match="U must be real"):
        frozen_array(1j * np.eye(2), "U", 2)
    with pytest.raises(ValueError, match="U must be finite"):
        frozen_array([[np.inf]], "U", 2)


T = np.eye(2)
SEPARABLE = SeparableKernel("rbf", T)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SeparableKernel("rbf", "a"), "T"),
        (lambda: SeparableKernel("rbf", [[1.0], [1.0, 2.0]]), "T"),
        (lambda: SeparableKernel("rbf", T, gamma="a"), "gamma"),
        (lambda: SeparableKernel("rbf", T)([["a"]]), "X"),
        (lambda: SeparableKernel(FeatureKernel(3), T)(np.eye(2)), "feature_map"),
        (lambda: SumKernel([1]), "kernels"),
        (lambda: SumKernel(None), "kernels"),
        (lambda: SumKernel([SEPARABLE], weights=["a"]), "weights"),
        (lambda: HadamardKernel(SEPARABLE, 2), "kernels"),
        (lambda: CurlFreeKernel("a"), "n_outputs"),
        (lambda: CurlFreeKernel(3, gamma="a"), "gamma"),
        (lambda: TransformableKernel("rbf", None), "maps"),
        (lambda: TransformableKernel.coordinate_gaussian("a"), "n_outputs"),
        (lambda: TransformableKernel.coordinate_gaussian(3, gamma="a"), "gamma"),
        (lambda: TransformableKernel.exponential("a"), "sigma"),
        (lambda: PartialTraceKernel(lambda Phi, Psi: None, "a"), "n_outputs"),
        (lambda: KrausKernel("a"), "kraus"),
        (lambda: KrausKernel(np.ones((1, 2, 3)), feature_map=3)(np.eye(3)), "feature_map"),
        (lambda: KrausKernel(np.ones((1, 2, 3)), metric="a"), "metric"),
        (lambda: EntangledKernel("a", T), "U"),
        (lambda: entanglement_report("a", (2, 2)), "D"),
        (lambda: entanglement_report(np.ones((4, 3)), (2, 2)), "D"),
        (lambda: entanglement_report(np.eye(4), 5), "dims"),
    ],
)
def test_bad_parameters_are_named(make, name):
    with pytest.raises((TypeError, ValueError), match=rf"^{name} must"):
        make()
