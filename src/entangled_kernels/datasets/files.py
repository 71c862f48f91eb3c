"""Finding the file of a table: in a local folder, or downloaded into it, and always checked."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

__all__ = ["ENVIRONMENT", "DataFile", "data_folder", "read_file"]

ENVIRONMENT = "ENTANGLED_KERNELS_DATA"
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class DataFile:
    """A public file.

    Attributes
    ----------
    folder, name : str
        Where it lies in the data folder.
    sha256 : str
        Of its bytes, for a file compressed with gzip of those inside.
    url : str
        Where to get it.
    """

    folder: str
    name: str
    sha256: str
    url: str


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """The folder given, else the one that ENTANGLED_KERNELS_DATA names, else one in the user's cache."""
    if data_home is not None:
        return Path(data_home).expanduser()
    if os.environ.get(ENVIRONMENT):
        return Path(os.environ[ENVIRONMENT]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "entangled-kernels"


def read_file(
    file: DataFile, data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> tuple[bytes, Path]:
    """Contents of the file, or of the same with .gz at its end, and its path; downloaded when not there.

    Raises
    ------
    FileNotFoundError
        When it is neither there nor to be had; says where to put it.
    ValueError
        When its checksum is another.
    """
    path = data_folder(data_home) / file.folder / file.name
    here = [candidate for candidate in (path, Path(f"{path}.gz")) if candidate.is_file()]
    if not here:
        if not download_if_missing:
            raise FileNotFoundError(_advice(file, path, "download_if_missing=False"))
        _download(file, path)
    found = here[0] if here else path
    content = found.read_bytes()
    if found.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{found} is damaged: {error}; {_replacement(file)}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise ValueError(
            f"{found} has SHA256 {digest}, expected {file.sha256}: it is damaged or another file; "
            f"{_replacement(file)}"
        )
    return content, found


def _download(file: DataFile, path: Path) -> None:
    pooch = _pooch(file, path)
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=path.name,
            path=path.parent,
            downloader=_copy,
        )
    except OSError as error:
        raise FileNotFoundError(_advice(file, path, f"{type(error).__name__}: {error}")) from error
    except ValueError as error:
        raise ValueError(
            f"what {file.url} sent is not the file expected: its SHA256 is not {file.sha256}"
        ) from error


def _copy(url: str, output_file: Any, pooch: Any) -> None:
    """What pooch calls to get a file; unlike its own downloaders it leaves no connection open."""
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response, open(output_file, "wb") as output:
            shutil.copyfileobj(response, output)
    except HTTPError as error:
        error.close()
        raise


def _pooch(file: DataFile, path: Path) -> Any:
    try:
        import pooch
    except ImportError as error:
        missing = 'downloading needs pooch: pip install "entangled-kernels[data]"'
        raise ImportError(_advice(file, path, missing)) from error
    pooch.get_logger().setLevel("WARNING")
    return pooch


def _advice(file: DataFile, path: Path, reason: str) -> str:
    return (
        f"{path} is not there, and {file.url} was not downloaded ({reason}). Put {file.name} there, or pass "
        f"data_home= or set {ENVIRONMENT} to a folder that holds {file.folder}/{file.name}."
    )


def _replacement(file: DataFile) -> str:
    return f"remove it to have it downloaded, or put {file.name} from {file.url} in its place"
