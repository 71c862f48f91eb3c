import numpy as np

from entangled_kernels.linalg import kraus_to_stacked, stacked_to_kraus

from reference import dense


def test_stacked_columns_are_the_vectorised_operators(rng):
    kraus = rng.normal(size=(4, 3, 5))
    Q = kraus_to_stacked(kraus)
    np.testing.assert_array_equal(Q, dense.stack(kraus))
    np.testing.assert_array_equal(Q[:, 1], kraus[1].reshape(-1, order="F"))
    np.testing.assert_array_equal(stacked_to_kraus(Q, 3), kraus)
    stack = np.stack([kraus, 2.0 * kraus])
    np.testing.assert_array_equal(kraus_to_stacked(stack), np.stack([Q, 2.0 * Q]))
    np.testing.assert_array_equal(stacked_to_kraus(np.stack([Q, 2.0 * Q]), 3), stack)
