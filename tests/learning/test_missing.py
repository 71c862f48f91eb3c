import numpy as np
import pytest

from entangled_kernels.learning import (
    Moments,
    complete_moments,
    fill_rows,
    reduce_moments,
    reduce_rows,
)
from entangled_kernels.learning.missing import FILL_ALPHA, RELATIVE_ALPHAS

from reference import cells


def draw(seed, n=16, m=4, p=3):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m)) + 2.0
    weight = (rng.random((n, p)) > 0.4).astype(float)
    weight[:2] = 1.0
    return Phi, Phi[:, :2] @ rng.normal(size=(2, p)) + rng.normal(size=(n, p)), weight


@pytest.mark.parametrize("centred", [True, False])
def test_missing_targets_are_predictions_of_each_targets_own_rows(centred):
    Phi, Y, weight = draw(0)
    filled = cells.filled_targets(Phi, Y, weight, FILL_ALPHA, fit_intercept=centred)
    expected = Moments.from_arrays(Phi, filled)
    found = complete_moments(Moments.from_arrays(Phi, Y, weight), centred=centred)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-10)
    np.testing.assert_allclose(found.C, expected.C, atol=1e-9)
    np.testing.assert_allclose(found.B, expected.B, atol=1e-9)
    np.testing.assert_allclose(np.diag(found.V), np.diag(expected.V), rtol=1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_nothing_is_filled_in_where_nothing_is_missing(centred):
    Phi, Y, _ = draw(1)
    whole = Moments.from_arrays(Phi, Y)
    found = complete_moments(whole, centred=centred)
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(found.scatter, whole.scatter, atol=1e-9)


@pytest.mark.parametrize("shape", [(16, 4, 3), (9, 14, 3)])
@pytest.mark.parametrize("centred", [True, False])
def test_rows_and_moments_give_one_problem(shape, centred):
    Phi, Y, weight = draw(2, *shape)
    problem, kept = reduce_rows(Phi, np.where(weight > 0, Y, np.nan), weight, centred=centred)
    whole = Moments.from_arrays(Phi, Y, weight)
    other = reduce_moments(whole, centred=centred)
    assert (kept is None) == (shape[1] > shape[0])
    completed = reduce_moments(complete_moments(whole, centred=centred), centred=centred)
    np.testing.assert_allclose(np.sort(problem.scale), np.sort(completed.scale), rtol=1e-8)
    np.testing.assert_allclose(np.sort(other.scale), np.sort(completed.scale), rtol=1e-8)
    # The moments of present targets are those of the features in the coordinates of the problem.
    expected = Moments.from_arrays(Phi @ problem.features, Y, weight)
    for (_, left), (_, right) in zip(problem.missing.groups, expected.groups, strict=True):
        np.testing.assert_allclose(left.scatter, right.scatter, atol=1e-9)
        np.testing.assert_allclose(left.mean, right.mean, atol=1e-9)


def test_features_that_do_not_vary():
    Phi, Y, weight = draw(3)
    found = complete_moments(Moments.from_arrays(np.ones_like(Phi), Y, weight), centred=True)
    np.testing.assert_allclose(found.mean_y, np.nansum(Y * weight, axis=0) / weight.sum(axis=0))
    assert not found.B.any()


def draw_related(n=40, m=3, p=3, noise=0.5, rho=0.9, missing=0.4):
    """Targets whose noise goes together."""
    rng = np.random.default_rng(n + m + p)
    Phi = rng.normal(size=(n, m)) + 2.0
    R = np.full((p, p), rho) + (1 - rho) * np.eye(p)
    Y = Phi @ rng.normal(size=(m, p)) + noise * rng.multivariate_normal(np.zeros(p), R, size=n)
    weight = (rng.random((n, p)) > missing).astype(float)
    weight[:4] = 1.0
    return Phi, Y, weight


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(30, 4, 3), (12, 30, 2)])
def test_unrelated_targets_are_filled_by_their_own_rows(centred, shape):
    """The ridge fit whose penalty predicts the target's rows best when each is left out."""
    Phi, Y, weight = draw_related(*shape)
    holes = np.where(weight > 0, Y, np.nan)
    filled, shares = fill_rows(Phi, holes, weight, centred=centred, shares=np.zeros(2))
    assert not shares.any()
    np.testing.assert_array_equal(filled[weight > 0], Y[weight > 0])
    for o in range(shape[2]):
        own = weight[:, o] > 0
        A, y, Z = Phi[own], Y[own, o], Phi[~own]

        def predict(A, y, Z, alpha):
            mean, centre = (A.mean(axis=0), y.mean()) if centred else (0.0, 0.0)
            K = (A - mean) @ (A - mean).T + alpha * np.eye(len(A))
            return centre + (Z - mean) @ (A - mean).T @ np.linalg.solve(K, y - centre)

        spread = A - A.mean(axis=0) if centred else A
        alphas = np.sum(spread**2) / len(A) * RELATIVE_ALPHAS
        rows = np.arange(len(A))
        losses = [
            sum((y[i] - predict(A[rows != i], y[rows != i], A[[i]], alpha)[0]) ** 2 for i in rows)
            for alpha in alphas
        ]
        best = alphas[int(np.argmin(losses))]
        np.testing.assert_allclose(filled[~own, o], predict(A, y, Z, best), rtol=1e-7, atol=1e-8)


def test_present_targets_predict_the_missing_ones():
    Phi, Y, weight = draw_related(200)
    holes, missing = np.where(weight > 0, Y, np.nan), weight == 0
    alone, _ = fill_rows(Phi, holes, weight, centred=True, shares=np.zeros(2))
    together, shares = fill_rows(Phi, holes, weight, centred=True)
    assert shares.sum() > 0.7
    errors = [np.mean((filled - Y)[missing] ** 2) for filled in (alone, together)]
    assert errors[1] < 0.6 * errors[0]


def test_targets_of_less_weight_pull_less():
    Phi, Y, weight = draw_related(60)
    weight = np.ones_like(weight)
    weight[:30, 0] = 0.25
    filled, _ = fill_rows(Phi, Y, weight, centred=True, shares=np.zeros(2))
    np.testing.assert_array_equal(filled[:, 1:], Y[:, 1:])
    np.testing.assert_array_equal(filled[30:, 0], Y[30:, 0])
    values, _ = fill_rows(
        Phi, Y, np.where(weight < 1, 0.0, weight), centred=True, shares=np.zeros(2)
    )
    assert np.abs(filled[:30, 0] - Y[:30, 0]).mean() < np.abs(values[:30, 0] - Y[:30, 0]).mean()


def test_a_target_without_rows_and_features_that_do_not_vary():
    Phi, Y, weight = draw_related(20)
    weight[:, 2] = 0.0
    filled, _ = fill_rows(np.ones_like(Phi), np.where(weight > 0, Y, np.nan), weight, centred=True)
    assert np.isfinite(filled).all()
    own = weight[:, 0] > 0
    np.testing.assert_allclose(filled[~own, 0].mean(), Y[own, 0].mean(), atol=1.0)
