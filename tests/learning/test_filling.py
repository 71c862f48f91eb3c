import numpy as np
import pytest

from entangled_kernels.learning.filling import RELATIVE_ALPHAS, fill_rows


def draw(n=40, m=3, p=3, noise=0.5, rho=0.9, blanks=0.4):
    """Targets whose noise goes together."""
    rng = np.random.default_rng(n + m + p)
    Phi = rng.normal(size=(n, m)) + 2.0
    R = np.full((p, p), rho) + (1 - rho) * np.eye(p)
    Y = Phi @ rng.normal(size=(m, p)) + noise * rng.multivariate_normal(np.zeros(p), R, size=n)
    weight = (rng.random((n, p)) > blanks).astype(float)
    weight[:4] = 1.0
    return Phi, Y, weight


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(30, 4, 3), (12, 30, 2)])
def test_unrelated_targets_are_filled_by_their_own_rows(centred, shape):
    """The ridge fit whose penalty predicts the target's rows best when each is left out."""
    Phi, Y, weight = draw(*shape)
    holes = np.where(weight > 0, Y, np.nan)
    filled, shrinkage = fill_rows(Phi, holes, weight, centred=centred, shrinkage=1.0)
    assert shrinkage == 1.0
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


def test_measured_targets_tell_of_the_others():
    Phi, Y, weight = draw(200)
    holes, blank = np.where(weight > 0, Y, np.nan), weight == 0
    alone, _ = fill_rows(Phi, holes, weight, centred=True, shrinkage=1.0)
    together, shrinkage = fill_rows(Phi, holes, weight, centred=True)
    assert shrinkage < 0.3
    errors = [np.mean((filled - Y)[blank] ** 2) for filled in (alone, together)]
    assert errors[1] < 0.6 * errors[0]


def test_cells_of_less_weight_pull_less():
    Phi, Y, weight = draw(60)
    weight = np.ones_like(weight)
    weight[:30, 0] = 0.25
    filled, _ = fill_rows(Phi, Y, weight, centred=True, shrinkage=1.0)
    np.testing.assert_array_equal(filled[:, 1:], Y[:, 1:])
    np.testing.assert_array_equal(filled[30:, 0], Y[30:, 0])
    values, _ = fill_rows(Phi, Y, np.where(weight < 1, 0.0, weight), centred=True, shrinkage=1.0)
    assert np.abs(filled[:30, 0] - Y[:30, 0]).mean() < np.abs(values[:30, 0] - Y[:30, 0]).mean()


def test_a_target_without_rows_and_features_that_do_not_vary():
    Phi, Y, weight = draw(20)
    weight[:, 2] = 0.0
    filled, _ = fill_rows(np.ones_like(Phi), np.where(weight > 0, Y, np.nan), weight, centred=True)
    assert np.isfinite(filled).all()
    own = weight[:, 0] > 0
    np.testing.assert_allclose(filled[~own, 0].mean(), Y[own, 0].mean(), atol=1.0)
