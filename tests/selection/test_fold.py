import numpy as np
import pytest
from entangled_kernels.selection.fold import Fold

from entangled_kernels.learning import LearnedKernel, Moments
from entangled_kernels.learning.ridge import KernelRidgeFactor
from entangled_kernels.selection import RowFolds


def test_fold_moments_are_about_the_training_means(make_rows):
    Phi, Y = make_rows(12, 3, 2)
    train, test = Moments.from_arrays(Phi[:8], Y[:8]), Moments.from_arrays(Phi[8:], Y[8:])
    fold = Fold.from_moments(train, test, np.eye(2), centred=True)
    expected = np.sum((Y[8:] - Y[:8].mean(axis=0)) ** 2)
    assert fold.error(np.zeros(fold.problem.targets.shape)) == pytest.approx(expected)


def test_errors_are_those_of_the_predictions(make_rows, rng):
    """Every way to find an error against predictions of the held-out rows."""
    Phi, Y = make_rows(30, 3, 2)
    train, test = Moments.from_arrays(Phi[:20], Y[:20]), Moments.from_arrays(Phi[20:], Y[20:])
    weights = np.diag([0.5, 2.0])
    fold = Fold.from_moments(train, test, weights, centred=True)
    problem = fold.problem
    coef = rng.normal(size=(4, *problem.targets.shape))
    for place in range(4):
        W = problem.expand_coef(coef[place])
        residuals = Y[20:] - Y[:20].mean(axis=0) - (Phi[20:] - Phi[:20].mean(axis=0)) @ W.T
        squares = np.sum(residuals**2, axis=0)
        assert fold.error(coef)[place] == pytest.approx(squares @ np.diag(weights))
        assert fold.target_errors(coef)[place] == pytest.approx(squares)


def test_errors_where_held_out_rows_miss_some_axes(rng):
    """Rows far from all others have features that held-out rows have nothing of, but for rounding."""
    Phi = np.zeros((24, 18))
    Phi[:12, :6], Phi[12:, 6:] = rng.normal(size=(12, 6)), np.eye(12)
    Phi = Phi @ np.linalg.qr(rng.normal(size=(18, 18)))[0]
    Y = rng.normal(size=(24, 3))
    test = np.arange(4)
    fold = next(RowFolds(Phi, Y, None, [(np.arange(4, 24), test)]).folds(np.ones(3)))
    problem, alphas = fold.problem, np.logspace(-6, 2, 9)
    plain = LearnedKernel(1.0, np.zeros((len(problem.scale), 0)), np.zeros((*problem.targets.shape, 0)))
    factor = KernelRidgeFactor(problem, plain)
    coef = factor.coefficients(alphas) @ fold.basis.T  # (alphas, m', p)
    predicted = np.stack([fold.predictions(own, np.ones(1)) for own in coef])
    expected = np.sum((Y[test] - predicted) ** 2, axis=1)
    np.testing.assert_allclose(fold.spectral_target_errors(factor.spectral(alphas)), expected, rtol=1e-9)
    np.testing.assert_allclose(fold.target_errors(factor.coefficients(alphas)), expected, rtol=1e-9)


@pytest.mark.parametrize("n_test", [3, 20])
def test_rows_and_moments_give_the_same_errors(make_rows, rng, n_test):
    """Fewer held-out rows than features, or more."""
    Phi, Y = make_rows(60, 8, 3)
    weight = rng.uniform(0.5, 2.0, size=60)
    split = (np.arange(n_test, 60), np.arange(n_test))
    fold = next(RowFolds(Phi, Y, weight, [split]).folds(np.ones(3)))
    train, test = (Moments.from_arrays(Phi[i], Y[i], weight[i]) for i in split)
    other = Fold.from_moments(train, test, np.eye(3), centred=True)
    for own in (fold, other):
        problem = own.problem
        kernel = LearnedKernel(0.5, np.zeros((8, 0)), problem.targets[:, :, None])
        form = KernelRidgeFactor(problem, kernel).spectral(np.array([0.1, 1.0]))
        if own is fold:
            expected = own.spectral_target_errors(form), own.spectral_error(form)
        else:
            np.testing.assert_allclose(own.spectral_target_errors(form), expected[0], rtol=1e-9)
            np.testing.assert_allclose(own.spectral_error(form), expected[1], rtol=1e-9)
