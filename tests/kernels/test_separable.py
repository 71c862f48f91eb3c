import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.kernels import FeatureKernel, SeparableKernel
from entangled_kernels.linalg import KroneckerOperator, LowRankKroneckerOperator
from kernels.draws import random_psd, seeds, sizes


def test_gram_matrix_is_a_kronecker_product(rng):
    X, Z, T = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), random_psd(rng, 2)
    kernel = SeparableKernel("rbf", T, gamma=0.5)
    np.testing.assert_allclose(kernel(X, Z).to_dense(), np.kron(rbf_kernel(X, Z, gamma=0.5), T))


def test_finite_features_keep_thin_factors(rng):
    X, T = rng.normal(size=(5, 2)), np.eye(2)
    for kernel in ("linear", FeatureKernel(None, random_psd(rng, 2))):
        assert isinstance(SeparableKernel(kernel, T)(X), LowRankKroneckerOperator)
    assert type(SeparableKernel("rbf", T)(X)) is KroneckerOperator


@pytest.mark.parametrize(
    "T", [np.eye(2), np.diag([1.0, -1.0]), np.diag([1.0, 0.0]), np.zeros((2, 2))]
)
@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
def test_positivity_from_the_factors_is_that_of_the_gram_matrix(rng, kernel, T):
    X = rng.normal(size=(8, 3))
    separable = SeparableKernel(kernel, T, gamma=1.0)
    eigenvalues = np.linalg.eigvalsh(separable(X).to_dense())
    assert separable.is_psd(X) == (eigenvalues[0] >= -1e-9 * np.abs(eigenvalues).max())
    assert separable.guaranteed_psd == (kernel == "rbf" and np.linalg.eigvalsh(T)[0] >= 0)


@settings(max_examples=30)
@given(p=sizes, m=sizes, seed=seeds)
def test_separable_kernels_have_operators_t_j_e_k(p, m, seed):
    rng = np.random.default_rng(seed)
    kernel = SeparableKernel("linear", random_psd(rng, p))
    X = rng.normal(size=(5, m))
    kraus = kernel.to_kraus(n_features=m)
    assert (np.linalg.matrix_rank(kraus.kraus) == 1).all()
    np.testing.assert_allclose(kraus.blocks(X), kernel.blocks(X), atol=1e-10)


def test_conversion_by_features_keeps_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 3))
    separable = SeparableKernel("rbf", random_psd(rng, 2))
    full = Nystroem(n_components=5, random_state=0).fit(
        X
    )  # reproduces the kernel on its own points
    np.testing.assert_allclose(separable.to_kraus(full).blocks(X), separable.blocks(X), atol=1e-9)


def test_conversion_takes_in_the_metric_of_a_feature_kernel(rng):
    X = rng.normal(size=(5, 3))
    kernel = SeparableKernel(FeatureKernel(None, random_psd(rng, 3, 2)), random_psd(rng, 2))
    np.testing.assert_allclose(kernel.to_kraus().blocks(X), kernel.blocks(X), atol=1e-10)
