"""Interrupts and closed pipes: neither shows a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = [
    "INTERRUPTED",
    "INTERRUPTED_IN_WORDS",
    "discard_output",
    "exit_at_interrupt",
    "flush_output",
    "import_learning",
]

INTERRUPTED = 130
INTERRUPTED_IN_WORDS = "interrupted; files that were not finished were left as they were"


@contextmanager
def exit_at_interrupt() -> Iterator[None]:
    """End the process at once when it is interrupted while modules are imported.

    A module that is half imported may swallow the exception or raise another one. Nothing needs to
    be cleaned up yet.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Interrupts are ignored or handled by the caller.
        yield
        return
    signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def import_learning() -> None:
    """Import what fits and predicts, which takes seconds: commands check their arguments before."""
    with exit_at_interrupt():
        import_module("entangled_kernels.cli.models")


def _exit(number: int, frame: Any) -> None:
    os.write(2, f"error: {INTERRUPTED_IN_WORDS}\n".encode())
    os._exit(INTERRUPTED)


def discard_output() -> None:
    """Discard what is printed from now on, because the reader has closed the pipe."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def flush_output() -> None:
    """Print what is still in the buffer; the reader may have closed the pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
