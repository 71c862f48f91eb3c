"""Tables from standard input and to standard output, where a file is named ``-``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import CommandError

__all__ = ["STREAM", "check_streams", "local_table", "place_of"]

STREAM = Path("-")
# First bytes of the kinds of tables that are not plain text.
KINDS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK": "npz", b"\x1f\x8b": "csv.gz"}


@contextmanager
def local_table(table: Path) -> Iterator[Path]:
    """The table itself; what comes from standard input is a file until the work is done.

    Such a file is told by its first bytes to be Parquet, Arrow, NPZ or compressed CSV, and is CSV otherwise.
    Errors name it as if it stood in the current folder.
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
                arg.replace(f"{folder}{os.sep}", "") if isinstance(arg, str) else arg for arg in error.args
            )
            raise


def place_of(out: Path) -> str:
    """What people call the place of a table that was written."""
    return "standard output" if out == STREAM else str(out)


def check_streams(out: Path | None, *, json: bool) -> None:
    """Raise where both a table and the result as JSON are to go to standard output."""
    if out == STREAM and json:
        raise CommandError("--json and --out - both write to standard output; name a file for the table")
