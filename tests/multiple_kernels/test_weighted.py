import numpy as np
import pytest

from entangled_kernels.multiple_kernels.weighted import WeightedGram
from multiple_kernels.problems import make_kernels


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.0), (0.5, 1.0, 2.0)])
def test_against_the_dense_definition(levels, rng):
    K, Y = make_kernels(rng, 7, 3, 4)
    levels = np.array(levels)
    gram = WeightedGram(K, Y, 0.3, levels)
    d, C = rng.gamma(1.0, size=(4, 1, 1)), rng.normal(size=(7, 3))
    single = [np.kron(k, np.diag(levels)) for k in K]
    G = sum(weight * M for weight, M in zip(d.ravel(), single, strict=True))
    c = C.reshape(-1)
    np.testing.assert_allclose(gram.apply(d, C).reshape(-1), G @ c)
    np.testing.assert_allclose(gram.squares(C).ravel(), [c @ M @ c for M in single])
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
    gram = WeightedGram(K, Y, 0.3, np.array(levels))
    first, second = rng.gamma(1.0, size=(2, 4, 1, 1))
    for d in (first, second, second, first):
        fresh = WeightedGram(K, Y, 0.3, np.array(levels))
        C = gram.solve(d)[0]
        np.testing.assert_array_equal(C, fresh.solve(d)[0])
        for _ in range(2):
            np.testing.assert_array_equal(gram.squares(C), fresh.squares(C.copy()))
        np.testing.assert_allclose(gram.curvature(second, C), fresh.curvature(second, C))
