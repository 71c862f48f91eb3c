import numpy as np
import pytest

from entangled_kernels.linalg import kraus_to_stacked, stacked_to_kraus, unique_columns

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


@pytest.mark.parametrize("kind", [bool, int, float])
def test_distinct_columns_are_those_of_numpy(kind, rng):
    for n, p in ((40, 7), (3, 50), (5, 1), (0, 3), (4, 0)):
        A = rng.integers(0, 2, size=(n, p)).astype(kind) * kind(-1 if kind is float else 1)
        if n:
            A[1:, : p // 2] = A[1:, p - p // 2 :]
        found, place = unique_columns(A)
        np.testing.assert_array_equal(found[:, place], A)
        if n and p:
            np.testing.assert_array_equal(found, np.unique(A, axis=1))
