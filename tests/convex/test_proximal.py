import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex.problems import make_gram, random_psd
from entangled_kernels.convex import Schatten, certify, solve_convex
from entangled_kernels.convex.proximal import Proximal, proximal_round

BALL = Schatten(1.0, radius=4.0)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_a_round_is_a_proximal_step(alpha, rng):
    """At the end of it the slope of J is along L_0 - L: no matrix of the ball is better by both."""
    gram = make_gram(rng, 12, 4, alpha)
    start = certify(gram, BALL, np.eye(4)[None])
    step = proximal_round(gram, BALL, start, 400)
    point = certify(gram, BALL, step.L)
    assert point.value < start.value
    length = 4.0 / np.sqrt(start.gap * max(start.value, start.gap))
    near = Proximal(4.0, start.L, length)
    np.testing.assert_allclose(near.argmax(point.S), step.L, atol=0.05 * np.abs(step.L - start.L).max())
    assert 0 < step.evaluations <= 820


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0, 1e3])
def test_it_meets_the_factor(alpha, rng):
    gram = make_gram(rng, 10, 4, alpha)
    factor, proximal = (
        solve_convex(gram, BALL, np.eye(4)[None], solver=solver, tol=1e-9, max_iter=5000)
        for solver in ("factor", "proximal")
    )
    assert proximal.converged
    assert proximal.point.value == pytest.approx(factor.point.value, rel=2e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("solver", ["factor", "proximal"])
def test_rounding_does_not_end_the_search(solver, seed):
    """Differences between values are below rounding long before the gap is closed."""
    gram = make_gram(np.random.default_rng(seed), 10, 4, 1e-3)
    assert solve_convex(gram, BALL, np.eye(4)[None], solver=solver, tol=1e-9, max_iter=5000).converged


@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 4), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_no_other_matrix_is_better(seed, m, k, log_length):
    """At the argmax <L, S> / 2 less the value is above that of any other psd stack within the ball."""
    rng = np.random.default_rng(seed)
    centre, S, other = (np.stack([random_psd(rng, k) for _ in range(m)]) for _ in range(3))
    other *= 4.0 * rng.random() / np.trace(other, axis1=1, axis2=2).sum()
    near = Proximal(4.0, centre, 10.0**log_length)
    L = near.argmax(S)

    def gain(stack):
        return 0.5 * np.vdot(stack, S) - near.value(stack)

    size = abs(gain(L)) + 0.5 * np.vdot(L, S)
    assert np.linalg.eigvalsh(L).min() >= -1e-10 * np.abs(L).max(initial=1.0)
    assert np.trace(L, axis1=1, axis2=2).sum() <= 4.0 * (1 + 1e-9)
    for share in (1.0, 0.1, 1e-3):
        assert gain(L) >= gain((1 - share) * L + share * other) - 1e-9 * size
