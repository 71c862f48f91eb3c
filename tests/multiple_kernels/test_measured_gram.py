"""The Gram matrix of measured cells against its dense definition."""

import numpy as np
import pytest

import entangled_kernels.multiple_kernels.measured_gram as module
from entangled_kernels.multiple_kernels import KernelPart, learn_own, reduce_cells
from entangled_kernels.multiple_kernels.measured_gram import measured_gram
from multiple_kernels.problems import make_kernels, random_stack

from reference import multiple_kernels as reference

ALPHA = 0.4


@pytest.fixture
def cells(rng):
    K, Y = make_kernels(rng, 9, 3, 2, linear=True)
    weights = (rng.random((9, 3)) < 0.7) * rng.uniform(0.5, 2.0, size=(9, 3))
    weights[weights.max(axis=1) == 0.0] = 1.0
    return K, Y, weights


@pytest.mark.parametrize("direct", [0, 1500])
@pytest.mark.parametrize("centred", [True, False])
def test_against_the_dense_definition(cells, rng, centred, direct, monkeypatch):
    """Kernels of rank four in all: coordinates are few, and the system is that of the cells."""
    monkeypatch.setattr(module, "DIRECT", direct)
    K, Y, weights = cells
    T = random_stack(rng, 2, 3)
    gram = measured_gram(reduce_cells([KernelPart(k) for k in K], Y, weights, centred=centred), ALPHA)
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
    assert np.vdot(T, gram.squares(C)) == pytest.approx(C.reshape(-1) @ G @ C.reshape(-1))
    np.testing.assert_allclose(gram.targets.reshape(-1), across @ (root * Y.reshape(-1)), atol=1e-12)
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
        whole = np.einsum("m,mnl->nl", T[:, o, o], gram.own_kernels(o))
        np.testing.assert_allclose(whole, G[o::3, o::3], atol=1e-10)


@pytest.mark.parametrize("centred", [True, False])
def test_predictions_are_those_of_the_best_model(cells, centred):
    """Coefficients and intercepts meet c = w (y - f) / alpha on measured cells."""
    K, Y, weights = cells
    problem = reduce_cells([KernelPart(k) for k in K], Y, weights, centred=centred, normalized=True)
    found = learn_own(problem, ALPHA, norm=1.5, tol=1e-5)
    scaled = K / problem.scales[:, None, None]
    fit = sum(k @ found.C @ T for k, T in zip(scaled, found.output_kernels, strict=True)) + found.intercept
    np.testing.assert_allclose(ALPHA * found.C, weights * (Y - fit), atol=1e-6)
