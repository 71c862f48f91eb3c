"""The real tables when they are there, how they are found and checked, what is said when they are not."""

import gzip
import hashlib
import os
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from entangled_kernels import datasets
from entangled_kernels.datasets import concrete, uwave
from entangled_kernels.datasets.files import DataFile, data_folder, read_file

DATA = Path(os.environ.get("ENTANGLED_KERNELS_DATA") or Path(__file__).parents[3] / "shared" / "data")
SHAPES = {
    "fetch_concrete_slump": ("concrete_slump", (103, 7), (103, 3)),
    "fetch_sarcos": ("sarcos", (4449, 21), (4449, 7)),
    "fetch_canadian_weather": ("canadian_weather", (35, 365), (35, 365)),
    "fetch_uwave": ("uwave", (896, 315), (896, 315)),
}
CONTENT = b"No,a,b,c,d,e,f,g,y 1,y 2\n1,1,2,3,4,5,6,7,8,9\n2,1,0,3,4,5,6,7,8,1\n"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A published file of two rows in the place of the concrete table, served from this machine."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "toy.data").write_bytes(CONTENT)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/toy.data"
        file = DataFile("concrete_slump", "slump_test.data", hashlib.sha256(CONTENT).hexdigest(), url)
        monkeypatch.setattr(concrete, "FILE", file)
        yield file
        server.shutdown()


@pytest.mark.parametrize("name", SHAPES)
def test_real_tables(name):
    folder, shape, target_shape = SHAPES[name]
    if not (DATA / folder).is_dir():
        pytest.skip(f"the table is not in {DATA}; set ENTANGLED_KERNELS_DATA to a folder that has {folder}/")
    fetch = partial(getattr(datasets, name), data_home=DATA, download_if_missing=False)
    table = fetch()
    assert table.data.shape == shape
    assert table.target.shape == target_shape
    assert len(table.feature_names) == shape[1]
    assert len(table.target_names) == target_shape[1]
    assert np.isfinite(table.data).all()
    assert np.isfinite(table.target).all()
    assert table.DESCR
    X, Y = fetch(as_frame=True, return_X_y=True)
    assert list(X.columns) == table.feature_names
    np.testing.assert_array_equal(Y.to_numpy(), table.target)
    assert fetch(as_frame=True).frame.shape == (shape[0], shape[1] + target_shape[1])


def test_weather_is_what_its_csv_files_say():
    folder = DATA / "canadian_weather"
    if not folder.is_dir():
        pytest.skip(f"the table is not in {DATA}")
    kinds = {
        "temperature": "temperature_C",
        "precipitation": "precipitation_mm",
        "log10 precipitation": "log10_precip",
    }
    stations = np.loadtxt(folder / "stations.csv", delimiter=",", dtype=str, skiprows=1)
    for kind, name in kinds.items():
        weather = datasets.fetch_canadian_weather(inputs=kind, data_home=DATA)
        expected = np.loadtxt(folder / f"{name}.csv", delimiter=",", dtype=str, skiprows=1)
        np.testing.assert_array_equal(weather.data, expected[:, 1:].astype(float))
        assert weather.stations == expected[:, 0].tolist()
        assert weather.provinces == stations[:, 1].tolist()
        assert weather.regions == stations[:, 2].tolist()
        np.testing.assert_array_equal(weather.coordinates, stations[:, 3:].astype(float))


def test_uwave_classes_and_axes():
    if not (DATA / "uwave").is_dir():
        pytest.skip(f"the table is not in {DATA}")
    every = datasets.fetch_uwave(data_home=DATA)
    some = datasets.fetch_uwave(inputs="XZ", classes=(1, 2, 3), data_home=DATA)
    assert some.data.shape == (336, 630)
    assert set(some.labels) == {1, 2, 3}
    np.testing.assert_array_equal(some.data[:, :315], every.data[every.labels <= 3])
    assert some.feature_names[315] == "Z1"


def test_downloads_once_and_then_reads_the_file(toy, tmp_path):
    home = tmp_path / "home"
    table = datasets.fetch_concrete_slump(data_home=home)
    assert table.target_names == ["y 1", "y 2"]
    np.testing.assert_array_equal(table.target, [[8, 9], [8, 1]])
    assert (home / "concrete_slump" / "slump_test.data").read_bytes() == CONTENT
    (tmp_path / "site" / "toy.data").unlink()
    assert datasets.fetch_concrete_slump(data_home=home).data.shape == (2, 7)


