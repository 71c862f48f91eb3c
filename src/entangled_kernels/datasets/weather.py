"""Daily weather at Canadian stations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..parameters import check_choice
from .bunch import make_bunch
from .files import DataFile, read_file

__all__ = ["fetch_canadian_weather"]

FILE = DataFile(
    folder="canadian_weather",
    name="CanadianWeather.rda",
    sha256="ab141788e5267cbb84fde9e107d59bf8c8e1c1230aecbe6bce61d30ac3771b75",
    url="https://raw.githubusercontent.com/cran/fda/b21dd5c1e007887bfe15b1bc4f21ee8f6b7040a7/data/"
    "CanadianWeather.rda",
)
# Names in the file by our names.
SERIES = {
    "temperature": "Temperature.C",
    "precipitation": "Precipitation.mm",
    "log10 precipitation": "log10precip",
}

DESCR = """Canadian weather
================

Temperature (degrees Celsius) and precipitation (mm) on every day of the year, averaged over 1960 to
1994, at 35 stations. In the logarithm, 0.05 mm stands in for the 27 values without precipitation.

J. O. Ramsay and B. W. Silverman, "Functional Data Analysis"; R package fda.
"""


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
    content, path = read_file(FILE, data_home, download_if_missing)
    weather = _read_r_data(content)["CanadianWeather"]
    daily = weather["dailyAv"]  # (365, 35, 3), with names of days, stations and kinds
    days, stations, kinds = (daily[dim].values.tolist() for dim in daily.dims)
    series = dict(zip(kinds, np.moveaxis(daily.values, 2, 0), strict=True))  # (365, 35) each
    return make_bunch(
        series[SERIES[inputs]].T,
        series[SERIES[outputs]].T,
        [f"{inputs} {day}" for day in days],
        [f"{outputs} {day}" for day in days],
        DESCR,
        as_frame=as_frame,
        return_X_y=return_X_y,
        index=stations,
        stations=stations,
        provinces=weather["province"].tolist(),
        regions=weather["region"].tolist(),
        coordinates=weather["coordinates"].values,
        filename=str(path),
    )


def _read_r_data(content: bytes) -> dict[str, Any]:
    """Objects of a file that R's ``save`` wrote, by name."""
    try:
        import rdata
    except ImportError as error:
        raise ImportError(
            "fetch_canadian_weather reads a file of R with rdata: "
            'pip install "entangled-kernels[data]"'
        ) from error
    return dict(rdata.conversion.convert(rdata.parser.parse_data(content)))
