"""The statements of the paper on classes of kernels, one test each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem

from entangled_kernels.kernels import (
    EntangledKernel,
    KrausKernel,
    PartialTraceKernel,
    SeparableKernel,
    SumKernel,
    TransformableKernel,
    entanglement_report,
)
from entangled_kernels.linalg import (
    HadamardOperator,
    KroneckerOperator,
    SumOfKroneckersOperator,
    is_ppt,
    kraus_from_choi,
    operator_schmidt,
)

from reference import blocks as reference

sizes = st.integers(2, 4)
seeds = st.integers(0, 2**32 - 1)


def gram_schmidt_values(kernel, X):
    return operator_schmidt(kernel(X).to_dense(), (len(X), kernel.n_outputs)).values


def random_psd(rng, size, rank=None):
    B = rng.normal(size=(size, rank or size))
    return B @ B.T


def test_transformable_but_not_separable():
    kernel = TransformableKernel("linear", [lambda X: X, lambda X: X**2])
    x, z = 2.0, -3.0
    block = kernel.blocks(np.array([[x]]), np.array([[z]]))[0, 0]
    np.testing.assert_allclose(block, [[x * z, x * z**2], [x**2 * z, x**2 * z**2]])
    values = gram_schmidt_values(kernel, np.array([[1.0], [2.0], [-0.5]]))
    assert values[1] > 1e-2 * values[0]


def test_separable_and_transformable():
    """K(x, z) = <x, z> 11^T: every output sees the same transformed point."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    transformable = TransformableKernel("linear", [np.eye(2)] * 3)
    separable = SeparableKernel("linear", np.ones((3, 3)))
    np.testing.assert_allclose(transformable.blocks(X), separable.blocks(X), atol=1e-12)
    values = gram_schmidt_values(transformable, X)
    assert values[1] < 1e-12 * values[0]


