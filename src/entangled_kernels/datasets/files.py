"""Files of tables: found in a local folder or downloaded into it, and checked."""

from __future__ import annotations

import gzip
import hashlib
import os
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError

from sklearn.datasets import fetch_file

__all__ = ["ENVIRONMENT", "DataFile", "data_folder", "read_file"]

ENVIRONMENT = "ENTANGLED_KERNELS_DATA"


class DataFile(NamedTuple):
    """A public file.

    Attributes
    ----------
    folder, name : str
        Its folder and name in the data folder.
    sha256 : str
        Of its bytes, for a gzip file after decompression.
    url : str
        Source of the download.
    """

    folder: str
    name: str
    sha256: str
    url: str


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """``data_home``, or else the folder in ENTANGLED_KERNELS_DATA, or one in the user's cache."""
    folder = os.environ.get(ENVIRONMENT) if data_home is None else data_home
    if folder:
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "entangled-kernels")


def read_file(
    file: DataFile, data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> tuple[bytes, Path]:
    """Contents and path of a file, or of its copy with suffix .gz; a missing one is downloaded.

    Raises
    ------
    FileNotFoundError
        If it is missing and cannot be downloaded; the message says where to put it.
    ValueError
        If its checksum differs.
    """
    path = data_folder(data_home) / file.folder / file.name
    existing = path if path.is_file() else Path(f"{path}.gz")
    if not existing.is_file():
        if not download_if_missing:
            raise FileNotFoundError(_advice(file, path, "download_if_missing=False"))
        _download(file, path)
        existing = path
    content = existing.read_bytes()
    if existing.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{existing} is damaged: {error}; {_replacement(file)}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise ValueError(
            f"{existing} has SHA256 {digest}, expected {file.sha256}: it is damaged or another "
            f"file; {_replacement(file)}"
        )
    return content, existing


def _download(file: DataFile, path: Path) -> None:
    """Download a file to its path, or raise; a partial or wrong file is not kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fetch_file(file.url, path.parent, path.name, file.sha256, n_retries=0)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise FileNotFoundError(_advice(file, path, f"{type(error).__name__}: {error}")) from error
    except OSError as error:
        # The error of scikit-learn about the checksum is the only one without a number.
        if error.errno is not None:
            raise
        raise ValueError(f"{file.url} did not send the expected file: {error}") from error


def _advice(file: DataFile, path: Path, reason: str) -> str:
    return (
        f"{path} is not there, and {file.url} was not downloaded ({reason}). Put {file.name} "
        f"there, or pass data_home= or set {ENVIRONMENT} to a folder that holds "
        f"{file.folder}/{file.name}."
    )


def _replacement(file: DataFile) -> str:
    return f"remove it to have it downloaded, or put {file.name} from {file.url} in its place"
