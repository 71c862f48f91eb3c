"""The four real tables: their files are read, and the whole tables where these are."""

import hashlib
import sys
from functools import partial
from io import BytesIO

import numpy as np
import pytest
from scipy.io import savemat

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
from entangled_kernels.datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
    published,
)


@pytest.fixture
def put_file(tmp_path, monkeypatch):
    """A function that puts other content in the place of a published file."""

    def put(name, content):
        file = published.FILES[name]._replace(sha256=hashlib.sha256(content).hexdigest())
        monkeypatch.setitem(published.FILES, name, file)
        (tmp_path / file.folder).mkdir(exist_ok=True)
        (tmp_path / file.folder / file.name).write_bytes(content)
        return tmp_path

    return put


@pytest.mark.parametrize(
    ("fetch", "folder", "shape", "target_shape"),
    [
        (fetch_concrete_slump, "concrete_slump", (103, 7), (103, 3)),
        (fetch_sarcos, "sarcos", (4449, 21), (4449, 7)),
        (fetch_canadian_weather, "canadian_weather", (35, 365), (35, 365)),
        (fetch_uwave, "uwave", (896, 315), (896, 315)),
    ],
)
def test_real_table(data_with, fetch, folder, shape, target_shape):
    fetch = partial(fetch, data_home=data_with(folder), download_if_missing=False)
    table = fetch()
    assert (table.data.shape, table.target.shape) == (shape, target_shape)
    assert np.isfinite(table.data).all()
    assert np.isfinite(table.target).all()
    assert table.DESCR
    X, Y = fetch(as_frame=True, return_X_y=True)
    assert list(X.columns) == table.feature_names
    assert list(Y.columns) == table.target_names
    np.testing.assert_array_equal(Y.to_numpy(), table.target)


def test_concrete_has_names_and_columns(toy, tmp_path):
    table = fetch_concrete_slump(data_home=tmp_path)
    assert table.feature_names == list("abcdefg")
    assert table.target_names == ["y 1", "y 2"]
    np.testing.assert_array_equal(table.data, [[1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 4, 5, 6, 7]])
    np.testing.assert_array_equal(table.target, [[8, 9], [8, 1]])


def test_sarcos_has_states_and_torques(put_file):
    values = np.arange(56.0).reshape(2, 28)
    file = BytesIO()
    savemat(file, {"sarcos_inv_test": values})
    table = fetch_sarcos(data_home=put_file("sarcos", file.getvalue()))
    np.testing.assert_array_equal(table.data, values[:, :21])
    np.testing.assert_array_equal(table.target, values[:, 21:])
    assert table.feature_names[6:8] == ["position 7", "velocity 1"]
    assert table.target_names[-1] == "torque 7"


def test_uwave_has_classes_and_axes(put_file):
    for axis in "XYZ":
        home = put_file(f"uwave {axis}", b"1 0.5 1e0 -2\n8 1 2 3\n")
    table = fetch_uwave(inputs="XZ", data_home=home)
    np.testing.assert_array_equal(table.data, [[0.5, 1, -2, 0.5, 1, -2], [1, 2, 3, 1, 2, 3]])
    np.testing.assert_array_equal(table.target, [[0.5, 1, -2], [1, 2, 3]])
    assert table.feature_names[3] == "Z1"
    assert list(table.labels) == [1, 8]
    np.testing.assert_array_equal(fetch_uwave(data_home=home, classes=[8]).data, [[1, 2, 3]])
    with pytest.raises(ValueError, match=r"classes must be some of 1 to 8, got \[2\]"):
        fetch_uwave(data_home=home, classes=[2])


def test_weather_has_stations_days_and_kinds(put_file):
    def labelled_reals(values, **labels):
        return reals(np.ravel(values, order="F"), 14 | ATTRIBUTES) + attributes(**labels)

    averages = np.arange(12.0).reshape(2, 2, 3)  # (days, stations, kinds)
    kinds = strings("Temperature.C", "Precipitation.mm", "log10precip")
    names = strings("jan01", "jan02") + strings("Halifax", "Resolute") + kinds
    content = named_list(
        dailyAv=labelled_reals(
            averages, dim=integers([2, 2, 3]), dimnames=integer(19) + integer(3) + names
        ),
        province=strings("Nova Scotia", "Nunavut"),
        region=strings("Atlantic", "Arctic"),
        coordinates=labelled_reals(
            [[44.6, 63.6], [74.7, 94.9]],
            dim=integers([2, 2]),
            dimnames=integer(19) + integer(2) + integer(254) + strings("N", "W"),
        ),
    )
    content = HEADER + integer(1026) + symbol("CanadianWeather") + content + integer(254)
    home = put_file("weather", content)
    table = fetch_canadian_weather(data_home=home)
    np.testing.assert_array_equal(table.data, averages[:, :, 0].T)
    np.testing.assert_array_equal(table.target, averages[:, :, 2].T)
    assert table.feature_names == ["temperature jan01", "temperature jan02"]
    assert table.stations == ["Halifax", "Resolute"]
    assert table.provinces == ["Nova Scotia", "Nunavut"]
    assert table.regions == ["Atlantic", "Arctic"]
    np.testing.assert_array_equal(table.coordinates, [[44.6, 63.6], [74.7, 94.9]])
    frame = fetch_canadian_weather(data_home=home, as_frame=True).data
    assert list(frame.index) == table.stations


def test_real_weather_is_that_of_its_csv_files(data_with):
    data = data_with("canadian_weather")
    folder = data / "canadian_weather"
    stations = np.loadtxt(folder / "stations.csv", delimiter=",", dtype=str, skiprows=1)
    for kind, name in {
        "temperature": "temperature_C",
        "precipitation": "precipitation_mm",
        "log10 precipitation": "log10_precip",
    }.items():
        table = fetch_canadian_weather(inputs=kind, data_home=data)
        expected = np.loadtxt(folder / f"{name}.csv", delimiter=",", dtype=str, skiprows=1)
        np.testing.assert_array_equal(table.data, expected[:, 1:].astype(float))
        assert table.stations == expected[:, 0].tolist()
        assert table.provinces == stations[:, 1].tolist()
        assert table.regions == stations[:, 2].tolist()
        np.testing.assert_array_equal(table.coordinates, stations[:, 3:].astype(float))


def test_without_rdata_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(ImportError, match=r"rdata: pip install \"entangled-kernels\[data\]\""):
        fetch_canadian_weather()


@pytest.mark.parametrize(
    ("fetch", "arguments"),
    [
        (fetch_canadian_weather, {"outputs": "snow"}),
        (fetch_uwave, {"inputs": "W"}),
        (fetch_uwave, {"outputs": "YY"}),
    ],
)
def test_an_unknown_choice_is_an_error(fetch, arguments):
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        fetch(**arguments)