@given(p=sizes, terms=st.integers(1, 4), seed=seeds)
def test_sums_of_separable_are_partial_trace_kernels(p, terms, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    total = SeparableKernel("rbf", random_psd(rng, p), gamma=0.1) * 1.0
    for _ in range(terms - 1):
        total = total + SeparableKernel("rbf", random_psd(rng, p), gamma=float(rng.uniform(0.1, 1)))
    np.testing.assert_allclose(total.to_partial_trace().blocks(X, Z), total.blocks(X, Z), atol=1e-11)


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


@given(p=sizes, m=sizes, seed=seeds)
def test_separable_kernels_have_operators_t_j_e_k(p, m, seed):
    rng = np.random.default_rng(seed)
    kernel = SeparableKernel("linear", random_psd(rng, p))
    X = rng.normal(size=(5, m))
    kraus = kernel.to_kraus(n_features=m)
    assert (np.linalg.matrix_rank(kraus.kraus) == 1).all()
    np.testing.assert_allclose(kraus.blocks(X), kernel.blocks(X), atol=1e-10)


@given(p=sizes, m=sizes, seed=seeds)
def test_identity_kron_T_recovers_the_separable_gram_matrix(p, m, seed):
    rng = np.random.default_rng(seed)
    T, X = random_psd(rng, p), rng.normal(size=(6, m))
    kernel = KrausKernel(kraus_from_choi(np.kron(np.eye(m), T), p))
    np.testing.assert_allclose(kernel(X).to_dense(), np.kron(X @ X.T, T), atol=1e-9)


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


def test_rank_one_kraus_kernel_is_entangled_with_a_readable_report():
    kernel = KrausKernel(np.eye(2)[None])
    report = kernel.entanglement()
    assert report.lowest_eigenvalue == pytest.approx(-0.5)
    assert report.negativity == pytest.approx(0.5)
    assert report.separable_share == pytest.approx(0.25)
    assert report.schmidt_entropy == pytest.approx(np.log(4))
    assert kernel.negativity() == pytest.approx(0.5)
    text = repr(report)
    assert "fails" in text
    assert "-0.5" in text
    assert report.verdict in text
    assert report.verdict.count(".") - report.verdict.count("0.") == 1


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
    separable = SeparableKernel("rbf", random_psd(rng, 2))
    full = Nystroem(n_components=5, random_state=0).fit(X)  # reproduces the kernel on its own points
    np.testing.assert_allclose(separable.to_kraus(full).blocks(X), separable.blocks(X), atol=1e-9)


def test_products_keep_the_structure_of_their_factors():
    X = np.random.default_rng(0).normal(size=(5, 3))
    a, b = SeparableKernel("rbf", np.eye(2)), SeparableKernel("linear", np.ones((2, 2)))
    total = a + b
    assert isinstance((a * b)(X), KroneckerOperator)
    assert len((total * a)(X).Ks) == 2
    assert len((total * total)(X).Ks) == 4
    many = total * (total * total)  # eight pairs of terms
    assert isinstance(many(X), SumOfKroneckersOperator)
    too_many = (total * total) * (total * total)
    assert isinstance(too_many(X), HadamardOperator)
    np.testing.assert_allclose(too_many.blocks(X), total.blocks(X) ** 4)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="feature_map is needed"):
        SeparableKernel("rbf", np.eye(2)).to_kraus()
    with pytest.raises(ValueError, match="n_features is needed"):
        SeparableKernel("linear", np.eye(2)).to_kraus()
    with pytest.raises(ValueError, match="kernel='rfb' is not a scalar kernel"):
        SeparableKernel("rfb", np.eye(2))
    with pytest.raises(TypeError, match="kernel must be a name"):
        SeparableKernel(3, np.eye(2))
    with pytest.raises(ValueError, match="T must be square and symmetric"):
        SeparableKernel("rbf", [[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="metric must be positive semidefinite"):
        KrausKernel(np.ones((1, 2, 2)), metric=-np.eye(2))
    with pytest.raises(ValueError, match="metric must be symmetric"):
        KrausKernel(np.ones((1, 2, 2)), metric=np.eye(3))
    with pytest.raises(ValueError, match="X has 3 features"):
        KrausKernel(np.ones((1, 2, 2)))(np.ones((4, 3)))
    with pytest.raises(ValueError, match="X must be a matrix"):
        SeparableKernel("rbf", np.eye(2))(np.ones(4))
    with pytest.raises(ValueError, match="U has shape"):
        EntangledKernel(np.eye(5), np.eye(2))
    with pytest.raises(ValueError, match="kraus must be real"):
        KrausKernel(1j * np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match="kraus must be finite"):
        KrausKernel(np.full((1, 2, 2), np.nan))
    with pytest.raises(ValueError, match="same number of outputs"):
        SeparableKernel("rbf", np.eye(2)) + SeparableKernel("rbf", np.eye(3))
    with pytest.raises(TypeError, match="unsupported operand"):
        SeparableKernel("rbf", np.eye(2)) + 1.0
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        SeparableKernel("rbf", np.eye(2)) * "a"
    with pytest.raises(ValueError, match="kernels must hold at least one kernel"):
        SumKernel([])
    with pytest.raises(ValueError, match="weights has 2 entries for 1 kernels"):
        SumKernel([SeparableKernel("rbf", np.eye(2))], [1.0, 2.0])
    with pytest.raises(ValueError, match="weights must be finite"):
        SumKernel([SeparableKernel("rbf", np.eye(2))], [np.inf])
    with pytest.raises(ValueError, match="maps must hold one transformation per output"):
        TransformableKernel("rbf", [])
    with pytest.raises(TypeError, match="operator must be callable"):
        PartialTraceKernel(np.eye(4), n_outputs=2)
    with pytest.raises(ValueError, match=r"gave shape \(1, 1, 3, 3\) for one pair"):
        PartialTraceKernel(lambda A, B: np.zeros((len(A), len(B), 3, 3)), n_outputs=2).blocks(np.ones((2, 2)))
    with pytest.raises(TypeError, match="RBF takes its own parameters"):
        SeparableKernel(RBF(), np.eye(2), gamma=1.0)
    with pytest.raises(ValueError, match="T must have 2 dimensions"):
        SeparableKernel("rbf", np.ones(2))
    with pytest.raises(TypeError, match="separable terms only"):
        (KrausKernel(np.ones((1, 2, 2))) * 1.0).to_partial_trace()
