import numpy as np
import pytest

import entangled_kernels.multiple_kernels.summed as summed
from entangled_kernels.multiple_kernels.summed import ListedGram, SummedGram
from multiple_kernels.problems import make_kernels, random_stack

from reference import multiple_kernels as reference


@pytest.fixture(params=["direct", "conjugate gradients"])
def gram(request, rng, monkeypatch):
    if request.param != "direct":
        monkeypatch.setattr(summed, "DIRECT", 0)
    K, Y = make_kernels(rng, 8, 3, 4)
    return SummedGram(K, Y, 0.05)


def test_against_the_dense_definition(gram, rng):
    T, C = random_stack(rng, 4, 3), rng.normal(size=(8, 3))
    G = reference.gram(gram.kernels, T)
    np.testing.assert_allclose(gram.apply(T, C).reshape(-1), G @ C.reshape(-1))
    assert np.vdot(T, gram.squares(C)) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    solved, left = gram.solve(T)
    expected, _ = reference.ridge(gram.kernels, T, gram.targets, 0.05)
    np.testing.assert_allclose(solved, expected, atol=1e-8 * np.abs(expected).max())
    assert 0.0 <= left <= 1e-18
    change = gram.preconditioner(T)
    np.testing.assert_allclose(change.inverse(change.forward(C)), C)
    assert np.vdot(C, change.forward(gram.targets)) == pytest.approx(np.vdot(change.adjoint(C), gram.targets))


def test_the_curvature_of_one_kernel_is_exact(rng):
    from entangled_kernels.convex.kronecker import KroneckerGram

    K, Y = make_kernels(rng, 8, 3, 1)
    values, U = np.linalg.eigh(K[0])
    T = random_stack(rng, 1, 3)
    one, plain = SummedGram(K, Y, 0.05), KroneckerGram(values, U.T @ Y, 0.05)
    C = rng.normal(size=(8, 3))
    np.testing.assert_allclose(one.curvature(T, C), plain.curvature(T, U.T @ C))


def test_listed(rng):
    K, Y = make_kernels(rng, 6, 3, 4)
    bases, d = random_stack(rng, 4, 3), rng.gamma(1.0, size=(4, 1, 1))
    gram = ListedGram(SummedGram(K, Y, 0.05, constant=2.0), bases)
    C = rng.normal(size=(6, 3))
    G = reference.gram(K, d * bases)
    np.testing.assert_allclose(gram.apply(d, C).reshape(-1), G @ C.reshape(-1))
    assert np.vdot(d, gram.squares(C)) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    np.testing.assert_allclose(gram.solve(d)[0], reference.ridge(K, d * bases, Y, 0.05)[0])
    assert (gram.alpha, gram.constant) == (0.05, 2.0)
    assert not gram.curvature(d, C).any()
    np.testing.assert_allclose(gram.preconditioner(d).inverse(gram.preconditioner(d).forward(C)), C)
