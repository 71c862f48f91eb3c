"""Gram matrices against their dense definitions."""

import numpy as np
import pytest

import entangled_kernels.convex.grams as module
from convex.problems import (
    make_gram,
    make_kernels,
    random_psd,
    random_stack,
)
from entangled_kernels.convex import (
    Gram,
    KernelPart,
    learn_own,
    reduce_problem,
)
from entangled_kernels.convex.grams import (
    ListedGram,
    SummedGram,
    WeightedGram,
    missing_gram,
    solve_psd,
)

from reference import multiple_kernels as reference


@pytest.fixture
def kronecker(rng):
    return make_gram(rng, 7, 3, 0.4)


def test_kronecker_by_definition(kronecker, rng):
    L, C = random_psd(rng, 3), rng.normal(size=(7, 3))
    G = np.kron(np.diag(kronecker.values), L)
    np.testing.assert_allclose(kronecker.apply(L[None], C).reshape(-1), G @ C.reshape(-1))
    assert np.vdot(L, kronecker.inner_products(C)[0]) == pytest.approx(
        C.reshape(-1) @ G @ C.reshape(-1)
    )
    solved, left = kronecker.solve(L[None])
    expected = np.linalg.solve(G + 0.4 * np.eye(21), kronecker.targets.reshape(-1))
    np.testing.assert_allclose(solved.reshape(-1), expected)
    assert left == 0.0


def test_the_preconditioner_turns_the_system_into_the_identity(kronecker, rng):
    L = random_psd(rng, 3)[None]
    change = kronecker.preconditioner(L)
    X = rng.normal(size=(7, 3))
    np.testing.assert_allclose(change.inverse(change.forward(X)), X)
    C = change.forward(X)
    np.testing.assert_allclose(change.adjoint(kronecker.apply(L, C) + 0.4 * C), X)
    Z = rng.normal(size=(7, 3))
    assert np.vdot(Z, change.forward(X)) == pytest.approx(np.vdot(change.adjoint(Z), X))


def test_the_curvature_is_the_diagonal_of_the_hessian(kronecker, rng):
    """Along unit symmetric directions in the eigenbasis of L, by second differences of the data term."""
    levels, V = np.linalg.eigh(random_psd(rng, 3))
    L = (V * levels) @ V.T
    h = kronecker.curvature(L[None], kronecker.solve(L[None])[0])[0]

    def data(M):
        return 0.5 * np.vdot(kronecker.targets, kronecker.solve(M[None])[0])

    for i in range(3):
        for j in range(i, 3):
            E = np.outer(V[:, i], V[:, j])
            D = (E + E.T) / np.linalg.norm(E + E.T)
            second = (data(L + 1e-4 * D) - 2 * data(L) + data(L - 1e-4 * D)) / 1e-8
            assert h[i, j] == pytest.approx(second, rel=1e-3)


def test_conjugate_gradients_solve_the_ridge_system(rng, monkeypatch):
    """With a preconditioner of another L they take steps; too few of them leave a residual."""
    exact = make_gram(rng, 12, 3, 0.05)

    class Poor(type(exact)):
        def preconditioner(self, L):
            return super().preconditioner(np.eye(3)[None])

        def solve(self, L):
            return Gram.solve(self, L)

    poor = Poor(exact.targets, exact.alpha, exact.values)
    L = random_psd(rng, 3)[None]
    C, slack = poor.solve(L)
    np.testing.assert_allclose(C, exact.solve(L)[0], atol=1e-8)
    assert slack < 1e-16
    monkeypatch.setattr(module, "STEPS", 2)
    C, slack = poor.solve(L)
    left = exact.targets - exact.apply(L, C) - 0.05 * C
    assert slack == np.vdot(left, left) / 0.1
    assert slack > 1e-8
    poor.targets[:] = 0.0
    assert not poor.solve(L)[0].any()


