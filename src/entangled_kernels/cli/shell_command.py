"""Commands to copy into a shell, and names as they are typed there."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["command_line", "split_names"]


def command_line(
    command: str,
    *arguments: Any,
    options: Mapping[str, Any],
    repeated: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A command of this program, quoted for a shell; options that are None or False are left out.

    Values of an option that is ``repeated`` stand behind it one by one, as they are.

    Examples
    --------
    >>> options = {"--targets": ["a", "b, c"], "--encode": True, "--jobs": None}
    >>> print(command_line("fit", "my table.csv", options=options))
    entangled-kernels fit 'my table.csv' --targets 'a,"b, c"' --encode
    """
    words = ["entangled-kernels", command]
    # A name that begins with a dash would be taken for an option; a dash alone is standard input.
    words += [f"./{one}" if str(one).startswith("-") and str(one) != "-" else str(one) for one in arguments]
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words += [name, _joined(value) if isinstance(value, list | tuple) else str(value)]
    for name, values in (repeated or {}).items():
        words += [word for value in values for word in (name, value)]
    return shlex.join(words)


def _joined(values: Any) -> str:
    """Values with commas, in double quotes where they hold one; `split_names` reads them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


def split_names(values: Sequence[str]) -> list[str]:
    """Names from an option that may be repeated: separated by commas, in quotes where they hold one.

    Examples
    --------
    >>> split_names(["a,net load", '"x, y"'])
    ['a', 'net load', 'x, y']
    """
    names = [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row]
    return [name for name in names if name]
