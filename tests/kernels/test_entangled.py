import numpy as np
import pytest
from hypothesis import given
from sklearn.kernel_approximation import Nystroem

from entangled_kernels.kernels import EntangledKernel
from kernels.draws import random_psd, seeds, sizes

from reference import blocks as reference


@given(p=sizes, m=sizes, rank=sizes, seed=seeds)
def test_entangled_kernels_are_psd_and_have_a_kraus_form(p, m, rank, seed):
    rng = np.random.default_rng(seed)
    U, T = rng.normal(size=(p * m, p * m)), random_psd(rng, p, min(rank, p))
    X, Z = rng.normal(size=(5, m)), rng.normal(size=(3, m))
    kernel = EntangledKernel(U, T)
    expected = reference.entangled_blocks(U, T, X, Z)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(kernel.blocks(X, Z), expected, atol=1e-10 * scale)
    kraus = kernel.to_kraus()
    np.testing.assert_allclose(reference.kraus_blocks(kraus.kraus, X, Z), expected, atol=1e-10 * scale)
    G = reference.dense_from_blocks(reference.entangled_blocks(U, T, X, X))
    assert np.linalg.eigvalsh(G)[0] >= -1e-10 * np.abs(G).max()


def test_features_come_from_the_feature_map(rng):
    X = rng.normal(size=(6, 2))
    features = Nystroem(n_components=3, random_state=0).fit(X)
    U, T = rng.normal(size=(6, 6)), random_psd(rng, 2)
    kernel = EntangledKernel(U, T, features)
    assert (kernel.n_outputs, kernel.n_features) == (2, 3)
    Phi = features.transform(X)
    np.testing.assert_allclose(kernel.blocks(X), reference.entangled_blocks(U, T, Phi, Phi), atol=1e-10)


@pytest.mark.parametrize("symmetric", [True, False])
@given(p=sizes, m=sizes, seed=seeds)
def test_entangled_with_rank_one_T_is_transformable(p, m, seed, symmetric):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(p * m, p * m))
    U = U + U.T if symmetric else U
    T = np.ones((p, p)) if symmetric else random_psd(rng, p, 1)
    X, Z = rng.normal(size=(4, m)), rng.normal(size=(3, m))
    kernel = EntangledKernel(U, T)
    transformable = kernel.to_transformable()
    scale = np.abs(kernel.blocks(X, Z)).max()
    np.testing.assert_allclose(transformable.blocks(X, Z), kernel.blocks(X, Z), atol=1e-10 * scale)


def test_entangled_and_transformable_example_is_entangled():
    U = np.random.default_rng(1).normal(size=(6, 6))
    assert EntangledKernel(U + U.T, np.ones((2, 2))).entanglement().entangled is True


def test_transformable_needs_rank_one():
    with pytest.raises(ValueError, match="T must have rank one"):
        EntangledKernel(np.eye(4), np.eye(2)).to_transformable()


@given(p=sizes, m=sizes, seed=seeds)
def test_product_entanglers_are_separable_and_the_tools_say_so(p, m, seed):
    rng = np.random.default_rng(seed)
    B, C, T = rng.normal(size=(p, p)), rng.normal(size=(m, m)), random_psd(rng, p)
    kernel = EntangledKernel(np.kron(B, C), T)
    report = kernel.entanglement()
    assert report.entangled is False
    assert report.schmidt_rank == 1
    assert report.ppt
    assert kernel.is_ppt()
    assert report.verdict.startswith("Separable")
    assert report.separable_share == pytest.approx(1.0)
    assert report.schmidt_entropy == pytest.approx(0.0, abs=1e-9)
    assert kernel.negativity() == pytest.approx(0.0, abs=1e-10)
    assert kernel.schmidt_values()[1] <= 1e-9 * kernel.schmidt_values()[0]
    X = rng.normal(size=(4, m))
    expected = np.kron(X @ C.T @ C @ X.T, B @ T @ B.T)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(kernel(X).to_dense(), expected, atol=1e-10 * scale)
    np.testing.assert_allclose(kernel.nearest_separable()(X).to_dense(), expected, atol=1e-8 * scale)


def test_the_identity_entangler_is_kept_in_few_operators():
    """D = kron(I, 11^T) has rank m, whatever the number p of outputs."""
    kernel = EntangledKernel(np.eye(12), np.ones((4, 4)))
    assert kernel.to_kraus().kraus.shape == (3, 4, 3)
    np.testing.assert_allclose(kernel.to_kraus().choi, np.kron(np.eye(3), np.ones((4, 4))), atol=1e-12)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="U has shape"):
        EntangledKernel(np.eye(5), np.eye(2))
    with pytest.raises(ValueError, match="T must be positive semidefinite, but has eigenvalue -1"):
        EntangledKernel(np.eye(4), np.diag([1.0, -1.0]))
