"""Gram matrices: one contract for all of them, against their dense definitions."""

import numpy as np
import pytest

import entangled_kernels.convex.grams as module
from convex.problems import make_gram, make_kernels, random_psd, random_stack
from entangled_kernels.convex import Gram, KernelPart, learn_separate, reduce_problem
from entangled_kernels.convex.autoregression import hadamard_gram
from entangled_kernels.convex.grams import (
    ListedGram,
    SummedGram,
    WeightedGram,
    missing_gram,
    related_targets,
    solve_psd,
)

from reference import autoregression
from reference import multiple_kernels as reference

ALPHA = 0.4
N, P, M = 7, 3, 2


def kronecker(rng):
    gram = make_gram(rng, N, P, ALPHA)
    return gram, random_psd(rng, P)[None], lambda L: np.kron(np.diag(gram.values), L[0])


def weighted(rng, levels=(1.0, 1.0, 1.0)):
    K, Y = make_kernels(rng, N, P, M)
    gram = WeightedGram(Y, ALPHA, K, np.array(levels))
    return (
        gram,
        rng.gamma(1.0, size=(M, 1, 1)),
        lambda d: reference.gram(K, d * np.diag(levels)),
    )


def summed(rng):
    K, Y = make_kernels(rng, N, P, M)
    return SummedGram(Y, ALPHA, K), random_stack(rng, M, P), lambda T: reference.gram(K, T)


def listed(rng):
    K, Y = make_kernels(rng, N, P, M)
    bases = random_stack(rng, M, P)
    gram = ListedGram(Y, ALPHA, K, bases)
    return gram, rng.gamma(1.0, size=(M, 1, 1)), lambda d: reference.gram(K, d * bases)


def missing(rng, centred=True):
    """Kernels of rank four in all: coordinates are few, and the system is that of the targets."""
    K, Y = make_kernels(rng, N, P, M, linear=True)
    weights = (rng.random((N, P)) < 0.7) * rng.uniform(0.5, 2.0, size=(N, P))
    weights[weights.max(axis=1) == 0.0] = 1.0
    problem = reduce_problem([KernelPart(k) for k in K], Y, weights, centred=centred)
    gram = missing_gram(problem, ALPHA)
    root, across = np.sqrt(weights).reshape(-1), np.eye(N * P)
    for o in range(P if centred else 0):
        unit = np.where(np.arange(N * P) % P == o, root, 0.0)
        across -= np.outer(unit, unit) / (unit @ unit)
    np.testing.assert_allclose(gram.targets.reshape(-1), across @ (root * Y.ravel()), atol=1e-12)
    T = random_stack(rng, M, P)
    return gram, T, lambda T: across @ (root[:, None] * reference.gram(K, T) * root) @ across


def hadamard(rng):
    windows, Y = rng.normal(size=(N, P, 2)), rng.normal(size=(N, P))
    gram = hadamard_gram(windows, Y, ALPHA, 0.1, 0.3)
    dense = autoregression.hadamard_gram
    return gram, random_psd(rng, P)[None], lambda B: dense(windows, B[0], 0.1, 0.3)


GRAMS = {
    "kronecker": (kronecker, None),
    "weighted": (weighted, None),
    "weighted with levels": (lambda rng: weighted(rng, (0.5, 1.0, 2.0)), None),
    "summed": (summed, None),
    "summed by conjugate gradients": (summed, "DIRECT"),
    "listed": (listed, None),
    "missing": (missing, None),
    "missing without intercept": (lambda rng: missing(rng, centred=False), None),
    "missing by conjugate gradients": (missing, "DIRECT_MISSING"),
    "hadamard": (hadamard, None),
}
# The preconditioner of these is that of another system, only near to theirs.
APPROXIMATE = ("summed", "listed", "missing by", "hadamard")


