import numpy as np
import pytest

from entangled_kernels import GaussianFeatures
from entangled_kernels.learning.kernel import LearnedKernel
from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import along_axes, compress_rows, reduce_moments


def reduce(Phi, Y, centred=True, mix=0.5):
    rows = compress_rows(Phi, Y, centred=centred)
    moments = Moments.from_arrays(rows.Phi, rows.Y)
    return reduce_moments(moments, centred=centred, mix=mix, rows=rows).restored(rows, moments)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(20, 4, 3), (6, 9, 3), (6, 4, 15), (6, 9, 15)])
def test_moments_in_reduced_coordinates(make_rows, shape, centred):
    Phi, Y = make_rows(*shape)
    problem = reduce(Phi, Y, centred)
    mean_phi, mean_y = (Z.mean(axis=0) if centred else np.zeros(Z.shape[1]) for Z in (Phi, Y))
    np.testing.assert_allclose(problem.mean_phi, mean_phi, atol=1e-12)
    np.testing.assert_allclose(problem.mean_y, mean_y, atol=1e-12)
    reduced, targets = (Phi - mean_phi) @ problem.features, (Y - mean_y) @ problem.outputs
    np.testing.assert_allclose(reduced.T @ reduced, np.diag(problem.scale), atol=1e-10)
    np.testing.assert_allclose(reduced.T @ targets, problem.targets, atol=1e-10)
    np.testing.assert_allclose(reduced @ problem.features.T, Phi - mean_phi, atol=1e-10)
    back = problem.features @ problem.targets @ problem.outputs.T
    np.testing.assert_allclose(back, (Phi - mean_phi).T @ (Y - mean_y), atol=1e-9)
    for basis in (problem.features, problem.outputs):
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    np.testing.assert_allclose(problem.target_scatter, np.sum((Y - mean_y) ** 2, axis=0), rtol=1e-9)


def test_wide_tables_become_small(make_rows):
    problem = reduce(*make_rows(30, 200, 300))
    assert problem.targets.shape == (29, 29)
    assert (problem.n_features, problem.n_outputs) == (200, 300)


def test_redundant_columns_are_dropped(make_rows):
    Phi, Y = make_rows(20, 4, 3)
    Phi = np.hstack([Phi, Phi[:, :2], np.full((20, 1), 7.0)])
    Y = np.hstack([Y, 2 * Y[:, :1], np.full((20, 1), 3.0)])
    assert reduce(Phi, Y).targets.shape == (4, 3)


def test_full_output_space_is_not_rotated(make_rows):
    np.testing.assert_array_equal(reduce(*make_rows(20, 4, 3)).outputs, np.eye(3))


def test_constant_features_or_targets_leave_nothing(make_rows):
    Phi, Y = make_rows(10, 3, 2)
    assert reduce(np.ones_like(Phi), Y).full_rank == 0
    assert not reduce(Phi, np.ones_like(Y)).targets.any()


def test_expansions(make_rows, rng):
    problem = reduce(*make_rows(6, 9, 15))
    m, k = problem.targets.shape
    Q, L = rng.normal(size=(m, k, 2)), rng.normal(size=(m, 2))
    kernel = LearnedKernel(0.5, L, Q)
    expected = np.einsum("of,fkr,pk->rpo", problem.features, Q, problem.outputs)
    np.testing.assert_allclose(problem.expand_kraus(Q), expected, atol=1e-13)
    full = 0.5 * np.eye(9) + problem.features @ L @ L.T @ problem.features.T
    np.testing.assert_allclose(problem.expand_metric(kernel), full, atol=1e-13)
    assert problem.expand_metric(LearnedKernel.from_operators(Q)) is None


@pytest.fixture
def decaying(rng):
    """Features of a wide Gaussian kernel, whose axes grow short fast, and a constant column beside them."""
    X = rng.normal(size=(60, 2))
    Phi = GaussianFeatures(4.0).fit(X[:25]).transform(X)
    return np.column_stack([Phi, np.full(60, 0.1)]), np.sin(X)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("wide", [True, False])
def test_rows_along_axes_are_the_same_rows(decaying, centred, wide):
    Phi, Y = decaying
    Phi, Y = (Phi[:20], Y[:20]) if wide else (Phi, Y)
    rows = along_axes(compress_rows(Phi, Y, centred=centred), centred=centred)
    np.testing.assert_allclose(rows.first_phi + rows.Phi @ rows.features.T, Phi, atol=1e-12)
    assert rows.features.T @ rows.features == pytest.approx(np.eye(rows.Phi.shape[1]), abs=1e-12)
    gram = rows.Phi.T @ rows.Phi
    lengths = np.sqrt(np.diag(gram))
    cosines = np.abs(gram / lengths / lengths[:, None] - np.eye(len(gram)))
    # Even the shortest are at right angles, to what rounding of the longest leaves of them.
    assert np.all(cosines <= 1e-12 * lengths[0] / np.minimum.outer(lengths, lengths))
    assert lengths[-1] < 1e-5 * lengths[0]


def test_axes_are_those_of_float64_rows_of_positive_weight(decaying):
    Phi, Y = decaying
    single = Phi.astype(np.float32)
    rows = along_axes(compress_rows(single, Y, centred=True), centred=True)
    assert rows.Phi.dtype == np.float64
    np.testing.assert_array_equal(
        rows.Phi, along_axes(compress_rows(single.astype(float), Y, centred=True), centred=True).Phi
    )
    weight = np.ones(61)
    weight[-1] = 0.0
    far = along_axes(
        compress_rows(np.vstack([Phi, 1e12 * Phi[:1]]), np.vstack([Y, Y[:1]]), centred=True),
        weight,
        centred=True,
    )
    np.testing.assert_array_equal(
        far.Phi[:-1], along_axes(compress_rows(Phi, Y, centred=True), centred=True).Phi
    )


def test_rows_that_need_no_turn_are_left(make_rows):
    Phi, Y = make_rows(30, 4, 2)
    for features in (Phi, Phi * np.array([1.0, 1e-8, 1.0, 1.0]), np.ones((30, 4)), Phi[:, :1]):
        rows = compress_rows(features, Y, centred=True)
        assert along_axes(rows, centred=True) is rows
