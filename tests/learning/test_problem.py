import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold, ShuffleSplit

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.learning import LearnedKernel, Moments, reduce_moments
from entangled_kernels.learning import problem as problem_module
from entangled_kernels.learning.problem import (
    OutputSubspace,
    compress_rows,
    reduce_centred_rows,
    rotate_to_axes,
    subspace_is_small,
)
from entangled_kernels.selection import GRID


def reduce(Phi, Y, centred=True):
    rows = compress_rows(Phi, Y, centred=centred)
    moments = Moments.from_arrays(rows.Phi, rows.Y)
    return reduce_moments(moments, centred=centred, rows=rows)


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


@pytest.mark.parametrize("for_ascent", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    "shape", [(20, 4, 3), (6, 9, 3), (6, 4, 15), (6, 9, 15), (9, 1, 1), (70, 100, 3), (90, 70, 4)]
)
def test_rows_give_the_problem_of_their_moments(make_rows, rng, shape, weighted, for_ascent):
    Phi, Y = make_rows(*shape)
    weight = rng.uniform(0.5, 2.0, size=len(Y)) if weighted else None
    if weighted:
        weight[1] = 0.0
    rows = compress_rows(Phi, Y, centred=True)
    moments = Moments.from_arrays(rows.Phi, rows.Y, weight)
    slow = reduce_moments(moments, centred=True, rows=rows)
    fast = reduce_centred_rows(Phi, Y, weight, for_ascent=for_ascent)
    assert fast.targets.shape == slow.targets.shape
    assert (fast.weight, fast.n_outputs, fast.n_features) == (
        pytest.approx(slow.weight),
        slow.n_outputs,
        slow.n_features,
    )
    np.testing.assert_allclose(np.sort(fast.scale), np.sort(slow.scale), rtol=1e-9)
    for one in ("mean_phi", "mean_y", "target_scatter"):
        np.testing.assert_allclose(getattr(fast, one), getattr(slow, one), rtol=1e-9, atol=1e-12)
    products = [problem.features @ problem.targets @ problem.outputs.T for problem in (fast, slow)]
    np.testing.assert_allclose(*products, atol=1e-9 * np.abs(products[1]).max())
    if for_ascent:
        terms = []
        for problem in (fast, slow):
            W = problem.targets / problem.scale[:, None]
            kernel = LearnedKernel.from_operators(W[:, :, None]).mixed(0.0, 1.0 / np.sum(W**2))
            terms.append(problem.alignment_terms(kernel))
        np.testing.assert_allclose(*terms, rtol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e2, 1e4, 1e6]))
def test_no_axis_comes_of_where_the_rows_lie(seed, offset):
    """With more columns than rows, rounding of a far mean must not look like one more axis."""
    rng = np.random.default_rng(seed)
    Phi, Y = rng.normal(size=(9, 14)), rng.normal(size=(9, 2))
    near, far = (reduce_centred_rows(Z, Y, None) for Z in (Phi, Phi + offset))
    assert len(near.scale) == len(far.scale) == 8
    np.testing.assert_allclose(far.scale, near.scale, rtol=1e-13 * max(1.0, offset) * 100)


def test_rows_without_weight_and_single_precision(rng):
    Phi, Y = rng.normal(size=(9, 5)), rng.normal(size=(9, 2))
    weight = np.append(0.0, np.ones(9))
    far = np.vstack([np.full(5, 1e14), Phi])
    one, other = (
        reduce_centred_rows(Phi, Y, None),
        reduce_centred_rows(far, np.vstack([Y[:1], Y]), weight),
    )
    np.testing.assert_allclose(other.scale, one.scale, rtol=1e-12)
    np.testing.assert_allclose(other.mean_phi, one.mean_phi, rtol=1e-12)
    single = Phi.astype(np.float32)
    problems = [reduce_centred_rows(rows, Y, None) for rows in (single, single.astype(float))]
    np.testing.assert_array_equal(problems[0].scale, problems[1].scale)