def test_any_positive_definite_system_is_solved(rng):
    A, B = random_psd(rng, 8) + 0.1 * np.eye(8), rng.normal(size=(8, 3))
    found = solve_psd(lambda V: A @ V, lambda V: V / np.diag(A)[:, None], B, 1e-12, 200)
    np.testing.assert_allclose(found, np.linalg.solve(A, B), atol=1e-8)
    assert not solve_psd(lambda V: A @ V, lambda V: V, np.zeros_like(B), 0.0, 5).any()


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.0), (0.5, 1.0, 2.0)])
def test_weighted_by_definition(levels, rng):
    K, Y = make_kernels(rng, 7, 3, 4)
    levels = np.array(levels)
    gram = WeightedGram(Y, 0.3, K, levels)
    d, C = rng.gamma(1.0, size=(4, 1, 1)), rng.normal(size=(7, 3))
    single = [np.kron(k, np.diag(levels)) for k in K]
    G = sum(weight * M for weight, M in zip(d.ravel(), single, strict=True))
    c = C.reshape(-1)
    np.testing.assert_allclose(gram.apply(d, C).reshape(-1), G @ c)
    np.testing.assert_allclose(gram.inner_products(C).ravel(), [c @ M @ c for M in single])
    inverse = np.linalg.inv(G + 0.3 * np.eye(21))
    solved, left = gram.solve(d)
    np.testing.assert_allclose(solved.reshape(-1), inverse @ Y.reshape(-1))
    assert left == 0.0
    expected = [[(M @ c) @ inverse @ (N @ c) for N in single] for M in single]
    np.testing.assert_allclose(gram.curvature(d, C), expected)
    change = gram.preconditioner(d)
    np.testing.assert_allclose(change.inverse(change.forward(C)), C)
    X = change.forward(C)
    np.testing.assert_allclose(change.adjoint(gram.apply(d, X) + 0.3 * X), C, atol=1e-10)


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.0), (0.5, 1.0, 2.0)])
def test_what_is_kept_of_the_last_weights_is_theirs(levels, rng):
    K, Y = make_kernels(rng, 7, 3, 4)
    gram = WeightedGram(Y, 0.3, K, np.array(levels))
    first, second = rng.gamma(1.0, size=(2, 4, 1, 1))
    for d in (first, second, second, first):
        fresh = WeightedGram(Y, 0.3, K, np.array(levels))
        C = gram.solve(d)[0]
        np.testing.assert_array_equal(C, fresh.solve(d)[0])
        for _ in range(2):
            np.testing.assert_array_equal(gram.inner_products(C), fresh.inner_products(C.copy()))
        np.testing.assert_allclose(gram.curvature(second, C), fresh.curvature(second, C))


@pytest.fixture(params=["direct", "conjugate gradients"])
def summed(request, rng, monkeypatch):
    if request.param != "direct":
        monkeypatch.setattr(module, "DIRECT", 0)
    K, Y = make_kernels(rng, 8, 3, 4)
    return SummedGram(Y, 0.05, K)


def test_summed_by_definition(summed, rng):
    T, C = random_stack(rng, 4, 3), rng.normal(size=(8, 3))
    G = reference.gram(summed.kernels, T)
    np.testing.assert_allclose(summed.apply(T, C).reshape(-1), G @ C.reshape(-1))
    assert np.vdot(T, summed.inner_products(C)) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    solved, left = summed.solve(T)
    expected, _ = reference.ridge(summed.kernels, T, summed.targets, 0.05)
    np.testing.assert_allclose(solved, expected, atol=1e-8 * np.abs(expected).max())
    assert 0.0 <= left <= 1e-18
    change = summed.preconditioner(T)
    np.testing.assert_allclose(change.inverse(change.forward(C)), C)
    assert np.vdot(C, change.forward(summed.targets)) == pytest.approx(
        np.vdot(change.adjoint(C), summed.targets)
    )


