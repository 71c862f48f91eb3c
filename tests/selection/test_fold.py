import numpy as np
import pytest

from entangled_kernels.learning import Moments
from entangled_kernels.selection.fold import Fold


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
    for gain in (1.0, 1.3):
        for place in range(4):
            W = gain * problem.expand_coef(coef[place])
            residuals = Y[20:] - Y[:20].mean(axis=0) - (Phi[20:] - Phi[:20].mean(axis=0)) @ W.T
            squares = np.sum(residuals**2, axis=0)
            gains = np.array([gain])
            assert fold.error(coef, gains)[0, place] == pytest.approx(squares @ np.diag(weights))
            assert fold.target_errors(coef, gains)[0, place] == pytest.approx(squares)