def test_rows_that_one_decomposition_cannot_keep(make_rows):
    Phi, Y = make_rows(20, 4, 3)
    assert reduce_centred_rows(Phi * [1.0, 1.0, 1.0, 1e-9], Y, None) is None
    assert reduce_centred_rows(np.ones_like(Phi), Y, None) is None
    assert reduce_centred_rows(Phi, Y, np.zeros(20)) is None


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(70, 100), (90, 70), (64, 64)])
def test_axes_from_squares_are_those_of_the_rows(make_rows, rng, monkeypatch, shape, weighted):
    """Where no axis is short, and where one is, which squares would blur."""
    Phi, Y = make_rows(*shape, 3)
    weight = rng.uniform(0.5, 2.0, size=len(Y)) if weighted else None
    left, spread, right = np.linalg.svd(Phi, full_matrices=False)
    short = np.where(np.arange(len(spread)) < len(spread) - 2, spread, 1e-7 * spread[0])
    for rows in (Phi, left * np.maximum(spread, 0.1 * spread[0]) @ right, left * short @ right):
        found = reduce_centred_rows(rows, Y, weight)
        with monkeypatch.context() as patch:
            patch.setattr(problem_module, "_WORTH_SQUARING", 10**9)
            expected = reduce_centred_rows(rows, Y, weight)
        assert found.targets.shape == expected.targets.shape
        np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-10)
        assert (np.diff(found.scale) <= 0.0).all()
        m = len(found.scale)
        np.testing.assert_allclose(found.features.T @ found.features, np.eye(m), atol=1e-10)
        # What ridge with a small alpha makes of both.
        ridges = [
            own.features @ (own.targets / (own.scale + 1e-8)[:, None]) @ own.outputs.T
            for own in (found, expected)
        ]
        np.testing.assert_allclose(*ridges, atol=1e-9 * np.abs(ridges[1]).max())


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
def rows(make_rows, rng):
    """Few features, more rows, many outputs far off the origin."""
    X, Y = make_rows(60, 3, 90)
    return X, Y + 100.0, rng.uniform(0.0, 2.0, size=60)


def test_when_the_subspace_is_small():
    parts = np.array_split(np.arange(100), 5)
    assert subspace_is_small(5, 200, parts, 100)
    assert not subspace_is_small(5, 100, parts, 100)
    assert not subspace_is_small(10, 200, parts, 100)
    assert not subspace_is_small(5, 200, np.array_split(np.arange(100), 100), 100)


@pytest.mark.parametrize("weighted", [True, False])
def test_moments_of_parts_and_unions(rows, weighted):
    Phi, Y, weight = rows
    weight = weight if weighted else None
    parts = np.array_split(np.random.default_rng(0).permutation(60), 4)
    found = OutputSubspace(Phi, Y, weight, parts)
    R = found.rows.outputs
    np.testing.assert_allclose(R.T @ R, np.eye(16), atol=1e-12)
    for index in (*parts, np.concatenate(parts[1:])):
        own = None if weight is None else weight[index]
        whole = Moments.from_arrays(Phi[index], Y[index], own)
        part = Moments.from_arrays(found.rows.Phi[index], found.rows.Y[index], own)
        np.testing.assert_allclose(part.C, whole.C, rtol=1e-12)
        np.testing.assert_allclose(part.B @ R.T, whole.B, atol=1e-10 * np.abs(whole.B).max())
        np.testing.assert_allclose(found.rows.first_y + part.mean_y @ R.T, whole.mean_y, rtol=1e-12)
        np.testing.assert_allclose(found.squares(index, whole.mean_y), np.diag(whole.V), rtol=1e-10)
        norms = (np.linalg.norm(whole.V), np.trace(whole.V))
        np.testing.assert_allclose(found.norms(index), norms, rtol=1e-10)


