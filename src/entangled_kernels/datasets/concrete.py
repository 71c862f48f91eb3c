"""The concrete slump test."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .bunch import make_bunch
from .files import DataFile, read_file

__all__ = ["fetch_concrete_slump"]

FILE = DataFile(
    folder="concrete_slump",
    name="slump_test.data",
    sha256="9da600e23a290719300d4c7e2190bc7d02936e7e4f05fb17615cb3e8bdfd9997",
    url="https://raw.githubusercontent.com/Alexis-Ribat/"
    "Data_Mining_Alexis_Ribat_Slump_Test_Analysis/9f1b94535f108aa736f48b68778a6d0dcf608006/"
    "slump_test.data",
)
N_INPUTS = 7

DESCR = """Concrete slump test
===================

103 mixtures of concrete. Inputs are seven ingredients in kg per cubic metre; outputs are slump
(cm), flow (cm) and 28-day compressive strength (MPa).

I-Cheng Yeh, "Modeling slump flow of concrete using second-order regressions and artificial neural
networks", Cement and Concrete Composites 29(6), 2007. UCI Machine Learning Repository, 2009.
"""


def fetch_concrete_slump(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Ingredients of 103 concrete mixtures, and three properties of each.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds ``concrete_slump/slump_test.data``, or into which it is downloaded.
        Without it the environment variable ENTANGLED_KERNELS_DATA is used, then
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
        ``data`` (103, 7), ``target`` (103, 3), ``feature_names``, ``target_names``, ``frame``,
        ``filename`` and ``DESCR``.

    Raises
    ------
    FileNotFoundError
        If the file is missing and cannot be downloaded; the message says where to put it.
    ValueError
        If the file is not the one published.
    """
    content, path = read_file(FILE, data_home, download_if_missing)
    lines = content.decode("utf-8").splitlines()
    names = lines[0].split(",")[1:]
    values = np.loadtxt(lines[1:], delimiter=",")[:, 1:]
    return make_bunch(
        values[:, :N_INPUTS],
        values[:, N_INPUTS:],
        names[:N_INPUTS],
        names[N_INPUTS:],
        DESCR,
        as_frame=as_frame,
        return_X_y=return_X_y,
        filename=str(path),
    )
