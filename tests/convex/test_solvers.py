"""Solvers and certificates, against each other and the dense definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex.problems import (
    ALPHAS,
    label,
    make_gram,
    make_kernels,
    penalties,
    random_psd,
)
from entangled_kernels.convex import (
    SOLVERS,
    Gram,
    Schatten,
    certify,
    solve_convex,
)
from entangled_kernels.convex.grams import SummedGram
from entangled_kernels.convex.solvers import (
    Proximal,
    minimise,
)

from reference import convex as reference


@given(
    st.integers(0, 2**31),
    st.integers(1, 8),
    st.integers(1, 5),
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.integers(0, 10),
)
@settings(max_examples=80, deadline=None)
def test_invariants(seed, q, k, log_alpha, log_size, number):
    """Whatever the problem: psd parameters, an objective no higher than at the start, a closed gap."""
    penalty = penalties(k)[number]
    gram = make_gram(np.random.default_rng(seed), q, k, 10.0**log_alpha)
    gram.targets[:] *= 10.0**log_size
    found = solve_convex(gram, penalty, np.eye(k)[None], max_iter=5000)
    levels = np.linalg.eigvalsh(found.T[0])
    assert levels[0] >= -1e-12 * levels[-1]
    assert (np.diff(found.history) <= 0).all()
    assert (found.reason, found.converged) == ("tolerance", True)
    assert 0.0 <= found.gap <= 1e-6 * found.value


def test_why_it_ends(rng):
    gram = make_gram(rng, 20, 5, 0.01)
    few = solve_convex(gram, Schatten(1.0), np.eye(5)[None], max_iter=3)
    assert (few.reason, few.converged) == ("max_iter", False)
    none = solve_convex(gram, Schatten(2.0), np.eye(5)[None], tol=0.0, max_iter=10_000)
    assert none.reason in ("stalled", "tolerance")
    assert none.gap <= 1e-12 * none.value


@pytest.mark.parametrize(
    "penalty", [Schatten(2.0), Schatten(1.0), Schatten(1.0, radius=2.0)], ids=label
)
def test_an_unconstrained_entangled_kernel_is_kernel_ridge(penalty, rng):
    """G = (Phi kron I) D (Phi kron I)^T with all of D free: its best is of rank one, and teaches nothing.

    With s = (Phi kron I)^T c the squares are s s^T, so D = t s s^T and the fit is t |s|^2 (K kron
    I) c: kernel ridge regression with another alpha, whatever the targets share.
    """
    Phi, Y, alpha = rng.normal(size=(9, 2)), rng.normal(size=(9, 3)), 0.7
    Z = np.kron(Phi, np.eye(3))  # (n p, m p)

    class EntangledGram(Gram):
        def apply(self, D, C):
            return (Z @ D[0] @ Z.T @ C.reshape(-1)).reshape(C.shape)

        def inner_products(self, C):
            s = Z.T @ C.reshape(-1)
            return np.outer(s, s)[None]

        def solve(self, D):
            system = Z @ D[0] @ Z.T + alpha * np.eye(len(Z))
            return np.linalg.solve(system, Y.reshape(-1)).reshape(Y.shape), 0.0

    gram = EntangledGram(Y, alpha)
    point = solve_convex(
        gram, penalty, 0.3 * np.eye(6)[None], tol=1e-11, max_iter=5000, solver="factor"
    )
    levels = np.linalg.eigvalsh(point.T[0])
    assert levels[-2] <= 1e-4 * levels[-1]
    fit = gram.apply(point.T, point.C)
    K = Phi @ Phi.T
    ridge = K @ np.linalg.solve(K + alpha / levels[-1] * np.eye(9), Y)
    np.testing.assert_allclose(fit, ridge, atol=1e-4 * np.abs(ridge).max())


@pytest.mark.parametrize("penalty", penalties(3), ids=label)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_pair_of_solver_and_penalty_is_solved_or_refused(name, penalty, rng):
    """A solver that takes a penalty closes its gap; one that does not says what it needs."""
    gram = make_gram(rng, 8, 3, 0.3)
    settings = {"solver": name, "tol": 1e-7, "max_iter": 5000}
    if SOLVERS[name].needs in penalty.offers:
        point = solve_convex(gram, penalty, np.eye(3)[None], **settings)
        default = solve_convex(gram, penalty, np.eye(3)[None], tol=1e-7, max_iter=5000)
        assert point.value == pytest.approx(default.value, rel=1e-5)
    else:
        with pytest.raises(
            ValueError, match=f"solver '{name}' needs .*, which .* does not offer; use one"
        ):
            solve_convex(gram, penalty, np.eye(3)[None], **settings)
    assert SOLVERS[penalty.solver].needs in penalty.offers


def test_a_gram_matrix_that_a_solver_cannot_use(rng):
    K, Y = make_kernels(rng, 6, 2, 2)
    with pytest.raises(ValueError, match="solver 'newton' needs a KroneckerGram, got a SummedGram"):
        solve_convex(
            SummedGram(Y, 0.3, K), Schatten(2.0), np.tile(np.eye(2), (2, 1, 1)), solver="newton"
        )
    with pytest.raises(ValueError, match=r"solver must be one of .*, got 'simplex'"):
        solve_convex(SummedGram(Y, 0.3, K), Schatten(2.0), np.eye(2)[None], solver="simplex")


@pytest.mark.parametrize("alpha", ALPHAS)
def test_newton_steps_converge_faster_than_linearly(alpha, rng):
    gram = make_gram(rng, 12, 3, alpha)
    best = solve_convex(gram, Schatten(2.0), np.eye(3)[None], solver="newton", tol=1e-22).T
    gaps = [certify(gram, Schatten(2.0), 1.01 * best).gap]
    for steps in (1, 2):
        found = solve_convex(
            gram, Schatten(2.0), 1.01 * best, solver="newton", max_iter=steps, tol=0.0
        )
        gaps.append(found.gap)
    assert gaps[1] < 0.05**2 * gaps[0]
    assert gaps[2] < 1e-6 * gaps[1]


@pytest.mark.parametrize("solver", ["newton", "balanced"])
def test_steps_that_stall_or_run_out(solver, rng):
    """A tolerance below rounding stops the iteration at the minimum all the same."""
    gram = make_gram(rng, 20, 4, 0.1)
    penalty = Schatten(2.0 if solver == "newton" else 1.0)
    stalled = solve_convex(gram, penalty, np.eye(4)[None], solver=solver, tol=0.0, max_iter=5000)
    assert (stalled.reason, stalled.converged) == ("stalled", False)
    reached = solve_convex(gram, penalty, np.eye(4)[None], solver=solver, tol=1e-18, max_iter=5000)
    assert stalled.value == pytest.approx(reached.value, rel=1e-12)
    short = solve_convex(gram, penalty, np.eye(4)[None], solver=solver, tol=1e-24, max_iter=1)
    assert (short.reason, short.converged, short.n_iter) == ("max_iter", False, 1)


@pytest.mark.parametrize("penalty", penalties(3), ids=label)
def test_the_gap_bounds_the_distance_to_the_minimum(penalty, rng):
    """At points far from the minimum, and zero at it."""
    gram = make_gram(rng, 8, 3, 0.3)
    best = solve_convex(gram, penalty, np.eye(3)[None], tol=1e-9, max_iter=4000)
    assert best.gap <= 1e-9 * best.value
    for _ in range(10):
        point = certify(gram, penalty, penalty.argmax(random_psd(rng, 3)[None]))
        assert point.gap >= point.value - best.value - 1e-9 * best.value


def test_by_definition(rng):
    """Objective and gap from the dense Gram matrix, with a ball and without."""
    gram = make_gram(rng, 6, 3, 0.5)
    L = random_psd(rng, 3)
    K = np.diag(gram.values)
    for penalty, name, constraint in (
        (Schatten(2.0), "frobenius", False),
        (Schatten(1.0), "trace", False),
        (Schatten(1.0, 3.0), "trace", True),
    ):
        M = 3 * L / np.trace(L) if constraint else L
        point = certify(gram, penalty, M[None])
        value, gap = reference.output_kernel_gap(K, gram.targets, M, 0.5, name, constraint)
        assert point.value == pytest.approx(value)
        assert point.gap == pytest.approx(gap)


def test_a_rough_solve_adds_its_residual(rng):
    """With coefficients that solve nothing exactly the bound still holds, by the formula for any c."""
    exact = make_gram(rng, 6, 3, 0.5)

    class Rough(type(exact)):
        def solve(self, L):
            C = super().solve(L)[0] * 1.01
            left = self.targets - self.apply(L, C) - self.alpha * C
            return C, float(np.vdot(left, left)) / (2 * self.alpha)

    gram = Rough(exact.targets, exact.alpha, exact.values)
    L = np.eye(3)[None]
    rough, sharp = certify(gram, Schatten(2.0), L), certify(exact, Schatten(2.0), L)
    C = rough.C
    residual = gram.targets - gram.apply(L, C)
    upper = np.vdot(residual, residual) / (2 * 0.5) + 0.5 * np.vdot(C, gram.apply(L, C)) + 1.5
    lower = (
        np.vdot(C, gram.targets)
        - 0.25 * np.vdot(C, C)
        - Schatten(2.0).conjugate(gram.inner_products(C))
    )
    assert rough.value == pytest.approx(upper)
    assert rough.value > sharp.value
    assert rough.gap == pytest.approx(upper - lower)


BALL = Schatten(1.0, radius=4.0)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0, 1e3])
def test_it_meets_the_factor(alpha, rng):
    gram = make_gram(rng, 10, 4, alpha)
    factor, proximal = (
        solve_convex(gram, BALL, np.eye(4)[None], solver=solver, tol=1e-9, max_iter=5000)
        for solver in ("factor", "proximal")
    )
    assert proximal.converged
    assert proximal.value == pytest.approx(factor.value, rel=2e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("solver", ["factor", "proximal"])
def test_rounding_does_not_end_the_search(solver, seed):
    """Differences between values are below rounding long before the gap is closed."""
    gram = make_gram(np.random.default_rng(seed), 10, 4, 1e-3)
    assert solve_convex(
        gram, BALL, np.eye(4)[None], solver=solver, tol=1e-9, max_iter=5000
    ).converged


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


def test_a_quadratic_of_any_unit(rng):
    A = np.diag([1.0, 10.0, 100.0])
    goal = rng.normal(size=(3, 2))
    for unit in (1e-30, 1.0, 1e30):
        calls = []

        def quadratic(X, unit=unit, calls=calls):
            calls.append(1)
            return unit * (1.0 + 0.5 * np.vdot(X - goal, A @ (X - goal))), unit * (A @ (X - goal))

        X, evaluations = minimise(quadratic, np.zeros((3, 2)), 60)
        np.testing.assert_allclose(X, goal, atol=1e-6)
        assert evaluations == len(calls)


def test_little_left_to_gain_ends_the_search(rng):
    goal = rng.normal(size=(3, 2))
    A = np.array([1.0, 1.5, 2.0])[:, None]

    def bowl(X):
        return 1.0 + 0.5 * np.sum(A * (X - goal) ** 2), A * (X - goal)

    rough, few = minimise(bowl, np.zeros((3, 2)), 50, whitened=True, tol=1e-3)
    exact, many = minimise(bowl, np.zeros((3, 2)), 50, whitened=True)
    assert few < many
    assert bowl(exact)[0] < bowl(rough)[0] <= 1.0 + 1e-2
    # From a start where little is left the search goes on to the end.
    again, _ = minimise(bowl, rough, 50, whitened=True, tol=1.0)
    assert bowl(again)[0] - 1.0 < 1e-12


def test_an_empty_array_is_at_its_minimum():
    X, evaluations = minimise(lambda X: (0.0, X), np.zeros((0, 2)), 5)
    assert X.shape == (0, 2)
    assert evaluations == 1
