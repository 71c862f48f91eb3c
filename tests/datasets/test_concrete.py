"""The concrete slump test: its file, and the whole table where it is there."""

from functools import partial

import numpy as np

from entangled_kernels.datasets import fetch_concrete_slump


def test_reads_names_and_columns(toy, tmp_path):
    table = fetch_concrete_slump(data_home=tmp_path)
    assert table.feature_names == list("abcdefg")
    assert table.target_names == ["y 1", "y 2"]
    np.testing.assert_array_equal(table.data, [[1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 4, 5, 6, 7]])
    np.testing.assert_array_equal(table.target, [[8, 9], [8, 1]])


def test_real_table(data_with, check_table):
    fetch = partial(
        fetch_concrete_slump, data_home=data_with("concrete_slump"), download_if_missing=False
    )
    check_table(fetch, (103, 7), (103, 3))
