"""Errors of a command: the sentence to show, and the exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..io.tables import TableError
from .process import INTERRUPTED, INTERRUPTED_IN_WORDS

__all__ = ["CODES", "CommandError", "check_choice", "data_errors", "explain"]

CODES = {
    "done": 0,
    "unexpected": 1,
    "usage": 2,
    "data": 3,
    "model": 4,
    "write": 5,
    "missing": 6,
    "interrupted": INTERRUPTED,
}
# Exit codes by the name of an error's class, so that nothing is imported for them, and sentences for
# errors that have none of their own.
SENTENCES: dict[str, tuple[str, str | None]] = {
    "TableError": ("data", None),
    "BatchError": ("data", None),
    "ModelFileError": ("model", None),
    "ImportError": ("missing", None),
    "MemoryError": ("unexpected", "not enough memory; use fewer rows or columns"),
    "KeyboardInterrupt": ("interrupted", INTERRUPTED_IN_WORDS),
}


class CommandError(Exception):
    """An error with the sentence to show and the name of its exit code."""

    def __init__(self, sentence: str, code: str = "usage") -> None:
        super().__init__(sentence)
        self.code = CODES[code]


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in (names := list(choices)):
        raise CommandError(f"{option} must be one of {', '.join(names)}, got {value!r}")


@contextmanager
def data_errors(path: Any) -> Iterator[None]:
    """Name this table in the errors that an estimator raises about its data."""
    try:
        yield
    except ValueError as error:
        if _sentence(error) is not None:
            raise
        raise TableError(path, str(error)) from error


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and sentence for an error."""
    if isinstance(error, CommandError):
        return error.code, str(error)
    if (known := _sentence(error)) is not None:
        code, sentence = known
        return CODES[code], str(error) if sentence is None else sentence
    if isinstance(error, OSError):
        return _explain_os_error(error)
    return CODES["unexpected"], (
        f"unexpected {type(error).__name__}: {error} (run with --debug before the command for "
        "details)"
    )


def _sentence(error: BaseException) -> tuple[str, str | None] | None:
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((SENTENCES[name] for name in names if name in SENTENCES), None)


def _explain_os_error(error: OSError) -> tuple[int, str]:
    file = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CODES["write"], f"the disk is full{file}; nothing was changed"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return CODES["write"], f"not allowed to write or read{file}"
    return CODES["write"], f"{error.strerror or error}{file}"
