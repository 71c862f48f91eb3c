"""Gestures: their files, and the whole table where it is there."""

import hashlib
from functools import partial

import numpy as np
import pytest

from entangled_kernels.datasets import fetch_uwave, uwave


def test_real_table(data_with, check_table):
    fetch = partial(fetch_uwave, data_home=data_with("uwave"), download_if_missing=False)
    check_table(fetch, (896, 315), (896, 315))


def test_real_classes_and_axes(data_with):
    data = data_with("uwave")
    every = fetch_uwave(data_home=data)
    some = fetch_uwave(inputs="XZ", classes=(1, 2, 3), data_home=data)
    assert some.data.shape == (336, 630)
    assert set(some.labels) == {1, 2, 3}
    np.testing.assert_array_equal(some.data[:, :315], every.data[every.labels <= 3])
    assert some.feature_names[315] == "Z1"


def test_reads_rows_and_refuses_unknown_classes(tmp_path, monkeypatch):
    text = b"1 0.5 1e0 -2\n8 1 2 3\n"
    files = {
        axis: file._replace(sha256=hashlib.sha256(text).hexdigest())
        for axis, file in uwave.FILES.items()
    }
    monkeypatch.setattr(uwave, "FILES", files)
    (tmp_path / "uwave").mkdir()
    for file in files.values():
        (tmp_path / "uwave" / file.name).write_bytes(text)
    table = fetch_uwave(data_home=tmp_path)
    np.testing.assert_array_equal(table.data, [[0.5, 1, -2], [1, 2, 3]])
    assert list(table.labels) == [1, 8]
    np.testing.assert_array_equal(fetch_uwave(data_home=tmp_path, classes=[8]).data, [[1, 2, 3]])
    with pytest.raises(ValueError, match=r"classes must be some of 1 to 8, got \[2\]"):
        fetch_uwave(data_home=tmp_path, classes=[2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": "W"}, "inputs must be distinct letters"),
        ({"outputs": "YY"}, "outputs must be distinct letters"),
    ],
)
def test_bad_choices(arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch_uwave(**arguments)
