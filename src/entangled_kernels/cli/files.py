"""Files named on the command line, checked before any long work starts, and standard streams."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files import TEXT_KINDS, TextFormat, file_kind
from .errors import CommandError

__all__ = [
    "STREAM",
    "check_apart",
    "check_folder",
    "check_input",
    "check_link",
    "check_output",
    "check_streams",
    "check_table",
    "decimal_sign",
    "files_of",
    "in_batches",
    "is_text",
    "local_table",
    "output_name",
]

STREAM = Path("-")
# First bytes of the kinds of tables that are not plain text.
KINDS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK": "npz", b"\x1f\x8b": "csv.gz"}
# Memory that reading a table and working on it takes, as a multiple of the size of its file.
GROWTH = 4


def in_batches(table: Path, max_memory: float) -> bool:
    """Whether a table is several files, or one too large to be read at once into this many MB."""
    if table.is_dir() or (not table.exists() and _is_pattern(table)):
        return True
    return table.exists() and table.stat().st_size * GROWTH > max_memory * 2**20


def _is_pattern(table: Path) -> bool:
    return any(sign in str(table) for sign in "*?[")


def is_text(table: Path) -> bool:
    """Whether a table is one file of text."""
    return file_kind(table) in TEXT_KINDS and table.is_file()


def decimal_sign(table: Path, text_format: TextFormat) -> str:
    """The decimal sign of a table: that of its text, or a point for tables of other kinds."""
    return text_format.of(table).decimal or "." if is_text(table) else "."


def check_table(table: Path) -> None:
    """Raise unless a table is a folder, a pattern, or a file of a known kind."""
    from ..io.tables import table_kind

    if table == STREAM or table.is_dir() or (not table.exists() and _is_pattern(table)):
        return
    check_input(table)
    table_kind(table)


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
    if not table.is_dir() and not _is_pattern(table):
        return []
    from ..streams import BatchError
    from ..streams.reader import find_files

    try:
        return [Path(file) for file in find_files(table)]
    except BatchError:
        return []


def check_apart(path: Path, inputs: Iterable[Path]) -> None:
    """Raise if a file to write is one that the command reads."""
    for other in inputs:
        if os.path.realpath(path) == os.path.realpath(other) or (
            path.exists() and other.exists() and os.path.samefile(path, other)
        ):
            raise CommandError(
                f"{path} is read by this command, and would be lost; write to another file"
            )


def check_output(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Raise if a file cannot be written there, or would replace another without ``--force``.

    A file that the command reads is never replaced.
    """
    check_link(path)
    check_apart(path, inputs)
    if path.is_dir():
        raise CommandError(f"{path} is a folder, name a file")
    if path.exists() and not force:
        raise CommandError(
            f"{path} exists already; choose another name, or replace it with --force"
        )
    _check_parent(path)
    _check_writable(path.parent)


def check_link(path: Path) -> None:
    """Raise if a path is a link to nothing: writing would make a file elsewhere."""
    if path.is_symlink() and not path.exists():
        raise CommandError(
            f"{path} is a link to {os.readlink(path)}, which is not there; remove the link"
        )


def check_folder(path: Path, *, force: bool) -> None:
    """Raise unless files can be written into this folder; one with files needs ``--force``."""
    check_link(path)
    if path.exists() and not path.is_dir():
        raise CommandError(f"{path} is a file, a folder was expected")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise CommandError(
            f"{path} is not empty; choose another folder, or write into it with --force"
        )
    _check_parent(path)
    _check_writable(path if path.exists() else path.parent)


def _check_parent(path: Path) -> None:
    """Raise unless the folder of a new file or folder exists."""
    for folder in path.parents:
        check_link(folder)
    if not path.parent.exists():
        raise CommandError(f"there is no folder {path.parent} for {path.name}; make it first")


def _check_writable(folder: Path) -> None:
    """Raise unless a file can be written; it is tried, since permissions alone do not tell."""
    if not folder.is_dir():
        raise CommandError(f"{folder} is a file, a folder was expected")
    try:
        tempfile.NamedTemporaryFile(
            dir=folder, prefix=".entangled-kernels.", suffix=".part"
        ).close()
    except OSError as error:
        raise CommandError(
            f"cannot write into {folder.absolute()}: {error.strerror}", "write"
        ) from error


@contextmanager
def local_table(table: Path) -> Iterator[Path]:
    """The path of a table; standard input is kept in a temporary file until the work is done.

    The first bytes of standard input tell whether it is Parquet, Arrow, NPZ or compressed CSV;
    otherwise it is read as CSV. Errors name the file without its temporary folder.
    """
    if table != STREAM:
        yield table
        return
    with tempfile.TemporaryDirectory(prefix="entangled-kernels.") as folder:
        start = sys.stdin.buffer.read(8)
        kind = next((kind for sign, kind in KINDS.items() if start.startswith(sign)), "csv")
        path = Path(folder, f"stdin.{kind}")
        with open(path, "wb") as file:
            file.write(start)
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield path
        except Exception as error:
            error.args = tuple(
                arg.replace(f"{folder}{os.sep}", "") if isinstance(arg, str) else arg
                for arg in error.args
            )
            raise


def output_name(out: Path) -> str:
    """The name of an output in messages."""
    return "standard output" if out == STREAM else str(out)


def check_streams(out: Path | None, *, json: bool) -> None:
    """Raise if both a table and the result as JSON would go to standard output."""
    if out == STREAM and json:
        raise CommandError(
            "--json and --out - both write to standard output; name a file for the table"
        )
