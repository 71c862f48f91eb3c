import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold, ShuffleSplit

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.learning import Moments, compression
from entangled_kernels.learning.compression import (
    OutputSubspace,
    compress_rows,
    rotate_to_axes,
    subspace_is_small,
)
from entangled_kernels.selection import GRID, folds


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
    monkeypatch.setattr(compression, "subspace_is_small", lambda *_: False)
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
@pytest.mark.parametrize("options", [{}, {"solver": ["ascent"], "solver_params": [{"max_iter": 3}]}])
def test_selection_is_that_of_all_rows(rows, monkeypatch, cv, options):
    X, Y, weight = rows
    grid = {**GRID, "shrinkage": [0.0, 0.5], "target_alpha": [0.1], **options}
    alphas = np.logspace(-2, 4, 5)
    model = EntangledKernelRidgeCV(None, alphas=alphas, param_grid=grid, cv=cv, random_state=0)
    quick = model.fit(X, Y, weight)
    results, coef, params = quick.cv_results_["mean_test_score"], quick.coef_, quick.best_params_
    for module in (compression, folds):
        monkeypatch.setattr(module, "subspace_is_small", lambda *_: False)
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
        rows.Phi, rotate_to_axes(compress_rows(single.astype(float), Y, centred=True), centred=True).Phi
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
