import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels.autoregression import lag_windows, learn_additive
from entangled_kernels.multiple_kernels import KernelPart, learn_diagonal, reduce_kernels

from reference.autoregression import differences


def test_it_is_the_diagonal_model(rng):
    windows, Y = rng.normal(size=(20, 3, 2)), rng.normal(size=(20, 3))
    model, result = learn_additive(windows, Y, 0.5, gamma=0.3, norm=1.0, max_iter=1000, tol=1e-3)
    grams = [rbf_kernel(windows[:, j], gamma=0.3) for j in range(3)]
    problem = reduce_kernels([KernelPart(K) for K in grams], Y, centred=True, normalized=True)
    expected = learn_diagonal(problem, 0.5)
    np.testing.assert_allclose(result.weights, expected.weights)
    fit = sum(
        K @ result.C @ T / s for K, T, s in zip(grams, result.output_kernels, problem.scales, strict=True)
    )
    np.testing.assert_allclose(model.predict(windows), fit + result.intercept)
    np.testing.assert_allclose(Y - model.predict(windows), 0.5 * result.C, atol=1e-10)


def test_jacobian_against_differences(rng):
    x = rng.normal(size=(25, 3))
    windows = lag_windows(x, 2)[:-1]
    model, _ = learn_additive(windows, x[2:], 0.3, gamma=0.4, norm=2.0, max_iter=1000, tol=1e-3)
    J = model.jacobian(windows[:5])
    np.testing.assert_allclose(J, differences(model.predict, windows[:5]), atol=1e-7 * np.abs(J).max() + 1e-9)
