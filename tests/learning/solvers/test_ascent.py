from itertools import pairwise

import numpy as np
import pytest

from entangled_kernels.learning.moments import Moments
from entangled_kernels.learning.problem import reduce_moments
from entangled_kernels.learning.solvers import SolverOptions, solve
from entangled_kernels.learning.solvers.ascent import SUFFICIENT_INCREASE

from reference import dense


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(14, 4, 3), (9, 3, 12)])
def test_ascent_takes_the_published_path(make_rows, rng, centred, shape):
    """Value by value the same as steepest ascent with np x np matrices in the original coordinates."""
    n, m, p = shape
    Phi, Y = make_rows(n, m, p)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=centred, mix=0.4)
    Q = rng.normal(size=(*problem.targets.shape, 2))
    start = np.einsum("mf,pk,fkr->mpr", problem.features, problem.outputs, Q).reshape(m * p, 2)
    _, history = dense.DenseAscent(Phi, Y, 0.4, fit_intercept=centred).run(start, 30)
    result = solve("ascent", problem, SolverOptions(init=Q, max_iter=30, tol=0.0))
    np.testing.assert_allclose(result.history, history, atol=1e-9)


def test_every_step_brings_a_share_of_what_the_gradient_promises(make_problem):
    """Q moves along the gradient, which is tangent to the sphere, by step = tan(angle) / gradient norm."""
    seen = []
    solve("ascent", make_problem(), SolverOptions(init="random", callback=seen.append, max_iter=20))
    assert len(seen) == 20
    for before, after in pairwise(seen):
        cosine = np.sum(before.Q * after.Q)
        step = np.sqrt(1 / cosine**2 - 1) / before.gradient_norm
        promised = SUFFICIENT_INCREASE * step * before.gradient_norm**2
        assert after.value - before.value >= promised * (1 - 1e-6)


def test_no_steps_asked_for(make_problem):
    result = solve("ascent", make_problem(), SolverOptions(max_iter=0, tol=0.0))
    assert (result.reason, result.n_iter, len(result.history)) == ("max_iter", 0, 1)


def test_a_given_start_stays_as_it_was(make_problem, rng):
    problem = make_problem()
    Q = rng.normal(size=(*problem.targets.shape, 2))
    kept = Q.copy()
    solve("ascent", problem, SolverOptions(init=Q, callback=lambda progress: None, max_iter=3))
    np.testing.assert_array_equal(Q, kept)
    assert Q.flags.writeable
