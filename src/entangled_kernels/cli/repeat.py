"""The command that repeats what was done."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

__all__ = ["command_line"]


def command_line(command: str, *arguments: Any, options: Mapping[str, Any]) -> str:
    """A command to copy into a shell; options that are None or False are left out.

    Examples
    --------
    >>> options = {"--targets": ["a", "b"], "--encode": True, "--jobs": None}
    >>> command_line("fit", "my table.csv", options=options)
    "entangled-kernels fit 'my table.csv' --targets a,b --encode"
    """
    words = ["entangled-kernels", command, *map(str, arguments)]
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words += [name, _joined(value) if isinstance(value, list | tuple) else str(value)]
    return shlex.join(words)


def _joined(values: Any) -> str:
    """Values with commas, in double quotes where they hold one."""
    return ",".join(f'"{value}"' if "," in str(value) else str(value) for value in values)
