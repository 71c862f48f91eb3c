"""The four real tables of the paper, which are read from files or downloaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from scipy.io import loadmat

from ..parameters import check_choice
from .bunch import make_bunch
from .files import DataFile, read_file

__all__ = ["fetch_canadian_weather", "fetch_concrete_slump", "fetch_sarcos", "fetch_uwave"]

GITHUB = "https://raw.githubusercontent.com"
UWAVE_SOURCE = f"{GITHUB}/lnthach/SAX-SEQL/fae89394bf89fd39a02149267ef2784bae28e23c/data"
UWAVE_CHECKSUMS = {
    "X": "a3f71f4d7a4e98d0e588c509cc4c94503fc80631c20cf7ee0f8fe8563e615f62",
    "Y": "a1b3b4649a24523bec3312343b72e3e2dd2bcb510b0ce4fc364867dcc09a4145",
    "Z": "1d5711e6bd1d705e2a253c82b71c709b3a930c77e7af24c2bb4ff6f27be217aa",
}
# Folder and name, SHA256 and address.
FILES = {
    "concrete": DataFile(
        "concrete_slump",
        "slump_test.data",
        "9da600e23a290719300d4c7e2190bc7d02936e7e4f05fb17615cb3e8bdfd9997",
        f"{GITHUB}/Alexis-Ribat/Data_Mining_Alexis_Ribat_Slump_Test_Analysis/"
        "9f1b94535f108aa736f48b68778a6d0dcf608006/slump_test.data",
    ),
    "sarcos": DataFile(
        "sarcos",
        "sarcos_inv_test.mat",
        "161a59b5c3b4f4b404584323f181607b2acbe620eb134dc720760dc3f38f5cec",
        f"{GITHUB}/Kaixhin/SARCOS/bd4800d952ec1a9153cdc84a325ac796f140265e/sarcos_inv_test.mat",
    ),
    "weather": DataFile(
        "canadian_weather",
        "CanadianWeather.rda",
        "ab141788e5267cbb84fde9e107d59bf8c8e1c1230aecbe6bce61d30ac3771b75",
        f"{GITHUB}/cran/fda/b21dd5c1e007887bfe15b1bc4f21ee8f6b7040a7/data/CanadianWeather.rda",
    ),
} | {
    f"uwave {axis}": DataFile(
        "uwave",
        f"uWaveGestureLibrary_{axis}_TRAIN.txt",
        checksum,
        f"{UWAVE_SOURCE}/uWaveGestureLibrary_{axis}_TRAIN",
    )
    for axis, checksum in UWAVE_CHECKSUMS.items()
}

CONCRETE = """Concrete slump test
===================

103 mixtures of concrete. Inputs are seven ingredients in kg per cubic metre; outputs are slump
(cm), flow (cm) and 28-day compressive strength (MPa).

I-Cheng Yeh, "Modeling slump flow of concrete using second-order regressions and artificial neural
networks", Cement and Concrete Composites 29(6), 2007. UCI Machine Learning Repository, 2009.
"""
N_INGREDIENTS = 7


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
    content, path = read_file(FILES["concrete"], data_home, download_if_missing)
    lines = content.decode("utf-8").splitlines()
    names = lines[0].split(",")[1:]
    values = np.loadtxt(lines[1:], delimiter=",")[:, 1:]
    return make_bunch(
        values[:, :N_INGREDIENTS],
        values[:, N_INGREDIENTS:],
        names[:N_INGREDIENTS],
        names[N_INGREDIENTS:],
        CONCRETE,
        as_frame=as_frame,
        return_X_y=return_X_y,
        filename=str(path),
    )


SARCOS = """SARCOS inverse dynamics
=======================

4449 states of a robot arm with seven joints. Inputs are the positions, velocities and accelerations
of the joints, outputs the seven torques. This is the file published as test set. Its rows are in
order along trajectories, so shuffle before splitting.

S. Vijayakumar and S. Schaal; distributed with C. E. Rasmussen and C. K. I. Williams, "Gaussian
Processes for Machine Learning", 2006.
"""
JOINTS = range(1, 8)


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
    content, path = read_file(FILES["sarcos"], data_home, download_if_missing)
    values = loadmat(BytesIO(content))["sarcos_inv_test"]
    quantities = ("position", "velocity", "acceleration")
    feature_names = [f"{quantity} {joint}" for quantity in quantities for joint in JOINTS]
    return make_bunch(
        values[:, : len(feature_names)],
        values[:, len(feature_names) :],
        feature_names,
        [f"torque {joint}" for joint in JOINTS],
        SARCOS,
        as_frame=as_frame,
        return_X_y=return_X_y,
        filename=str(path),
    )


WEATHER = """Canadian weather
================

Temperature (degrees Celsius) and precipitation (mm) on every day of the year, averaged over 1960 to
1994, at 35 stations. In the logarithm, 0.05 mm stands in for the 27 values without precipitation.

