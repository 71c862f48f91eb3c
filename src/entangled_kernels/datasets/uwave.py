"""Gestures seen by an accelerometer along three axes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bunch import make_bunch
from .files import DataFile, read_file

__all__ = ["fetch_uwave"]

SOURCE = (
    "https://raw.githubusercontent.com/lnthach/SAX-SEQL/"
    "fae89394bf89fd39a02149267ef2784bae28e23c/data/"
)
CHECKSUMS = {
    "X": "a3f71f4d7a4e98d0e588c509cc4c94503fc80631c20cf7ee0f8fe8563e615f62",
    "Y": "a1b3b4649a24523bec3312343b72e3e2dd2bcb510b0ce4fc364867dcc09a4145",
    "Z": "1d5711e6bd1d705e2a253c82b71c709b3a930c77e7af24c2bb4ff6f27be217aa",
}
FILES = {
    axis: DataFile(
        folder="uwave",
        name=f"uWaveGestureLibrary_{axis}_TRAIN.txt",
        sha256=checksum,
        url=f"{SOURCE}uWaveGestureLibrary_{axis}_TRAIN",
    )
    for axis, checksum in CHECKSUMS.items()
}

DESCR = """uWave gestures
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
    _check_axes("inputs", inputs)
    _check_axes("outputs", outputs)
    labels, series, paths = _read(sorted({*inputs, *outputs}), data_home, download_if_missing)
    keep = np.ones(len(labels), dtype=bool) if classes is None else _chosen(labels, classes)
    steps = range(1, next(iter(series.values())).shape[1] + 1)
    return make_bunch(
        np.hstack([series[axis][keep] for axis in inputs]),
        np.hstack([series[axis][keep] for axis in outputs]),
        [f"{axis}{step}" for axis in inputs for step in steps],
        [f"{axis}{step}" for axis in outputs for step in steps],
        DESCR,
        as_frame=as_frame,
        return_X_y=return_X_y,
        labels=labels[keep],
        filenames=paths,
    )


def _check_axes(name: str, axes: str) -> None:
    if (
        not isinstance(axes, str)
        or not axes
        or set(axes) - set(FILES)
        or len(set(axes)) < len(axes)
    ):
        raise ValueError(f"{name} must be distinct letters among X, Y and Z, got {axes!r}")


def _chosen(labels: NDArray[np.intp], classes: Sequence[int]) -> NDArray[np.bool_]:
    if not classes or set(classes) - set(labels.tolist()):
        raise ValueError(f"classes must be some of 1 to 8, got {list(classes)!r}")
    return np.isin(labels, list(classes))


def _read(
    axes: list[str], data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> tuple[NDArray[np.intp], dict[str, NDArray[np.float64]], list[str]]:
    """Labels (n,), series (n, 315) of every axis, and the paths read."""
    series, paths, labels = {}, [], np.zeros(0, dtype=np.intp)
    for axis in axes:
        content, path = read_file(FILES[axis], data_home, download_if_missing)
        table = np.fromstring(content.decode("ascii"), sep=" ").reshape(
            content.strip().count(b"\n") + 1, -1
        )
        labels, series[axis] = table[:, 0].astype(np.intp), table[:, 1:]
        paths.append(str(path))
    return labels, series, paths
