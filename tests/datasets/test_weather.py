"""Canadian weather: its file, and the whole table where it is there."""

import hashlib
import sys
from functools import partial

import numpy as np
import pytest

from datasets.rda_files import (
    ATTRIBUTES,
    HEADER,
    attributes,
    integer,
    integers,
    named_list,
    reals,
    strings,
    symbol,
)
from entangled_kernels.datasets import fetch_canadian_weather, weather

KINDS = {
    "temperature": "temperature_C",
    "precipitation": "precipitation_mm",
    "log10 precipitation": "log10_precip",
}


def dressed_reals(values, **own):
    return reals(np.ravel(values, order="F"), 14 | ATTRIBUTES) + attributes(**own)


def test_reads_stations_days_and_kinds(tmp_path, monkeypatch):
    averages = np.arange(12.0).reshape(2, 2, 3)  # (days, stations, kinds)
    kinds = strings("Temperature.C", "Precipitation.mm", "log10precip")
    names = (
        integer(19)
        + integer(3)
        + strings("jan01", "jan02")
        + strings("Halifax", "Resolute")
        + kinds
    )
    content = named_list(
        dailyAv=dressed_reals(averages, dim=integers([2, 2, 3]), dimnames=names),
        province=strings("Nova Scotia", "Nunavut"),
        region=strings("Atlantic", "Arctic"),
        coordinates=dressed_reals(
            [[44.6, 63.6], [74.7, 94.9]],
            dim=integers([2, 2]),
            dimnames=integer(19) + integer(2) + integer(254) + strings("N", "W"),
        ),
    )
    content = HEADER + integer(1026) + symbol("CanadianWeather") + content + integer(254)
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(weather, "FILE", weather.FILE._replace(sha256=digest))
    (tmp_path / "canadian_weather").mkdir()
    (tmp_path / "canadian_weather" / "CanadianWeather.rda").write_bytes(content)
    table = fetch_canadian_weather(data_home=tmp_path)
    np.testing.assert_array_equal(table.data, averages[:, :, 0].T)
    np.testing.assert_array_equal(table.target, averages[:, :, 2].T)
    assert table.feature_names == ["temperature jan01", "temperature jan02"]
    assert table.stations == ["Halifax", "Resolute"]
    assert table.provinces == ["Nova Scotia", "Nunavut"]
    assert table.regions == ["Atlantic", "Arctic"]
    np.testing.assert_array_equal(table.coordinates, [[44.6, 63.6], [74.7, 94.9]])
    assert (
        list(fetch_canadian_weather(data_home=tmp_path, as_frame=True).data.index) == table.stations
    )


def test_real_table(data_with, check_table):
    fetch = partial(
        fetch_canadian_weather, data_home=data_with("canadian_weather"), download_if_missing=False
    )
    check_table(fetch, (35, 365), (35, 365))


def test_real_table_is_what_its_csv_files_say(data_with):
    data = data_with("canadian_weather")
    folder = data / "canadian_weather"
    stations = np.loadtxt(folder / "stations.csv", delimiter=",", dtype=str, skiprows=1)
    for kind, name in KINDS.items():
        table = fetch_canadian_weather(inputs=kind, data_home=data)
        expected = np.loadtxt(folder / f"{name}.csv", delimiter=",", dtype=str, skiprows=1)
        np.testing.assert_array_equal(table.data, expected[:, 1:].astype(float))
        assert table.stations == expected[:, 0].tolist()
        assert table.provinces == stations[:, 1].tolist()
        assert table.regions == stations[:, 2].tolist()
        np.testing.assert_array_equal(table.coordinates, stations[:, 3:].astype(float))


def test_without_rdata_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    monkeypatch.setattr(weather, "read_file", lambda *arguments: (b"", "nowhere"))
    with pytest.raises(ImportError, match=r"rdata: pip install \"entangled-kernels\[data\]\""):
        fetch_canadian_weather()


def test_bad_choices():
    with pytest.raises(ValueError, match="outputs must be one of 'temperature'"):
        fetch_canadian_weather(outputs="snow")
