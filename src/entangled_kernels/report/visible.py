"""Signs that cannot be seen, but that change what is seen, made visible."""

from __future__ import annotations

import re

__all__ = ["visible"]

# Control characters, which terminals obey, and marks that change the direction of writing.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Text with control characters and marks of direction written as escapes, which JSON has too.

    Parameters
    ----------
    text : str
    keep : str, optional
        Characters to leave as they are.

    Examples
    --------
    >>> print(visible("net load\x1b[2J \u202eGPJ.exe"))
    net load\u001b[2J \u202eGPJ.exe
    """
    return HIDDEN.sub(lambda sign: sign[0] if sign[0] in keep else f"\\u{ord(sign[0]):04x}", text)
