import numpy as np

from entangled_kernels.features.kernel_maps import inverse_root
from entangled_kernels.features.training_rows import some_rows


def test_all_rows_where_they_are_few():
    assert some_rows(5, 5, np.random.RandomState(0)).tolist() == [0, 1, 2, 3, 4]
    drawn = some_rows(50, 7, np.random.RandomState(0))
    assert len(np.unique(drawn)) == 7
    assert (np.diff(drawn) > 0).all()


def test_inverse_root_of_full_and_of_low_rank(rng):
    F = rng.normal(size=(6, 6))
    root = inverse_root(F @ F.T)
    np.testing.assert_allclose(root @ (F @ F.T) @ root, np.eye(6), atol=1e-9)
    low = F[:, :2] @ F[:, :2].T
    np.testing.assert_allclose(
        inverse_root(low) @ inverse_root(low), np.linalg.pinv(low), atol=1e-9
    )
    assert not inverse_root(np.zeros((2, 2))).any()
