import numpy as np

from convex.problems import make_gram, random_psd
from entangled_kernels.convex.conjugate_gradients import conjugate_gradients, solve_psd


def test_the_ridge_system_is_solved(rng):
    gram = make_gram(rng, 12, 3, 0.05)
    L = random_psd(rng, 3)[None]
    C, slack = conjugate_gradients(gram, L, 1e-12)
    np.testing.assert_allclose(C, gram.solve(L)[0], atol=1e-9)
    assert slack < 1e-20


def test_what_is_left_is_told(rng):
    """With a preconditioner of another L it takes steps, and too few of them leave a residual."""
    gram = make_gram(rng, 12, 3, 0.05)

    class Poor(type(gram)):
        def preconditioner(self, L):
            return super().preconditioner(np.eye(3)[None])

    poor = Poor(gram.values, gram.targets, gram.alpha)
    L = random_psd(rng, 3)[None]
    C, slack = conjugate_gradients(poor, L, 1e-12, steps=2)
    left = gram.targets - gram.apply(L, C) - 0.05 * C
    assert slack == np.vdot(left, left) / 0.1
    assert slack > 1e-8
    np.testing.assert_allclose(conjugate_gradients(poor, L, 1e-12)[0], gram.solve(L)[0], atol=1e-8)
    poor.targets[:] = 0.0
    assert not conjugate_gradients(poor, L, 1e-12)[0].any()


def test_any_positive_definite_system_is_solved(rng):
    A, B = random_psd(rng, 8) + 0.1 * np.eye(8), rng.normal(size=(8, 3))
    found = solve_psd(lambda V: A @ V, lambda V: V / np.diag(A)[:, None], B, 1e-12, 200)
    np.testing.assert_allclose(found, np.linalg.solve(A, B), atol=1e-8)
    assert not solve_psd(lambda V: A @ V, lambda V: V, np.zeros_like(B), 0.0, 5).any()
