"""The one container of all binary files: what it is, a header, a payload, and a seal that shows damage.

A sealed file is two lines of text, the payload, and the SHA-256 of all that precedes it in the last 32
bytes. The first line names the kind, such as ``entangled-kernels model``; the second is a JSON object with
the number of the format under ``"format"``. These outlines are the same in every format, so that any version
can tell a damaged file from one that is too new for it.

The seal shows accidents, not intent: whoever writes a file can seal it, so readers trust nothing in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from .atomic import atomic_write

__all__ = ["check_expansion", "read_sealed", "write_sealed"]

DIGEST = hashlib.sha256().digest_size
# An archive may expand to this many bytes, or to this many times its size, whichever is more.
LEAST_EXPANSION, LARGEST_RATIO = 2**26, 200


def write_sealed(path: str | os.PathLike[str], kind: str, header: dict[str, Any], payload: Any) -> None:
    """Write a sealed file whole or not at all; ``header`` is what JSON can hold, ``payload`` bytes."""
    # repr of a float, which JSON uses, gives the same float back.
    lines = _magic(kind) + json.dumps(header).encode() + b"\n"
    digest = hashlib.sha256(lines)
    digest.update(payload)
    with atomic_write(path, "wb") as file:
        file.writelines([lines, payload, digest.digest()])


def read_sealed(
    path: str | os.PathLike[str], kind: str, number: int, error: type[ValueError]
) -> tuple[dict[str, Any], bytes]:
    """Header and payload of a sealed file; nothing in it is run.

    Parameters
    ----------
    path : path
    kind : str
        What the file must be, such as ``"model"``.
    number : int
        The format that can be read.
    error : type of ValueError
        Raised when the file is damaged, of another kind or of another format.
    """
    content, magic, what = Path(path).read_bytes(), _magic(kind), f"{kind} file of entangled-kernels"
    if not content:
        raise error(f"{path} is empty, not a {kind} file")
    if not content.startswith(magic):
        if magic.startswith(content):
            raise error(f"{path} is damaged: it was cut short")
        raise error(f"{path} is not a {what}")
    body = content[:-DIGEST]
    if hashlib.sha256(body).digest() != content[-DIGEST:]:
        raise error(
            f"{path} is damaged: its checksum does not match, so it was cut short or changed after "
            f"it was written"
        )
    line, _, payload = body[len(magic) :].partition(b"\n")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError) as cause:
        raise error(f"{path} is not a {what}: it has no header") from cause
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise error(f"{path} is not a {what}: it has no header")
    if header["format"] != number:
        software = header.get("software")
        writer = software.get("entangled-kernels") if isinstance(software, dict) else None
        raise error(
            f"{path} has {kind} format {header['format']}, written by entangled-kernels "
            f"{writer or 'of unknown version'}; this version reads format {number}: upgrade entangled-kernels"
        )
    return header, payload


def check_expansion(payload: bytes) -> None:
    """Raise unless a ZIP archive expands to a size in proportion to its own."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        total = sum(entry.file_size for entry in archive.infolist())
    if total > max(LEAST_EXPANSION, LARGEST_RATIO * len(payload)):
        raise ValueError(f"an archive of {len(payload)} bytes would expand to {total}")


def _magic(kind: str) -> bytes:
    return f"entangled-kernels {kind}\n".encode()
