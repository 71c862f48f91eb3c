import numpy as np
import pytest

from convex.problems import make_gram, random_psd


@pytest.fixture
def gram(rng):
    return make_gram(rng, 7, 3, 0.4)


def test_against_the_kronecker_product(gram, rng):
    L, C = random_psd(rng, 3), rng.normal(size=(7, 3))
    G = np.kron(np.diag(gram.values), L)
    np.testing.assert_allclose(gram.apply(L[None], C).reshape(-1), G @ C.reshape(-1))
    assert np.vdot(L, gram.squares(C)[0]) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    solved, left = gram.solve(L[None])
    expected = np.linalg.solve(G + 0.4 * np.eye(21), gram.targets.reshape(-1))
    np.testing.assert_allclose(solved.reshape(-1), expected)
    assert left == 0.0


def test_the_preconditioner_turns_the_system_into_the_identity(gram, rng):
    L = random_psd(rng, 3)[None]
    change = gram.preconditioner(L)
    X = rng.normal(size=(7, 3))
    np.testing.assert_allclose(change.inverse(change.forward(X)), X)
    C = change.forward(X)
    np.testing.assert_allclose(change.adjoint(gram.apply(L, C) + 0.4 * C), X)
    Z = rng.normal(size=(7, 3))
    assert np.vdot(Z, change.forward(X)) == pytest.approx(np.vdot(change.adjoint(Z), X))


def test_the_curvature_is_the_diagonal_of_the_hessian(gram, rng):
    """Along unit symmetric directions in the eigenbasis of L, by second differences of the data term."""
    levels, V = np.linalg.eigh(random_psd(rng, 3))
    L = (V * levels) @ V.T
    h = gram.curvature(L[None], gram.solve(L[None])[0])[0]

    def data(M):
        return 0.5 * np.vdot(gram.targets, gram.solve(M[None])[0])

    for i in range(3):
        for j in range(i, 3):
            E = np.outer(V[:, i], V[:, j])
            D = (E + E.T) / np.linalg.norm(E + E.T)
            second = (data(L + 1e-4 * D) - 2 * data(L) + data(L - 1e-4 * D)) / 1e-8
            assert h[i, j] == pytest.approx(second, rel=1e-3)