@pytest.mark.parametrize("name", GRAMS)
def test_by_definition(name, rng, monkeypatch):
    make, limit = GRAMS[name]
    if limit is not None:
        monkeypatch.setattr(module, limit, 0)
    gram, L, dense = make(rng)
    G, (C, D) = dense(L), rng.normal(size=(2, N, P))
    c = C.reshape(-1)
    np.testing.assert_allclose(gram.apply(L, C).reshape(-1), G @ c, atol=1e-8)
    assert np.vdot(L, gram.inner_products(C)) == pytest.approx(c @ G @ c)
    solved, left = gram.solve(L)
    expected = np.linalg.solve(G + ALPHA * np.eye(N * P), gram.targets.reshape(-1))
    np.testing.assert_allclose(solved.reshape(-1), expected, atol=1e-7)
    assert 0.0 <= left < 1e-16
    change = gram.preconditioner(L)
    np.testing.assert_allclose(change.inverse(change.forward(C)), C)
    assert np.vdot(C, change.forward(D)) == pytest.approx(np.vdot(change.adjoint(C), D))
    if not name.startswith(APPROXIMATE):
        X = change.forward(C)
        np.testing.assert_allclose(change.adjoint(gram.apply(L, X) + ALPHA * X), C, atol=1e-9)


def test_the_curvature_is_the_diagonal_of_the_hessian(rng):
    """Along symmetric directions in the eigenbasis of L, by second differences of the data term."""
    gram = make_gram(rng, 7, 3, 0.4)
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


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.0), (0.5, 1.0, 2.0)])
def test_the_hessian_of_weights(levels, rng):
    gram, d, dense = weighted(rng, levels)
    C, inverse = rng.normal(size=(N, P)), np.linalg.inv(dense(d) + ALPHA * np.eye(N * P))
    F = [dense(e[:, None, None]) @ C.reshape(-1) for e in np.eye(M)]
    np.testing.assert_allclose(gram.curvature(d, C), [[f @ inverse @ g for g in F] for f in F])


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.0), (0.5, 1.0, 2.0)])
def test_the_last_solution_is_kept_for_its_weights_only(levels, rng):
    gram, _, _ = weighted(rng, levels)
    first, second = rng.gamma(1.0, size=(2, M, 1, 1))
    for d in (first, second, second, first):
        fresh = WeightedGram(gram.targets, ALPHA, gram.kernels, gram.levels)
        C = gram.solve(d)[0]
        np.testing.assert_array_equal(C, fresh.solve(d)[0])
        for _ in range(2):
            np.testing.assert_array_equal(gram.inner_products(C), fresh.inner_products(C.copy()))
        np.testing.assert_allclose(gram.curvature(second, C), fresh.curvature(second, C))


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
    A, B = random_psd(rng, 8) + 0.1 * np.eye(8), rng.normal(size=(8, 3))
    assert not solve_psd(lambda V: A @ V, lambda V: V, np.zeros_like(B), 0.0, 5).any()


@pytest.mark.parametrize("make", [summed, missing])
def test_unrelated_targets_in_units_far_apart_are_solved_alone(make, rng, monkeypatch):
    monkeypatch.setattr(module, "DIRECT", 0)
    monkeypatch.setattr(module, "DIRECT_MISSING", 0)
    gram, _, dense = make(rng)
    T = np.zeros((M, P, P))
    T[:] = [[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.5, 0.0, 1.0]]
    assert [group.tolist() for group in related_targets(T)] == [[0, 2], [1]]
    expected = np.linalg.solve(dense(T) + ALPHA * np.eye(N * P), gram.targets.reshape(-1))
    units = np.array([1e-8, 1e8, 1e-8])
    gram.targets[:] *= units
    solved = gram.solve(T)[0] / units
    np.testing.assert_allclose(solved.reshape(-1), expected, atol=1e-8)


@pytest.mark.parametrize("centred", [True, False])
def test_coefficients_are_residuals_of_targets_that_are_not_missing(rng, centred):
    """c = w (y - f) / alpha, with intercepts or without."""
    K, Y = make_kernels(rng, 9, 3, 2, linear=True)
    weights = (rng.random((9, 3)) < 0.7) * rng.uniform(0.5, 2.0, size=(9, 3))
    weights[weights.max(axis=1) == 0.0] = 1.0
    problem = reduce_problem(
        [KernelPart(k) for k in K], Y, weights, centred=centred, normalized=True
    )
    found = learn_separate(problem, ALPHA, norm=1.5, tol=1e-5)
    scaled = K / problem.scales[:, None, None]
    fit = sum(k @ found.C @ T for k, T in zip(scaled, found.T, strict=True)) + found.intercept
    np.testing.assert_allclose(ALPHA * found.C, weights * (Y - fit), atol=1e-6)
    gram, T, dense = missing(rng, centred)
    for o in range(P):
        whole = np.einsum("m,mnl->nl", T[:, o, o], gram.kernels_of(o))
        np.testing.assert_allclose(whole, dense(T)[o::P, o::P], atol=1e-10)
