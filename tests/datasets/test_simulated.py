"""Simulated tables follow the equations they are said to follow."""

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from entangled_kernels.datasets import make_bilinear, make_entangled
from entangled_kernels.linalg import operator_schmidt


def test_bilinear_equation():
    rows = make_bilinear(12, 7, 5, n_test=9, noise=0.0, output_rank=3, random_state=1)
    Y = np.vstack([rows.target, rows.target_test]).T
    np.testing.assert_allclose(Y, rows.T @ rows.C @ rows.A + rows.C @ rows.K, atol=1e-12)
    assert np.linalg.matrix_rank(rows.T) == 3
    assert Y.std() == pytest.approx(1.0)
    # Columns of C are the coefficients of a function in the space of the kernel.
    blocks = rows.kernel.blocks(rows.data_test, rows.data)  # (t, n, p, p)
    np.testing.assert_allclose(
        np.einsum("tnop,pn->to", blocks, rows.C), rows.target_test, atol=1e-12
    )


def test_bilinear_kernel_is_not_separable():
    rows = make_bilinear(6, 3, 4, n_test=0, random_state=0)
    assert rows.target_test.shape == (0, 3)
    G = rows.kernel(rows.data).to_dense()
    values = operator_schmidt(G, (6, 3)).values
    assert values[1] > 1e-3 * values[0]
    assert values[2] < 1e-10 * values[0]


def test_entangled_is_a_draw_from_its_kernel():
    """The covariance over many draws with the same operators and inputs is the Gram matrix."""
    first = make_entangled(3, 2, 2, n_kraus=3, noise=0.0, random_state=0)
    kernel, X = first.kernel, first.data
    G = kernel(X).to_dense()
    assert np.trace(G) / 6 == pytest.approx(1.0)
    # The signal lies in the range of the Gram matrix, and its size is that of three independent
    # weights.
    signal = first.signal.reshape(-1)
    weights = np.linalg.lstsq(
        np.einsum("rom,nm->nor", kernel.kraus, X).reshape(6, 3), signal, rcond=None
    )[0]
    np.testing.assert_allclose(
        np.einsum("rom,nm,r->no", kernel.kraus, X, weights), first.signal, atol=1e-12
    )
    draws = []
    for seed in range(300):
        rows = make_entangled(3, 2, 2, n_kraus=3, noise=0.0, random_state=seed)
        root = np.einsum("rom,nm->nor", rows.kernel.kraus, rows.data).reshape(6, 3)
        draws.append(np.linalg.lstsq(root, rows.signal.reshape(-1), rcond=None)[0])
    np.testing.assert_allclose(np.cov(np.array(draws).T), np.eye(3), atol=0.3)


def test_entangled_noise_features_and_repeatability():
    features = RBFSampler(n_components=8, random_state=0)
    rows = make_entangled(2000, 3, 2, feature_map=features, noise=0.5, random_state=3)
    assert rows.kernel.n_features == 8
    assert np.std(rows.target - rows.signal) == pytest.approx(0.5, rel=0.05)
    again = make_entangled(2000, 3, 2, feature_map=features, noise=0.5, random_state=3)
    np.testing.assert_array_equal(rows.target, again.target)
    assert rows.kernel.entanglement().entangled


def test_frames_and_pairs():
    X, Y = make_bilinear(5, 3, 2, random_state=0, as_frame=True, return_X_y=True)
    assert list(X.columns) == ["x0", "x1"]
    assert list(Y.columns) == ["y0", "y1", "y2"]
    assert make_entangled(5, 2, 2, as_frame=True, random_state=0).frame.shape == (5, 4)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: make_bilinear(0),
            ValueError,
            "n_samples must be a whole number of at least 1, got 0",
        ),
        (
            lambda: make_bilinear(output_rank=2.5),
            TypeError,
            "output_rank must be a whole number of at least 1, got 2.5",
        ),
        (
            lambda: make_bilinear(n_test=-1),
            ValueError,
            "n_test must be a whole number of at least 0, got -1",
        ),
        (
            lambda: make_entangled(n_kraus=True),
            TypeError,
            "n_kraus must be a whole number of at least 1, got True",
        ),
        (
            lambda: make_entangled(noise=float("nan")),
            ValueError,
            "noise must be a number of at least 0, got nan",
        ),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()
