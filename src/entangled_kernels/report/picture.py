"""Figures as data that a page can hold."""

from __future__ import annotations

import base64
import io
import os
import struct
from pathlib import Path
from typing import Any

__all__ = ["embedded"]

# An SVG of more bytes than this is replaced by a PNG.
LARGE = 400_000
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# CSS pixels in an inch, and dots of a PNG for each of them.
PIXELS, DENSITY = 96, 2


def embedded(figure: Any) -> tuple[str, int, int]:
    """Data URI of a matplotlib figure, of a PNG in bytes or of a PNG file, with width and height in pixels.

    The same figure gives the same URI: no dates, no random names.
    """
    if hasattr(figure, "savefig"):
        return _from_matplotlib(figure)
    if isinstance(figure, str | os.PathLike):
        figure = Path(figure).read_bytes()
    if not isinstance(figure, bytes) or not figure.startswith(SIGNATURE):
        raise TypeError(
            "figure must be a matplotlib Figure, or a PNG as bytes or as the path of a file, "
            f"got {type(figure).__name__}"
        )
    return _uri("image/png", figure), *_size_of_png(figure)


def _from_matplotlib(figure: Any) -> tuple[str, int, int]:
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "entangled-kernels", "svg.fonttype": "path"}):
        svg = _saved(figure, format="svg", metadata={"Date": None, "Creator": None})
    png = _saved(figure, format="png", dpi=PIXELS * DENSITY, metadata={"Software": None})
    width, height = (round(dots / DENSITY) for dots in _size_of_png(png))
    drawn = ("image/svg+xml", svg) if len(svg) <= LARGE else ("image/png", png)
    return _uri(*drawn), width, height


def _saved(figure: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, bbox_inches="tight", facecolor="white", **options)
    return file.getvalue()


def _uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _size_of_png(data: bytes) -> tuple[int, int]:
    """Width and height in dots, from the header that every PNG opens with."""
    width, height = struct.unpack(">II", data[16:24])
    return width, height
