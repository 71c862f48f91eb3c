import numpy as np

from entangled_kernels.multiple_kernels import KernelPart, learn_own, reduce_kernels
from multiple_kernels.problems import make_kernels


def test_the_intercept_leaves_residuals_without_a_mean(rng):
    K, Y = make_kernels(rng, 15, 3, 2)
    result = learn_own(reduce_kernels([KernelPart(k) for k in K], Y + 5.0, centred=True), 0.3)
    fit = sum(k @ result.C @ T for k, T in zip(K, result.output_kernels, strict=True)) + result.intercept
    np.testing.assert_allclose((Y + 5.0 - fit).mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(Y + 5.0 - fit, 0.3 * result.C, atol=1e-8)
