"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import platform
import secrets
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any

__all__ = ["atomic_write", "remove_abandoned"]

# A partial file of another machine that was not written to for so many seconds is not going to be finished.
_ABANDONED_SECONDS = 24 * 3600


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that takes the place of ``path`` only once it is complete and on the disk.

    Whatever stood there before is untouched until then, and stays when writing fails.

    Parameters
    ----------
    path : path
        Its folder is made when it is missing. A link stays a link, and its target is replaced; folders that
        a link points into are not made.
    mode : {"w", "wb"}, default="w"
        Text is UTF-8 with line ends as written.
    """
    path = _resolved(Path(path))
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    name = path.parent / f".{path.name}.{_machine()}-{os.getpid()}.{secrets.token_hex(4)}.part"
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def remove_abandoned(path: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed while they wrote ``path`` have left beside it.

    Partial files of processes that are alive stay. Whether one of another machine is, cannot be told; its
    partial files stay for a day.
    """
    path = Path(os.path.realpath(path))
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        with suppress(FileNotFoundError):
            machine, _, process = part.name[len(path.name) + 2 :].partition(".")[0].partition("-")
            here = machine == _machine() and process.isdigit() and hasattr(os, "getuid")
            old = time.time() - part.stat().st_mtime > _ABANDONED_SECONDS
            if old or (here and not _is_alive(int(process))):
                part.unlink()


def _machine() -> str:
    """A short name of this machine that may stand in the name of a file."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_alive(process: int) -> bool:
    """Whether a process of this machine runs; asked by a signal that does nothing, where there is one."""
    try:
        with suppress(PermissionError, OverflowError):
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _resolved(path: Path) -> Path:
    """The file to write, in a folder that is there."""
    target = Path(os.path.realpath(path))
    if not path.is_symlink():
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"the link leads to {target}, in a folder that is not there", str(path)
        )
    return target
