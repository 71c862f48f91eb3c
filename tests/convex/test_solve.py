import numpy as np
import pytest

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
    assert set(SOLVERS) == {"dual", "factor", "model"}
