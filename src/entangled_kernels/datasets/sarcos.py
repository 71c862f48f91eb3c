"""Inverse dynamics of the SARCOS robot arm."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any

from scipy.io import loadmat

from .bunch import make_bunch
from .files import DataFile, read_file

__all__ = ["fetch_sarcos"]

FILE = DataFile(
    folder="sarcos",
    name="sarcos_inv_test.mat",
    sha256="161a59b5c3b4f4b404584323f181607b2acbe620eb134dc720760dc3f38f5cec",
    url="https://raw.githubusercontent.com/Kaixhin/SARCOS/bd4800d952ec1a9153cdc84a325ac796f140265e/"
    "sarcos_inv_test.mat",
)
JOINTS = range(1, 8)

DESCR = """SARCOS inverse dynamics
=======================

4449 states of a robot arm with seven joints. Inputs are the positions, velocities and accelerations
of the joints, outputs the seven torques. This is the file published as test set. Its rows are in
order along trajectories, so shuffle before splitting.

S. Vijayakumar and S. Schaal; distributed with C. E. Rasmussen and C. K. I. Williams, "Gaussian
Processes for Machine Learning", 2006.
"""


def fetch_sarcos(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """4449 states of a robot arm, and the torques of its seven joints.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds ``sarcos/sarcos_inv_test.mat``, or into which it is downloaded. Without it
        the environment variable ENTANGLED_KERNELS_DATA is used, then
        ``~/.cache/entangled-kernels``.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    as_frame : bool, default=False
        Give data frames.
    return_X_y : bool, default=False
        Give ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` (4449, 21), ``target`` (4449, 7), ``feature_names``, ``target_names``, ``frame``,
        ``filename`` and ``DESCR``.

    Raises
    ------
    FileNotFoundError
        If the file is missing and cannot be downloaded; the message says where to put it.
    ValueError
        If the file is not the one published.
    """
    content, path = read_file(FILE, data_home, download_if_missing)
    values = loadmat(BytesIO(content))["sarcos_inv_test"]
    quantities = ("position", "velocity", "acceleration")
    feature_names = [f"{quantity} {joint}" for quantity in quantities for joint in JOINTS]
    return make_bunch(
        values[:, : len(feature_names)],
        values[:, len(feature_names) :],
        feature_names,
        [f"torque {joint}" for joint in JOINTS],
        DESCR,
        as_frame=as_frame,
        return_X_y=return_X_y,
        filename=str(path),
    )
