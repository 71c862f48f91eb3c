import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex.problems import label, make_gram, penalties
from entangled_kernels.convex import SOLVERS, Elastic, Entrywise, Schatten, solve_convex


@pytest.mark.parametrize("penalty", penalties(4), ids=label)
def test_the_gap_is_closed_and_the_history_falls(penalty, rng):
    for alpha in (1e-3, 0.1, 10.0, 1e3):
        gram = make_gram(rng, 10, 4, alpha)
        found = solve_convex(gram, penalty, np.eye(4)[None], max_iter=3000)
        assert found.converged
        assert found.reason == "tolerance"
        assert found.point.gap <= 1e-6 * found.point.value
        assert (np.diff(found.history) <= 0).all()
        assert found.history[-1] <= found.point.value * (1 + 1e-12)


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
    levels = np.linalg.eigvalsh(found.point.L[0])
    assert levels[0] >= -1e-12 * levels[-1]
    assert found.history[-1] <= found.history[0]
    assert found.converged
    assert 0.0 <= found.point.gap <= 1e-6 * found.point.value


@pytest.mark.parametrize(
    "penalty", [Schatten(2.0), Schatten(1.5), Schatten(2.0, 2.0), Elastic(0.5), Elastic(0.3, 2.0)], ids=label
)
def test_solvers_agree(penalty, rng):
    """The dual and the factor meet, where both apply; entrywise k = 1 is Frobenius."""
    gram = make_gram(rng, 10, 4, 0.2)
    dual, factor = (
        solve_convex(gram, penalty, np.eye(4)[None], solver=solver, tol=1e-10, max_iter=5000).point
        for solver in ("dual", "factor")
    )
    assert dual.value == pytest.approx(factor.value, rel=1e-9)
    np.testing.assert_allclose(dual.L, factor.L, atol=2e-4 * np.abs(dual.L).max())
    if penalty == Schatten(2.0):
        entrywise = solve_convex(gram, Entrywise(1), np.eye(4)[None], tol=1e-10).point
        np.testing.assert_allclose(entrywise.L, dual.L, atol=1e-4 * np.abs(dual.L).max())


def test_why_it_ends(rng):
    gram = make_gram(rng, 20, 5, 0.01)
    few = solve_convex(gram, Schatten(1.0), np.eye(5)[None], max_iter=3)
    assert (few.reason, few.converged) == ("max_iter", False)
    none = solve_convex(gram, Schatten(2.0), np.eye(5)[None], tol=0.0, max_iter=10_000)
    assert none.reason in ("stalled", "tolerance")
    assert none.point.gap <= 1e-12 * none.point.value
    assert set(SOLVERS) == {"dual", "factor", "model", "proximal"}


@pytest.mark.parametrize("penalty", [Schatten(2.0), Schatten(1.0), Schatten(1.0, radius=2.0)], ids=label)
def test_an_unconstrained_entangled_kernel_is_kernel_ridge(penalty, rng):
    """G = (Phi kron I) D (Phi kron I)^T with all of D free: its best is of rank one, and teaches nothing.

    With s = (Phi kron I)^T c the squares are s s^T, so D = t s s^T and the fit is t |s|^2 (K kron I) c:
    kernel ridge regression with another alpha, whatever the targets share.
    """
    Phi, Y, alpha = rng.normal(size=(9, 2)), rng.normal(size=(9, 3)), 0.7
    Z = np.kron(Phi, np.eye(3))  # (n p, m p)

    class EntangledGram:
        targets, constant = Y, 0.0

        def __init__(self):
            self.alpha = alpha

        def apply(self, D, C):
            return (Z @ D[0] @ Z.T @ C.reshape(-1)).reshape(C.shape)

        def squares(self, C):
            s = Z.T @ C.reshape(-1)
            return np.outer(s, s)[None]

        def solve(self, D):
            system = Z @ D[0] @ Z.T + alpha * np.eye(len(Z))
            return np.linalg.solve(system, Y.reshape(-1)).reshape(Y.shape), 0.0

        def curvature(self, D, C):
            return np.zeros_like(D)

    gram = EntangledGram()
    point = solve_convex(
        gram, penalty, 0.3 * np.eye(6)[None], tol=1e-11, max_iter=5000, solver="factor"
    ).point
    levels = np.linalg.eigvalsh(point.L[0])
    assert levels[-2] <= 1e-4 * levels[-1]
    fit = gram.apply(point.L, point.C)
    K = Phi @ Phi.T
    ridge = K @ np.linalg.solve(K + alpha / levels[-1] * np.eye(9), Y)
    np.testing.assert_allclose(fit, ridge, atol=1e-4 * np.abs(ridge).max())
