"""Tables as scikit-learn hands them out."""

import numpy as np

from entangled_kernels.datasets.bunch import make_bunch

DATA, TARGET = [[1, 2], [3, 4], [5, 6]], [[7], [8], [9]]


def test_holds_numbers_and_names():
    table = make_bunch(DATA, TARGET, ["a", "b"], ["y"], "Three rows", labels=[0, 1, 1])
    assert table.data.dtype == table.target.dtype == np.float64
    np.testing.assert_array_equal(table.data, DATA)
    np.testing.assert_array_equal(table.target, TARGET)
    assert (table.feature_names, table.target_names, table.DESCR) == (
        ["a", "b"],
        ["y"],
        "Three rows",
    )
    assert table.labels == [0, 1, 1]
    assert table.frame is None


def test_frames_have_names_and_index():
    table = make_bunch(DATA, TARGET, ["a", "b"], ["y"], "", as_frame=True, index=["u", "v", "w"])
    assert list(table.frame.columns) == ["a", "b", "y"]
    assert table.frame.loc["v"].tolist() == [3, 4, 8]
    X, Y = make_bunch(DATA, TARGET, ["a", "b"], ["y"], "", as_frame=True, return_X_y=True)
    assert list(X.columns) == ["a", "b"]
    assert Y["y"].tolist() == [7, 8, 9]
