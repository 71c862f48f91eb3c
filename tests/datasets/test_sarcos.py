"""The robot arm: its file, and the whole table where it is there."""

import hashlib
from functools import partial
from io import BytesIO

import numpy as np
from scipy.io import savemat

from entangled_kernels.datasets import fetch_sarcos, sarcos


def test_reads_states_and_torques(tmp_path, monkeypatch):
    values = np.arange(56.0).reshape(2, 28)
    file = BytesIO()
    savemat(file, {"sarcos_inv_test": values})
    digest = hashlib.sha256(file.getvalue()).hexdigest()
    monkeypatch.setattr(sarcos, "FILE", sarcos.FILE._replace(sha256=digest))
    (tmp_path / "sarcos").mkdir()
    (tmp_path / "sarcos" / "sarcos_inv_test.mat").write_bytes(file.getvalue())
    table = fetch_sarcos(data_home=tmp_path)
    np.testing.assert_array_equal(table.data, values[:, :21])
    np.testing.assert_array_equal(table.target, values[:, 21:])
    assert table.feature_names[6:8] == ["position 7", "velocity 1"]
    assert table.target_names[-1] == "torque 7"


def test_real_table(data_with, check_table):
    fetch = partial(fetch_sarcos, data_home=data_with("sarcos"), download_if_missing=False)
    check_table(fetch, (4449, 21), (4449, 7))
