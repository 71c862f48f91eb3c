"""The ``entangled-kernels`` command; needs ``pip install "entangled-kernels[cli]"``."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from .process import exit_at_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of this process."""
    with exit_at_interrupt():
        try:
            from .application import app
        except ModuleNotFoundError as error:
            install = 'pip install "entangled-kernels[cli]"'
            need = f"the command needs {error.name}, which is not installed: {install}"
            sys.exit(f"entangled-kernels: {need}")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a sign gets a question mark, not an error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="entangled-kernels")