@pytest.mark.parametrize("solver", ["closed-form", "ascent"])
@pytest.mark.parametrize("weighted", [True, False])
def test_fit_is_that_of_all_rows(rows, monkeypatch, solver, weighted):
    X, Y, weight = rows
    model = EntangledKernelRidge(solver=solver, solver_params={"max_iter": 10})
    quick = model.fit(X, Y, weight if weighted else None)
    names = (
        "coef_",
        "intercept_",
        "alignment_terms_",
        "noise_variance_",
        "rkhs_norm_",
        "full_rank_",
        "kraus_",
    )
    found = {name: np.asarray(getattr(quick, name)) for name in names}
    std = quick.predict(X, return_std=True)[1]
    monkeypatch.setattr(problem_module, "subspace_is_small", lambda *_: False)
    plain = model.fit(X, Y, weight if weighted else None)
    for name in names:
        expected = np.asarray(getattr(plain, name))
        np.testing.assert_allclose(
            found[name], expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max(), err_msg=name
        )
    np.testing.assert_allclose(std, plain.predict(X, return_std=True)[1], rtol=1e-7)


# The grid is short, so that its ends may be chosen.
@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas:UserWarning")
@pytest.mark.parametrize("cv", [KFold(3), ShuffleSplit(2, test_size=0.3, random_state=0)])
@pytest.mark.parametrize(
    "options", [{}, {"solver": ["ascent"], "solver_params": [{"max_iter": 3}]}]
)
def test_selection_is_that_of_all_rows(rows, monkeypatch, cv, options):
    X, Y, weight = rows
    grid = {**GRID, "shrinkage": [0.0, 0.5], "target_alpha": [0.1], **options}
    alphas = np.logspace(-2, 4, 5)
    model = EntangledKernelRidgeCV(None, alphas=alphas, param_grid=grid, cv=cv, random_state=0)
    quick = model.fit(X, Y, weight)
    results, coef, params = quick.cv_results_["mean_test_score"], quick.coef_, quick.best_params_
    monkeypatch.setattr(problem_module, "subspace_is_small", lambda *_: False)
    plain = model.fit(X, Y, weight)
    np.testing.assert_allclose(results, plain.cv_results_["mean_test_score"], rtol=1e-8)
    np.testing.assert_allclose(coef, plain.coef_, atol=1e-7 * np.abs(coef).max())
    for name, value in params.items():
        np.testing.assert_array_equal(value, plain.best_params_[name])


@pytest.fixture
def decaying(rng):
    """Features of a wide Gaussian kernel, whose axes grow short fast, and a constant column beside them."""
    X = rng.normal(size=(60, 2))
    Phi = Nystroem(gamma=0.02, n_components=25, random_state=0).fit(X[:25]).transform(X)
    return np.column_stack([Phi, np.full(60, 0.1)]), np.sin(X)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("wide", [True, False])
def test_rows_along_axes_are_the_same_rows(decaying, centred, wide):
    Phi, Y = decaying
    Phi, Y = (Phi[:20], Y[:20]) if wide else (Phi, Y)
    rows = rotate_to_axes(compress_rows(Phi, Y, centred=centred), centred=centred)
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
    rows = rotate_to_axes(compress_rows(single, Y, centred=True), centred=True)
    assert rows.Phi.dtype == np.float64
    np.testing.assert_array_equal(
        rows.Phi,
        rotate_to_axes(compress_rows(single.astype(float), Y, centred=True), centred=True).Phi,
    )
    weight = np.ones(61)
    weight[-1] = 0.0
    far = rotate_to_axes(
        compress_rows(np.vstack([Phi, 1e12 * Phi[:1]]), np.vstack([Y, Y[:1]]), centred=True),
        weight,
        centred=True,
    )
    np.testing.assert_array_equal(
        far.Phi[:-1], rotate_to_axes(compress_rows(Phi, Y, centred=True), centred=True).Phi
    )


def test_rows_that_need_no_rotation_are_left(make_rows):
    Phi, Y = make_rows(30, 4, 2)
    for features in (Phi, Phi * np.array([1.0, 1e-8, 1.0, 1.0]), np.ones((30, 4)), Phi[:, :1]):
        rows = compress_rows(features, Y, centred=True)
        assert rotate_to_axes(rows, centred=True) is rows