def test_listed_by_definition(rng):
    K, Y = make_kernels(rng, 6, 3, 4)
    bases, d = random_stack(rng, 4, 3), rng.gamma(1.0, size=(4, 1, 1))
    gram = ListedGram(Y, 0.05, K, bases, constant=2.0)
    C = rng.normal(size=(6, 3))
    G = reference.gram(K, d * bases)
    np.testing.assert_allclose(gram.apply(d, C).reshape(-1), G @ C.reshape(-1))
    assert np.vdot(d, gram.inner_products(C)) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    np.testing.assert_allclose(gram.solve(d)[0], reference.ridge(K, d * bases, Y, 0.05)[0])
    assert (gram.alpha, gram.constant) == (0.05, 2.0)
    assert not gram.curvature(d, C).any()
    np.testing.assert_allclose(gram.preconditioner(d).inverse(gram.preconditioner(d).forward(C)), C)


ALPHA = 0.4


@pytest.fixture
def partial(rng):
    K, Y = make_kernels(rng, 9, 3, 2, linear=True)
    weights = (rng.random((9, 3)) < 0.7) * rng.uniform(0.5, 2.0, size=(9, 3))
    weights[weights.max(axis=1) == 0.0] = 1.0
    return K, Y, weights


@pytest.mark.parametrize("direct", [0, 1500])
@pytest.mark.parametrize("centred", [True, False])
def test_missing_by_definition(partial, rng, centred, direct, monkeypatch):
    """Kernels of rank four in all: coordinates are few, and the system is that of the targets."""
    monkeypatch.setattr(module, "DIRECT_MISSING", direct)
    K, Y, weights = partial
    T = random_stack(rng, 2, 3)
    gram = missing_gram(
        reduce_problem([KernelPart(k) for k in K], Y, weights, centred=centred), ALPHA
    )
    assert gram.problem.kernels.shape == (2, 4, 4)
    root = np.sqrt(weights).reshape(-1)
    G = root[:, None] * reference.gram(K, T) * root
    across = np.eye(27)
    if centred:
        for o in range(3):
            unit = np.where(np.arange(27) % 3 == o, root, 0.0)
            across -= np.outer(unit, unit) / (unit @ unit)
    G = across @ G @ across
    C, D = rng.normal(size=(2, 9, 3))
    np.testing.assert_allclose(gram.apply(T, C).reshape(-1), G @ C.reshape(-1), atol=1e-10)
    assert np.vdot(T, gram.inner_products(C)) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    np.testing.assert_allclose(
        gram.targets.reshape(-1), across @ (root * Y.reshape(-1)), atol=1e-12
    )
    solved, left = gram.solve(T)
    dense = np.linalg.solve(G + ALPHA * np.eye(27), gram.targets.reshape(-1))
    np.testing.assert_allclose(solved.reshape(-1), dense, atol=1e-8)
    assert left < 1e-16
    change = gram.preconditioner(T)
    np.testing.assert_allclose(change.inverse(change.forward(C)), C)
    assert np.vdot(C, change.forward(D)) == pytest.approx(np.vdot(change.adjoint(C), D))
    if direct:
        # The change of variables makes the system the identity.
        image = change.adjoint(gram.apply(T, change.forward(C)) + ALPHA * change.forward(C))
        np.testing.assert_allclose(image, C, atol=1e-9)
    assert not gram.curvature(T, C).any()
    for o in range(3):
        whole = np.einsum("m,mnl->nl", T[:, o, o], gram.kernels_of(o))
        np.testing.assert_allclose(whole, G[o::3, o::3], atol=1e-10)


@pytest.mark.parametrize("centred", [True, False])
def test_predictions_are_those_of_the_best_model(partial, centred):
    """Coefficients and intercepts meet c = w (y - f) / alpha for targets that are not missing."""
    K, Y, weights = partial
    problem = reduce_problem(
        [KernelPart(k) for k in K], Y, weights, centred=centred, normalized=True
    )
    found = learn_own(problem, ALPHA, norm=1.5, tol=1e-5)
    scaled = K / problem.scales[:, None, None]
    fit = sum(k @ found.C @ T for k, T in zip(scaled, found.T, strict=True)) + found.intercept
    np.testing.assert_allclose(ALPHA * found.C, weights * (Y - fit), atol=1e-6)
