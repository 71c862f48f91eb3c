"""Files named on the command line, looked at before any long work starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..streams import BatchError
from ..streams.reader import find_files
from .errors import CommandError
from .standard_streams import STREAM

__all__ = ["check_apart", "check_folder", "check_input", "check_link", "check_output", "files_of"]


def check_input(path: Path) -> None:
    """Raise unless there is such a file."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder, a file was expected")
    if not path.exists():
        raise CommandError(f"there is no file {path}")


def files_of(table: Path) -> list[Path]:
    """Files that a table is read from: itself, or those of a folder or a pattern."""
    if table == STREAM:
        return []
    if table.is_file():
        return [table]
    try:
        return [Path(file) for file in find_files(table)]
    except BatchError:
        return []


def check_apart(path: Path, inputs: Iterable[Path]) -> None:
    """Raise when a file to write is one that is read."""
    for other in inputs:
        if os.path.realpath(path) == os.path.realpath(other) or (
            path.exists() and other.exists() and os.path.samefile(path, other)
        ):
            raise CommandError(f"{path} is read by this command, and would be lost; write to another file")


def check_output(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Raise when a file cannot be written there, or would replace another without being told to.

    What is read is never replaced.
    """
    check_link(path)
    check_apart(path, inputs)
    if path.is_dir():
        raise CommandError(f"{path} is a folder, name a file")
    if path.exists() and not force:
        raise CommandError(f"{path} exists already; choose another name, or replace it with --force")
    _check_writable(path.parent)


def check_link(path: Path) -> None:
    """Raise when a path is a link that leads nowhere: what is written must not appear where it points."""
    if path.is_symlink() and not path.exists():
        raise CommandError(f"{path} is a link to {os.readlink(path)}, which is not there; remove the link")


def check_folder(path: Path, *, force: bool) -> None:
    """Raise unless files can be written into this folder; a full one only when told to."""
    check_link(path)
    if path.exists() and not path.is_dir():
        raise CommandError(f"{path} is a file, a folder was expected")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise CommandError(f"{path} is not empty; choose another folder, or write into it with --force")
    _check_writable(path)


def _check_writable(folder: Path) -> None:
    """Try it, in the nearest folder above that exists: permissions alone do not tell."""
    while not folder.exists():
        check_link(folder)
        folder = folder.parent
    if not folder.is_dir():
        raise CommandError(f"{folder} is a file, a folder was expected")
    try:
        tempfile.NamedTemporaryFile(dir=folder, prefix=".entangled-kernels.", suffix=".part").close()
    except OSError as error:
        raise CommandError(f"cannot write into {folder.absolute()}: {error.strerror}", "write") from error
