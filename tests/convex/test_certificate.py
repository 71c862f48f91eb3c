import numpy as np
import pytest

from convex.problems import label, make_gram, penalties, random_psd
from entangled_kernels.convex import Schatten, certify
from entangled_kernels.convex.solve import solve_convex

from reference import convex as reference


@pytest.mark.parametrize("penalty", penalties(3), ids=label)
def test_the_gap_bounds_the_distance_to_the_minimum(penalty, rng):
    """At points far from the minimum, and zero at it."""
    gram = make_gram(rng, 8, 3, 0.3)
    best = solve_convex(gram, penalty, np.eye(3)[None], tol=1e-9, max_iter=4000).point
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

    gram = Rough(exact.values, exact.targets, exact.alpha)
    L = np.eye(3)[None]
    rough, sharp = certify(gram, Schatten(2.0), L), certify(exact, Schatten(2.0), L)
    C = rough.C
    residual = gram.targets - gram.apply(L, C)
    upper = np.vdot(residual, residual) / (2 * 0.5) + 0.5 * np.vdot(C, gram.apply(L, C)) + 1.5
    lower = np.vdot(C, gram.targets) - 0.25 * np.vdot(C, C) - Schatten(2.0).conjugate(gram.squares(C))
    assert rough.value == pytest.approx(upper)
    assert rough.value > sharp.value
    assert rough.gap == pytest.approx(upper - lower)
