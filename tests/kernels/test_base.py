"""What every operator-valued kernel promises, checked on every registered kernel."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from sklearn.gaussian_process.kernels import RBF

from entangled_kernels.kernels import (
    CurlFreeKernel,
    DivergenceFreeKernel,
    EntangledKernel,
    FeatureKernel,
    HadamardKernel,
    KrausKernel,
    MatrixKernel,
    OperatorValuedKernel,
    PartialTraceKernel,
    SeparableKernel,
    SumKernel,
    TransformableKernel,
    entanglement_report,
)
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


ONES, TWO = np.ones((1, 2, 2)), np.eye(2)
SEPARABLE = SeparableKernel("rbf", TWO)
BAD = [
    (lambda: SEPARABLE + 1.0, "unsupported operand"),
    (lambda: SEPARABLE * "a", "unsupported operand|can't multiply"),
    (lambda: SeparableKernel("rbf", "a"), "T must"),
    (lambda: SeparableKernel("rbf", [[1.0], [1.0, 2.0]]), "T must"),
    (lambda: SeparableKernel("rbf", [[1.0, 2.0], [0.0, 1.0]]), "T must be square and symmetric"),
    (lambda: SeparableKernel("rbf", np.ones(2)), "T must have 2 dimensions"),
    (lambda: SeparableKernel("rbf", TWO, gamma="a"), "gamma must"),
    (lambda: SeparableKernel("rfb", TWO), "kernel='rfb' is not a scalar kernel; use one of .*rbf"),
    (lambda: SeparableKernel(3, TWO), "kernel must be a name, a kernel object or a function"),
    (lambda: SeparableKernel(RBF(), TWO, gamma=1.0), r"RBF takes its own .* \['gamma'\]"),
    (lambda: SEPARABLE([["a"]]), "X must"),
    (lambda: SEPARABLE(np.ones(4)), "X must be a matrix"),
    (lambda: SEPARABLE.to_kraus(), "feature_map is needed"),
    (lambda: SeparableKernel("linear", TWO).to_kraus(), "n_features is needed"),
    (lambda: SeparableKernel(FeatureKernel(3), TWO)(TWO), "feature_map must"),
    (lambda: FeatureKernel(None, -TWO), "metric must be positive semidefinite"),
    (lambda: FeatureKernel(None, np.triu(np.ones((2, 2)))), "metric must be symmetric"),
    (lambda: MatrixKernel().gram(X, Z), r"must write gram\(X, Z\)"),
    (lambda: SumKernel([1]), "kernels must"),
    (lambda: SumKernel([]), "kernels must be a list of at least one kernel"),
    (lambda: SumKernel(None), "kernels must"),
    (lambda: SumKernel([SEPARABLE], weights=["a"]), "weights must"),
    (lambda: SumKernel([SEPARABLE], [1.0, 2.0]), "weights has 2 entries for 1 kernels"),
    (lambda: SumKernel([SEPARABLE], [np.inf]), "weights must be finite"),
    (lambda: SEPARABLE + KERNELS["kraus"], "kernels must have the same number of outputs"),
    (lambda: SEPARABLE * KERNELS["kraus"], r"the same number of outputs .*, got \[2, 3\]"),
    (lambda: (KERNELS["kraus"] * 1.0).to_partial_trace(), "separable terms only"),
    (lambda: HadamardKernel(SEPARABLE, 2), "kernels must"),
    (lambda: CurlFreeKernel("a"), "n_outputs must"),
    (lambda: CurlFreeKernel(0), "n_outputs must be a whole number of at least 1, got 0"),
    (lambda: CurlFreeKernel(3, gamma="a"), "gamma must"),
    (lambda: CurlFreeKernel(2, gamma=-1), "gamma must be a positive number, got -1"),
    (lambda: CurlFreeKernel(2).blocks(np.zeros((1, 3))), "X must have one column for each of 2"),
    (lambda: DivergenceFreeKernel(1), "n_outputs must be at least 2: on a line"),
    (lambda: TransformableKernel("rbf", None), "maps must"),
    (lambda: TransformableKernel("rbf", []), "maps must be a list with one transformation"),
    (lambda: TransformableKernel("rbf", [np.full((2, 2), np.nan)]), "maps must be finite"),
    (lambda: TransformableKernel("rbf", [lambda A: A[:, 0]])(X), r"maps\(X\) must be a matrix"),
    (lambda: TransformableKernel.coordinate_gaussian("a"), "n_outputs must"),
    (lambda: TransformableKernel.coordinate_gaussian(3, gamma="a"), "gamma must"),
    (lambda: TransformableKernel.exponential("a"), "sigma must"),
    (lambda: TransformableKernel.exponential(-TWO), "sigma must be .* has eigenvalue -1"),
    (lambda: PartialTraceKernel(TWO, 2), "operator must be callable"),
    (lambda: PartialTraceKernel(lambda Phi, Psi: None, "a"), "n_outputs must"),
    (lambda: PartialTraceKernel(lambda Phi, Psi: TWO, 2).blocks(X), r"gave shape \(2, 2\) for one"),
    (
        lambda: PartialTraceKernel(lambda *_: np.ones((1, 1, 3, 3)), 2).blocks(X),
        r"p = n_outputs = 2",
    ),
    (lambda: KrausKernel("a"), "kraus must"),
    (lambda: KrausKernel(1j * ONES), "kraus must be real"),
    (lambda: KrausKernel(np.nan * ONES), "kraus must be finite"),
    (lambda: KrausKernel(ONES, feature_map=3)(TWO), "feature_map must"),
    (lambda: KrausKernel(ONES, metric="a"), "metric must"),
    (lambda: KrausKernel(ONES, metric=-TWO), "metric must be positive semidefinite"),
    (lambda: KrausKernel(ONES, metric=np.eye(3)), "metric must be of shape"),
    (lambda: KrausKernel(ONES)(X), "X has 3 features"),
    (lambda: KrausKernel(0 * ONES).negativity(), "the kernel is zero"),
    (lambda: KrausKernel(0 * ONES).partial_transpose_eigenvalues(), "the kernel is zero"),
    (lambda: KrausKernel(0 * ONES).nearest_separable(), "the kernel is zero"),
    (lambda: EntangledKernel("a", TWO), "U must"),
    (lambda: EntangledKernel(np.eye(5), TWO), "U has shape"),
    (lambda: EntangledKernel(np.eye(4), np.diag([1.0, -1.0])), "T must be .* has eigenvalue -1"),
    (lambda: EntangledKernel(np.eye(4), TWO).to_transformable(), "T must have rank one"),
    (lambda: entanglement_report("a", (2, 2)), "D must"),
    (lambda: entanglement_report(np.ones((4, 3)), (2, 2)), "D must"),
    (lambda: entanglement_report(np.eye(4), 5), "dims must"),
    (lambda: entanglement_report(np.zeros((4, 4)), (2, 2)), "D must have a positive trace"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_errors_name_the_argument(make, message):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=message):
        make()