J. O. Ramsay and B. W. Silverman, "Functional Data Analysis"; R package fda.
"""
# Names in the file by our names.
SERIES = {
    "temperature": "Temperature.C",
    "precipitation": "Precipitation.mm",
    "log10 precipitation": "log10precip",
}


def fetch_canadian_weather(
    *,
    inputs: str = "temperature",
    outputs: str = "log10 precipitation",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """A year of one kind of weather at 35 stations, to be predicted from another.

    Parameters
    ----------
    inputs, outputs : {"temperature", "precipitation", "log10 precipitation"}
        By default the logarithm of precipitation is predicted from temperature.
    data_home : path, optional
        Folder that holds ``canadian_weather/CanadianWeather.rda``, or into which it is downloaded.
        Without it the environment variable ENTANGLED_KERNELS_DATA is used, then
        ``~/.cache/entangled-kernels``.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    as_frame : bool, default=False
        Give data frames, with stations as index.
    return_X_y : bool, default=False
        Give ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` (35, 365), ``target`` (35, 365), ``stations``, ``provinces`` and ``regions`` (lists
        of 35), ``coordinates`` (35, 2; degrees north and west), ``feature_names``,
        ``target_names``, ``frame``, ``filename`` and ``DESCR``.

    Raises
    ------
    FileNotFoundError
        If the file is missing and cannot be downloaded; the message says where to put it.
    ValueError
        If the file is not the one published.
    ImportError
        Without rdata, which the extra ``data`` installs.
    """
    check_choice("inputs", inputs, SERIES)
    check_choice("outputs", outputs, SERIES)
    try:
        import rdata
    except ImportError as error:
        raise ImportError(
            "fetch_canadian_weather reads a file of R with rdata: "
            'pip install "entangled-kernels[data]"'
        ) from error
    content, path = read_file(FILES["weather"], data_home, download_if_missing)
    weather = rdata.conversion.convert(rdata.parser.parse_data(content))["CanadianWeather"]
    daily = weather["dailyAv"]  # (365, 35, 3), with names of days, stations and kinds
    days, stations, kinds = (daily[dim].values.tolist() for dim in daily.dims)
    series = dict(zip(kinds, np.moveaxis(daily.values, 2, 0), strict=True))  # (365, 35) each
    return make_bunch(
        series[SERIES[inputs]].T,
        series[SERIES[outputs]].T,
        [f"{inputs} {day}" for day in days],
        [f"{outputs} {day}" for day in days],
        WEATHER,
        as_frame=as_frame,
        return_X_y=return_X_y,
        index=stations,
        stations=stations,
        provinces=weather["province"].tolist(),
        regions=weather["region"].tolist(),
        coordinates=weather["coordinates"].values,
        filename=str(path),
    )


UWAVE = """uWave gestures
==============

896 gestures of eight kinds, each a series of 315 accelerations along the axes X, Y and Z,
z-normalised. Inputs are the series along one axis (or several, one after the other), outputs those
along another. This is the training part of the UCR archive.

J. Liu et al., "uWave: Accelerometer-based personalized gesture recognition and its applications",
2009. UCR Time Series Classification Archive.
"""


def fetch_uwave(
    *,
    inputs: str = "X",
    outputs: str = "Y",
    classes: Sequence[int] | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Accelerations of gestures along one axis, and along another to be predicted from them.

    Parameters
    ----------
    inputs, outputs : str, default="X" and "Y"
        Axes: one of the letters X, Y and Z, or several, such as ``"XZ"``.
    classes : sequence of int, optional
        Kinds of gesture to keep, from 1 to 8; all by default.
    data_home : path, optional
        Folder that holds ``uwave/uWaveGestureLibrary_X_TRAIN.txt`` and so on, with ``.gz`` at the
        end or without, or into which they are downloaded. Without it the environment variable
        ENTANGLED_KERNELS_DATA is used, then ``~/.cache/entangled-kernels``.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    as_frame : bool, default=False
        Give data frames.
    return_X_y : bool, default=False
        Give ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` (n, 315) and ``target`` (n, 315) for one axis each, n = 896 for all classes;
        ``labels`` (n,), ``feature_names``, ``target_names``, ``frame``, ``filenames`` and
        ``DESCR``.

    Raises
    ------
    FileNotFoundError
        If a file is missing and cannot be downloaded; the message says where to put it.
    ValueError
        If a file is not the one published.
    """
    for name, axes in (("inputs", inputs), ("outputs", outputs)):
        known = isinstance(axes, str) and set(axes) <= set(UWAVE_CHECKSUMS)
        if not axes or not known or len(set(axes)) < len(axes):
            raise ValueError(f"{name} must be distinct letters among X, Y and Z, got {axes!r}")
    series, paths = {}, []
    for axis in sorted({*inputs, *outputs}):
        content, path = read_file(FILES[f"uwave {axis}"], data_home, download_if_missing)
        series[axis] = np.loadtxt(content.decode("ascii").splitlines(), ndmin=2)
        paths.append(str(path))
    # The first column is the same in all files.
    labels = series[inputs[0]][:, 0].astype(np.intp)
    keep = np.ones(len(labels), dtype=bool)
    if classes is not None:
        if not classes or set(classes) - set(labels.tolist()):
            raise ValueError(f"classes must be some of 1 to 8, got {list(classes)!r}")
        keep = np.isin(labels, list(classes))
    steps = range(1, series[inputs[0]].shape[1])
    return make_bunch(
        np.hstack([series[axis][keep, 1:] for axis in inputs]),
        np.hstack([series[axis][keep, 1:] for axis in outputs]),
        [f"{axis}{step}" for axis in inputs for step in steps],
        [f"{axis}{step}" for axis in outputs for step in steps],
        UWAVE,
        as_frame=as_frame,
        return_X_y=return_X_y,
        labels=labels[keep],
        filenames=paths,
    )
