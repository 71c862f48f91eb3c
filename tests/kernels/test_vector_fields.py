import numpy as np
import pytest

from entangled_kernels.kernels import CurlFreeKernel, DivergenceFreeKernel


def gaussian_hessian(delta, gamma, step=1e-3):
    """Hessian of exp(-gamma |delta|^2) by central differences."""
    units = step * np.eye(len(delta))

    def second(u, v):
        ends = [
            a * b * np.exp(-gamma * np.sum((delta + a * u + b * v) ** 2)) for a in (1, -1) for b in (1, -1)
        ]
        return sum(ends) / (4 * step**2)

    return np.array([[second(u, v) for v in units] for u in units])


@pytest.mark.parametrize("p", [2, 3])
def test_derivatives_of_the_gaussian(p, rng):
    """Minus the Hessian, and the Hessian less its trace."""
    x, z = rng.normal(size=(2, p))
    H = gaussian_hessian(x - z, 0.6)
    curl = CurlFreeKernel(p, 0.6).blocks(x[None], z[None])[0, 0]
    divergence = DivergenceFreeKernel(p, 0.6).blocks(x[None], z[None])[0, 0]
    np.testing.assert_allclose(curl, -H, atol=1e-5)
    np.testing.assert_allclose(divergence, H - np.trace(H) * np.eye(p), atol=1e-5)


def jacobian(function, x, step=1e-4):
    return np.stack(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))], axis=1
    )


def test_fields_have_no_curl_or_no_divergence(rng):
    """Random fields of the space, by differences: a symmetric Jacobian, or one without a trace."""
    centres, c = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    for kernel in (CurlFreeKernel(3, 0.5), DivergenceFreeKernel(3, 0.5)):

        def field(x, kernel=kernel):
            return np.einsum("jpq,jq->p", kernel.blocks(x[None], centres)[0], c)

        J = jacobian(field, rng.normal(size=3))
        off = J - J.T if isinstance(kernel, CurlFreeKernel) else np.trace(J)
        assert np.abs(off).max() <= 1e-6 * np.abs(J).max()
        other = np.trace(J) if isinstance(kernel, CurlFreeKernel) else J - J.T
        assert np.abs(other).max() > 1e-2 * np.abs(J).max()


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_outputs must be at least 2: on a line"):
        DivergenceFreeKernel(1)
    with pytest.raises(ValueError, match="n_outputs must be a whole number"):
        CurlFreeKernel(0)
    with pytest.raises(ValueError, match="gamma must be a positive number, got -1"):
        CurlFreeKernel(2, gamma=-1)
    with pytest.raises(ValueError, match="X must have one column for each of 2 outputs, got 3"):
        CurlFreeKernel(2).blocks(np.zeros((1, 3)))
    assert repr(CurlFreeKernel(2)) == "CurlFreeKernel(2, gamma=1)"