def test_environment_variable_and_default_folder(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTANGLED_KERNELS_DATA", str(tmp_path / "named"))
    datasets.fetch_concrete_slump()
    assert (tmp_path / "named" / "concrete_slump" / "slump_test.data").is_file()
    monkeypatch.delenv("ENTANGLED_KERNELS_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "entangled-kernels"


def test_says_what_to_put_where_when_there_is_no_way(toy, tmp_path):
    (tmp_path / "site" / "toy.data").unlink()
    place = tmp_path / "home" / "concrete_slump" / "slump_test.data"
    with pytest.raises(FileNotFoundError) as error:
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    for part in (str(place), toy.url, "ENTANGLED_KERNELS_DATA", "Put slump_test.data there", "404"):
        assert part in str(error.value)
    assert not place.exists()


def test_nobody_answers(tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        port = server.server_address[1]
    file = DataFile("toy", "toy.data", "0" * 64, f"http://127.0.0.1:{port}/toy.data")
    with pytest.raises(FileNotFoundError, match=r"Put toy\.data there"):
        read_file(file, tmp_path, True)


def test_does_not_download_when_told_not_to(toy, tmp_path):
    with pytest.raises(FileNotFoundError, match="download_if_missing=False"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home", download_if_missing=False)


def test_other_bytes_are_refused(toy, tmp_path):
    place = tmp_path / "home" / "concrete_slump" / "slump_test.data"
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT + b"3")
    with pytest.raises(ValueError, match=f"SHA256 .* expected {toy.sha256}.*remove it"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    place.unlink()
    (tmp_path / "site" / "toy.data").write_bytes(b"another")
    with pytest.raises(ValueError, match="is not the file expected"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    assert not place.exists()


def test_compressed_files_are_checked_inside(toy, tmp_path):
    place = tmp_path / "home" / "concrete_slump" / "slump_test.data.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(gzip.compress(CONTENT, 1))
    table = datasets.fetch_concrete_slump(data_home=tmp_path / "home", download_if_missing=False)
    assert table.filename == str(place)
    place.write_bytes(place.read_bytes()[:-20])
    with pytest.raises(ValueError, match="is damaged"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")


def test_a_local_file_needs_neither_pooch_nor_pandas(toy, tmp_path, monkeypatch):
    datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert datasets.fetch_concrete_slump(data_home=tmp_path / "home").data.shape == (2, 7)
    with pytest.raises(ImportError, match=r"entangled-kernels\[data\].*Put slump_test.data there"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "elsewhere")
    with pytest.raises(ImportError, match=r"as_frame=True needs pandas.*entangled-kernels\[data\]"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home", as_frame=True)


@pytest.mark.parametrize(
    ("fetch", "arguments", "message"),
    [
        ("fetch_uwave", {"inputs": "W"}, "inputs must be distinct letters"),
        ("fetch_uwave", {"outputs": "YY"}, "outputs must be distinct letters"),
        ("fetch_canadian_weather", {"outputs": "snow"}, "outputs must be one of 'temperature'"),
    ],
)
def test_bad_choices(fetch, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(datasets, fetch)(**arguments)


def test_uwave_reads_rows_and_refuses_unknown_classes(tmp_path, monkeypatch):
    text = b"1 0.5 1e0 -2\n8 1 2 3\n"
    files = {
        axis: replace(file, sha256=hashlib.sha256(text).hexdigest()) for axis, file in uwave.FILES.items()
    }
    monkeypatch.setattr(uwave, "FILES", files)
    (tmp_path / "uwave").mkdir()
    for file in files.values():
        (tmp_path / "uwave" / file.name).write_bytes(text)
    table = datasets.fetch_uwave(data_home=tmp_path)
    np.testing.assert_array_equal(table.data, [[0.5, 1, -2], [1, 2, 3]])
    assert list(table.labels) == [1, 8]
    with pytest.raises(ValueError, match=r"classes must be some of 1 to 8, got \[2\]"):
        datasets.fetch_uwave(data_home=tmp_path, classes=[2])
