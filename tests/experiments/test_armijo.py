"""The library's steepest ascent: it rises, ends at the optimum of the closed form, and stops when told to."""

import numpy as np
import pytest

from entangled_kernels.experiments.armijo import ascend_as_library
from entangled_kernels.learning import Moments, SolverOptions, reduce_moments
from entangled_kernels.learning.solvers import solve


@pytest.fixture
def problem(make_rows):
    X, Y = make_rows(20, 3, 2)
    return reduce_moments(Moments.from_arrays(X, Y), centred=True)


def test_rises_to_the_optimum(problem):
    options = SolverOptions(init="random", max_iter=500, tol=1e-6)
    found = ascend_as_library(problem, options)
    assert (np.diff(found.history) >= 0.0).all()
    best = solve("closed-form", problem, SolverOptions()).value
    assert best * 0.999 <= found.value <= best * (1.0 + 1e-9)
    assert np.linalg.norm(found.kernel.Q) == pytest.approx(1.0)


def test_begins_where_our_ascent_begins(problem):
    start = np.random.default_rng(0).standard_normal((*problem.targets.shape, 4))
    options = SolverOptions(init=start, max_iter=1)
    first, ours = ascend_as_library(problem, options), solve("ascent", problem, options)
    np.testing.assert_allclose(first.history, ours.history)
    np.testing.assert_allclose(first.kernel.Q, ours.kernel.Q)


def test_stops_where_the_gradient_vanishes(problem):
    best = solve("closed-form", problem, SolverOptions()).kernel.Q
    found = ascend_as_library(problem, SolverOptions(init=best, max_iter=5, tol=1e-3))
    assert (found.reason, found.n_iter) == ("tolerance", 0)
