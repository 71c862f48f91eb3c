"""How files are found, downloaded and checked, and the errors without them."""

import gzip
from pathlib import Path

import pytest

from entangled_kernels import datasets
from entangled_kernels.datasets.files import data_folder, read_file

SITE = Path("site") / "toy.data"
STORED = Path("home") / "concrete_slump" / "slump_test.data"


def test_downloads_once_and_then_reads_the_file(toy, tmp_path):
    served = (tmp_path / SITE).read_bytes()
    assert read_file(toy, tmp_path / "home", True) == (served, tmp_path / STORED)
    assert (tmp_path / STORED).read_bytes() == served
    (tmp_path / SITE).unlink()
    assert read_file(toy, tmp_path / "home", True) == (served, tmp_path / STORED)


def test_environment_variable_and_default_folder(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTANGLED_KERNELS_DATA", str(tmp_path / "named"))
    datasets.fetch_concrete_slump()
    assert (tmp_path / "named" / "concrete_slump" / "slump_test.data").is_file()
    monkeypatch.delenv("ENTANGLED_KERNELS_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "entangled-kernels"


def test_without_file_and_download_the_error_says_what_to_put_where(toy, tmp_path):
    (tmp_path / SITE).unlink()
    path = tmp_path / STORED
    with pytest.raises(FileNotFoundError) as error:
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    for part in (str(path), toy.url, "ENTANGLED_KERNELS_DATA", "Put slump_test.data there", "404"):
        assert part in str(error.value)
    assert not list(path.parent.iterdir())


def test_download_can_be_forbidden(toy, tmp_path):
    with pytest.raises(FileNotFoundError, match="download_if_missing=False"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home", download_if_missing=False)
    assert not (tmp_path / "home").exists()


def test_other_bytes_are_refused(toy, tmp_path):
    path = tmp_path / STORED
    path.parent.mkdir(parents=True)
    path.write_bytes((tmp_path / SITE).read_bytes() + b"3")
    with pytest.raises(ValueError, match=f"SHA256 .* expected {toy.sha256}.*remove it"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    path.unlink()
    (tmp_path / SITE).write_bytes(b"another")
    with pytest.raises(ValueError, match=f"did not send the expected file: .*{toy.sha256}"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
    assert not list(path.parent.iterdir())


def test_compressed_files_are_checked_inside(toy, tmp_path):
    path = tmp_path / f"{STORED}.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress((tmp_path / SITE).read_bytes(), 1))
    table = datasets.fetch_concrete_slump(data_home=tmp_path / "home", download_if_missing=False)
    assert table.filename == str(path)
    with pytest.raises(ValueError, match="SHA256"):
        read_file(toy._replace(sha256="0" * 64), tmp_path / "home", False)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="is damaged"):
        datasets.fetch_concrete_slump(data_home=tmp_path / "home")
