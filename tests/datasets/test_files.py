"""How files are found, downloaded and checked, and what is said when they are not there."""

import gzip
from pathlib import Path

import pytest

from entangled_kernels import datasets
from entangled_kernels.datasets.files import data_folder, read_file

SITE = Path("site") / "toy.data"
PLACE = Path("home") / "concrete_slump" / "slump_test.data"


def test_downloads_once_and_then_reads_the_file(toy, tmp_path):
    served = (tmp_path / SITE).read_bytes()
    assert read_file(toy, tmp_path / "home", True) == (served, tmp_path / PLACE)
    assert (tmp_path / PLACE).read_bytes() == served
    (tmp_path / SITE).unlink()
    assert read_file(toy, tmp_path / "home", True) == (served, tmp_path / PLACE)


def test_environment_variable_and_default_folder(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTANGLED_KERNELS_DATA", str(tmp_path / "named"))
    datasets.fetch_concrete_slump()
    assert (tmp_path / "named" / "concrete_slump" / "slump_test.data").is_file()
    monkeypatch.delenv("ENTANGLED_KERNELS_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "entangled-kernels"


def test_says_what_to_put_where_when_there_is_no_way(toy, tmp_path):
    (tmp_path / SITE).unlink()
    place = tmp_path / PLACE
    with pytest.raises(FileNotFoundError) as error:
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    for part in (str(place), toy.url, "ENTANGLED_KERNELS_DATA", "Put slump_test.data there", "404"):
        assert part in str(error.value)
    assert not list(place.parent.iterdir())


def test_does_not_download_when_told_not_to(toy, tmp_path):
    with pytest.raises(FileNotFoundError, match="download_if_missing=False"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home", download_if_missing=False)
    assert not (tmp_path / "home").exists()


def test_other_bytes_are_refused(toy, tmp_path):
    place = tmp_path / PLACE
    place.parent.mkdir(parents=True)
    place.write_bytes((tmp_path / SITE).read_bytes() + b"3")
    with pytest.raises(ValueError, match=f"SHA256 .* expected {toy.sha256}.*remove it"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    place.unlink()
    (tmp_path / SITE).write_bytes(b"another")
    with pytest.raises(ValueError, match=f"is not the file expected: .*{toy.sha256}"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    assert not list(place.parent.iterdir())


def test_compressed_files_are_checked_inside(toy, tmp_path):
    place = tmp_path / f"{PLACE}.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(gzip.compress((tmp_path / SITE).read_bytes(), 1))
    table = datasets.fetch_concrete_slump(data_home=tmp_path / "home", download_if_missing=False)
    assert table.filename == str(place)
    with pytest.raises(ValueError, match="SHA256"):
        read_file(toy._replace(sha256="0" * 64), tmp_path / "home", False)
    place.write_bytes(place.read_bytes()[:-20])
    with pytest.raises(ValueError, match="is damaged"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
