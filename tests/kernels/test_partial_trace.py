import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem

from entangled_kernels.kernels import PartialTraceKernel, partial_trace

from reference import blocks as reference


def lopsided(Phi, Psi):
    """Operators on two outputs and three traced dimensions."""
    A = np.arange(36.0).reshape(6, 6)
    return np.multiply.outer(Phi @ Psi.T, A) + np.multiply.outer(Phi**2 @ Psi.T, A.T)  # (n, t, 6, 6)


@pytest.mark.parametrize("numbers", [1, 2**22], ids=["one_row_at_a_time", "one_chunk"])
def test_blocks_are_partial_traces_of_the_operator(rng, monkeypatch, numbers):
    monkeypatch.setattr(partial_trace, "CHUNK_NUMBERS", numbers)
    X, Z = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    blocks = PartialTraceKernel(lopsided, n_outputs=2).blocks(X, Z)
    P = lopsided(X, Z)
    for i, j in np.ndindex(5, 3):
        np.testing.assert_allclose(blocks[i, j], reference.partial_trace(P[i, j], (2, 3), 0))


def test_operator_sees_the_features(rng):
    X = rng.normal(size=(5, 4))
    features = Nystroem(n_components=3, random_state=0).fit(X)
    mapped = PartialTraceKernel(lopsided, n_outputs=2, feature_map=features)
    plain = PartialTraceKernel(lopsided, n_outputs=2)
    np.testing.assert_allclose(mapped.blocks(X), plain.blocks(features.transform(X)))
    np.testing.assert_allclose(mapped.diag(X), plain.diag(features.transform(X)))


def test_positivity_is_promised_by_the_maker_only():
    assert not PartialTraceKernel(lopsided, n_outputs=2).guaranteed_psd
    assert PartialTraceKernel(lopsided, n_outputs=2, guaranteed_psd=True).guaranteed_psd


def test_errors_name_the_argument():
    with pytest.raises(TypeError, match="operator must be callable"):
        PartialTraceKernel(np.eye(4), n_outputs=2)
    with pytest.raises(ValueError, match=r"gave shape \(1, 1, 3, 3\) for one pair"):
        PartialTraceKernel(lambda A, B: np.zeros((len(A), len(B), 3, 3)), n_outputs=2).blocks(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"gave shape \(4, 4\) for one pair of points, but must give"):
        PartialTraceKernel(lambda A, B: np.eye(4), n_outputs=2).blocks(np.ones((2, 2)))


def test_there_is_at_least_one_output():
    with pytest.raises(ValueError, match="n_outputs must be a whole number of at least 1, got 0"):
        PartialTraceKernel(lambda Phi, Psi: Phi, 0)
