"""Kernels in Kraus form and entangled kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem

from entangled_kernels.kernels import EntangledKernel, KrausKernel, entanglement_report
from entangled_kernels.linalg import (
    is_ppt,
    kraus_from_choi,
    operator_schmidt,
    partial_transpose_eigenvalues,
)
from kernels.draws import random_psd, seeds, sizes

from reference import blocks as reference


@settings(max_examples=30)
@given(p=sizes, m=sizes, seed=seeds)
def test_identity_kron_T_recovers_the_separable_gram_matrix(p, m, seed):
    rng = np.random.default_rng(seed)
    T, X = random_psd(rng, p), rng.normal(size=(6, m))
    kernel = KrausKernel(kraus_from_choi(np.kron(np.eye(m), T), p))
    np.testing.assert_allclose(kernel(X).to_dense(), np.kron(X @ X.T, T), atol=1e-9)


@settings(max_examples=30)
@given(p=sizes, m=sizes, n_operators=st.integers(1, 20), shrink=st.floats(0, 1), seed=seeds)
def test_ppt_of_D_is_ppt_of_G_with_full_rank_features(p, m, n_operators, shrink, seed):
    rng = np.random.default_rng(seed)
    kraus = rng.normal(size=(n_operators, p, m))
    kernel = KrausKernel(kraus, metric=shrink * 4 * n_operators * np.eye(m))
    X = rng.normal(size=(m + 3, m))
    G = kernel(X).to_dense()
    assert np.linalg.matrix_rank(X) == m
    assert kernel.is_ppt() == is_ppt(G, (len(X), p), tol=1e-10)


@settings(max_examples=30)
@given(r=st.integers(1, 3), p=st.integers(1, 3), m=st.integers(1, 12), seed=seeds)
def test_diagnosis_on_the_span_of_the_operators_is_that_of_D(r, p, m, seed):
    kernel = KrausKernel(np.random.default_rng(seed).normal(size=(r, p, m)))
    whole = entanglement_report(kernel.choi, (m, p))
    report = kernel.entanglement()
    assert (report.ppt, report.dims, report.schmidt_rank) == (
        whole.ppt,
        whole.dims,
        whole.schmidt_rank,
    )
    assert report.verdict.split(" (")[0] == whole.verdict.split(" (")[0]
    for name in (
        "lowest_eigenvalue",
        "negativity",
        "realignment",
        "schmidt_entropy",
        "separable_share",
    ):
        assert getattr(report, name) == pytest.approx(getattr(whole, name), abs=1e-9)
    assert kernel.is_ppt() == is_ppt(kernel.choi, (m, p))
    expected = operator_schmidt(kernel.choi, (m, p)).values
    np.testing.assert_allclose(kernel.schmidt_values(), expected, atol=1e-9 * expected[0])


@pytest.mark.parametrize("m", [3, 30])
def test_spectrum_of_the_partial_transpose_is_that_of_D(rng, m):
    kernel = KrausKernel(rng.normal(size=(2, 3, m)))
    expected = partial_transpose_eigenvalues(kernel.choi / np.trace(kernel.choi), (m, 3))
    eigenvalues = kernel.partial_transpose_eigenvalues()
    zeros = np.zeros(3 * m - len(eigenvalues))
    np.testing.assert_allclose(np.sort(np.concatenate([eigenvalues, zeros])), expected, atol=1e-12)
    assert kernel.negativity() == pytest.approx(-np.minimum(expected, 0.0).sum())


def test_few_operators_on_many_features_need_no_matrix_of_all_pairs(rng):
    """D would take 8 GB; the operators see six features."""
    kernel = KrausKernel(rng.normal(size=(2, 3, 10_000)))
    report = kernel.entanglement()
    assert report.dims == (10_000, 3)
    assert report.entangled is True
    assert len(kernel.partial_transpose_eigenvalues()) == 18


def test_nearest_separable_explains_the_share_in_the_report():
    rng = np.random.default_rng(0)
    kernel = KrausKernel(rng.normal(size=(3, 2, 4)), metric=np.eye(4))
    nearest = kernel.nearest_separable()
    assert nearest.guaranteed_psd
    D = nearest.to_kraus().choi
    share = 1 - np.linalg.norm(kernel.choi - D) ** 2 / np.linalg.norm(kernel.choi) ** 2
    assert share == pytest.approx(kernel.entanglement().separable_share)


def test_conversions_keep_the_kernel():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    features = Nystroem(n_components=4, random_state=0).fit(X)
    kernel = KrausKernel(rng.normal(size=(2, 3, 4)), features, random_psd(rng, 4))
    expected = reference.kraus_blocks(
        kernel.kraus, features.transform(X), features.transform(Z), kernel.metric
    )
    for same in (kernel, kernel.to_partial_trace(), kernel.compressed()):
        np.testing.assert_allclose(same.blocks(X, Z), expected, atol=1e-10)


def test_compressed_has_as_many_operators_as_the_rank_of_D(rng):
    repeated = KrausKernel(np.repeat(rng.normal(size=(2, 3, 4)), 5, axis=0))
    assert repeated.compressed().kraus.shape == (2, 3, 4)
    with_metric = KrausKernel(rng.normal(size=(2, 3, 4)), metric=random_psd(rng, 4, 1)).compressed()
    assert with_metric.metric is None
    assert len(with_metric.kraus) == np.linalg.matrix_rank(with_metric.choi) == 5


@settings(max_examples=30)
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
    np.testing.assert_allclose(
        reference.kraus_blocks(kraus.kraus, X, Z), expected, atol=1e-10 * scale
    )
    G = reference.dense_from_blocks(reference.entangled_blocks(U, T, X, X))
    assert np.linalg.eigvalsh(G)[0] >= -1e-10 * np.abs(G).max()


def test_features_come_from_the_feature_map(rng):
    X = rng.normal(size=(6, 2))
    features = Nystroem(n_components=3, random_state=0).fit(X)
    U, T = rng.normal(size=(6, 6)), random_psd(rng, 2)
    kernel = EntangledKernel(U, T, features)
    assert (kernel.n_outputs, kernel.n_features) == (2, 3)
    Phi = features.transform(X)
    np.testing.assert_allclose(
        kernel.blocks(X), reference.entangled_blocks(U, T, Phi, Phi), atol=1e-10
    )


@pytest.mark.parametrize("symmetric", [True, False])
@settings(max_examples=30)
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


@settings(max_examples=30)
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
    np.testing.assert_allclose(
        kernel.nearest_separable()(X).to_dense(), expected, atol=1e-8 * scale
    )


def test_the_identity_entangler_is_kept_in_few_operators():
    """D = kron(I, 11^T) has rank m, whatever the number p of outputs."""
    kernel = EntangledKernel(np.eye(12), np.ones((4, 4)))
    assert kernel.to_kraus().kraus.shape == (3, 4, 3)
    np.testing.assert_allclose(
        kernel.to_kraus().choi, np.kron(np.eye(3), np.ones((4, 4))), atol=1e-12
    )
