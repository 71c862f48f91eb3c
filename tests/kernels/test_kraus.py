import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem

from entangled_kernels.kernels import KrausKernel, entanglement_report
from entangled_kernels.linalg import (
    is_ppt,
    kraus_from_choi,
    operator_schmidt,
    partial_transpose_eigenvalues,
)
from kernels.draws import random_psd, seeds, sizes

from reference import blocks as reference


@given(p=sizes, m=sizes, seed=seeds)
def test_identity_kron_T_recovers_the_separable_gram_matrix(p, m, seed):
    rng = np.random.default_rng(seed)
    T, X = random_psd(rng, p), rng.normal(size=(6, m))
    kernel = KrausKernel(kraus_from_choi(np.kron(np.eye(m), T), p))
    np.testing.assert_allclose(kernel(X).to_dense(), np.kron(X @ X.T, T), atol=1e-9)


@given(p=sizes, m=sizes, n_operators=st.integers(1, 20), shrink=st.floats(0, 1), seed=seeds)
def test_ppt_of_D_is_ppt_of_G_with_full_rank_features(p, m, n_operators, shrink, seed):
    rng = np.random.default_rng(seed)
    kraus = rng.normal(size=(n_operators, p, m))
    kernel = KrausKernel(kraus, metric=shrink * 4 * n_operators * np.eye(m))
    X = rng.normal(size=(m + 3, m))
    G = kernel(X).to_dense()
    assert np.linalg.matrix_rank(X) == m
    assert kernel.is_ppt() == is_ppt(G, (len(X), p), tol=1e-10)


def test_ppt_of_D_decides_both_ways_in_the_cases_above():
    rng = np.random.default_rng(0)
    kraus = rng.normal(size=(3, 2, 3))
    assert not KrausKernel(kraus).is_ppt()
    assert KrausKernel(kraus, metric=50 * np.eye(3)).is_ppt()


@given(r=st.integers(1, 3), p=st.integers(1, 3), m=st.integers(1, 12), seed=seeds)
def test_diagnosis_on_the_span_of_the_operators_is_that_of_D(r, p, m, seed):
    kernel = KrausKernel(np.random.default_rng(seed).normal(size=(r, p, m)))
    whole = entanglement_report(kernel.choi, (m, p))
    report = kernel.entanglement()
    assert (report.ppt, report.dims, report.schmidt_rank) == (whole.ppt, whole.dims, whole.schmidt_rank)
    assert report.verdict.split(" (")[0] == whole.verdict.split(" (")[0]
    for name in ("lowest_eigenvalue", "negativity", "realignment", "schmidt_entropy", "separable_share"):
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


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="metric must be positive semidefinite"):
        KrausKernel(np.ones((1, 2, 2)), metric=-np.eye(2))
    with pytest.raises(ValueError, match="metric must be symmetric"):
        KrausKernel(np.ones((1, 2, 2)), metric=np.eye(3))
    with pytest.raises(ValueError, match="X has 3 features"):
        KrausKernel(np.ones((1, 2, 2)))(np.ones((4, 3)))
    with pytest.raises(ValueError, match="kraus must be real"):
        KrausKernel(1j * np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match="kraus must be finite"):
        KrausKernel(np.full((1, 2, 2), np.nan))


def test_a_zero_kernel_has_no_entanglement_to_speak_of():
    kernel = KrausKernel(np.zeros((1, 2, 2)))
    for ask in (kernel.negativity, kernel.partial_transpose_eigenvalues, kernel.nearest_separable):
        with pytest.raises(ValueError, match="the kernel is zero"):
            ask()
