"""A process can be interrupted at any time, and a closed pipe is no error."""

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
    "exit_at_interrupt",
    "flush_output",
    "hush",
    "import_learning",
]

INTERRUPTED = 130
INTERRUPTED_IN_WORDS = "interrupted; files that were not finished were left as they were"


@contextmanager
def exit_at_interrupt() -> Iterator[None]:
    """End the process at once when it is interrupted while modules are imported.

    Modules that are half imported may swallow the exception, or make another one of it; and there
    is nothing to clean up yet.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Whoever started this process, or runs it inside of theirs, has other plans.
        yield
        return
    signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def import_learning() -> None:
    """Import what learns and predicts, which takes seconds; commands check what they can before."""
    with exit_at_interrupt():
        import_module("entangled_kernels.cli.models")


def _exit(number: int, frame: Any) -> None:
    os.write(2, f"error: {INTERRUPTED_IN_WORDS}\n".encode())
    os._exit(INTERRUPTED)


def hush() -> None:
    """Send what is still printed nowhere, once nobody reads it any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def flush_output() -> None:
    """Print what is still in the buffer; the reader may be gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        hush()
