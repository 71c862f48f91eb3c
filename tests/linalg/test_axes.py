import numpy as np
import pytest

from entangled_kernels.linalg import principal_axes, rank_tolerance


@pytest.mark.parametrize("offset", [None, 0.3, 1e6])
@pytest.mark.parametrize("units", [np.ones(5), 10.0 ** np.array([-8, -4, 0, 4, 8])])
def test_axes_rebuild_the_matrix_and_whiten_it(rng, units, offset):
    X = rng.normal(size=(40, 5)) * units
    C = X.T @ X
    g = None if offset is None else offset * rng.normal(size=5) * units
    scale, axes = principal_axes(C, g)
    assert scale.shape == (5,)
    np.testing.assert_allclose(axes.T @ axes, np.eye(5), atol=1e-9)
    whole = C if g is None else C + np.outer(g, g)
    unit = np.sqrt(np.outer(np.diag(whole), np.diag(whole)))
    np.testing.assert_allclose((axes * scale) @ axes.T / unit, whole / unit, atol=1e-9)
    # All columns are whitened, however small they are.
    whitener = axes / np.sqrt(scale)
    rows = X if g is None else np.vstack([X, g])
    np.testing.assert_allclose((rows @ whitener).T @ (rows @ whitener), np.eye(5), atol=1e-8)


def test_rank(rng):
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 6))
    for units in (np.ones(6), 10.0 ** np.arange(-6, 6, 2)):
        C = (X * units).T @ (X * units)
        scale, axes = principal_axes(C)
        assert axes.shape == (6, 3)
        np.testing.assert_allclose(
            (axes * scale) @ axes.T / np.outer(units, units), X.T @ X, rtol=1e-6, atol=1e-6
        )


def test_nothing():
    for g in (None, np.zeros(3)):
        scale, axes = principal_axes(np.zeros((3, 3)), g)
        assert scale.shape == (0,)
        assert axes.shape == (3, 0)
    scale, axes = principal_axes(np.zeros((3, 3)), np.array([3.0, 0.0, 4.0]))
    np.testing.assert_allclose(scale, 25.0)
    np.testing.assert_allclose(np.abs(axes[:, 0]), [0.6, 0.0, 0.8])


def test_rank_tolerance_grows_with_the_number_of_values():
    eps = np.finfo(float).eps
    assert rank_tolerance(1) == rank_tolerance(64) == 64 * eps
    assert rank_tolerance(1000) == 1000 * eps


def test_a_direction_below_the_tolerance_is_dropped():
    """The eigenvalues are 2 + small and small."""
    for small, kept in ((rank_tolerance(2), 1), (4 * rank_tolerance(2), 2)):
        scale, _ = principal_axes(np.ones((2, 2)) + small * np.eye(2))
        assert len(scale) == kept
