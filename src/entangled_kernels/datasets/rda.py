"""A small reader of R's data files: the binary format of ``save``, as far as plain vectors and lists go."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import Any

import numpy as np

__all__ = ["read_rda"]

MAGIC = b"RDX2\nX\n"
COMPRESSIONS = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress}

# Kinds of object, in R's numbering.
SYMBOL, PAIRLIST, CHARS, LOGICAL, INTEGER, REAL, STRINGS, LIST = 1, 2, 9, 10, 13, 14, 16, 19
REFERENCE, NOTHING, MISSING_STRING = 255, 254, -1
HAS_ATTRIBUTES, HAS_TAG = 1 << 9, 1 << 10
NUMBERS = {INTEGER: ">i4", LOGICAL: ">i4", REAL: ">f8"}


def read_rda(content: bytes) -> dict[str, Any]:
    """Objects of a file that R's ``save`` wrote, by name.

    Numbers come as arrays with their ``dim``, strings as lists, lists with names as dicts; an array with
    ``dimnames`` as ``{"values": array, "dimnames": [...]}``. The names of plain vectors are left out.
    """
    content = COMPRESSIONS.get(content[:2], bytes)(content)
    if not content.startswith(MAGIC):
        raise ValueError("this is not a file that R's save wrote in its binary format, version 2")
    # After the magic letters: the version of the format, and two versions of R.
    return dict(_Reader(content, len(MAGIC) + 12).read())


class _Reader:
    def __init__(self, content: bytes, start: int) -> None:
        self.content, self.at = content, start
        self.symbols: list[str] = []

    def integer(self) -> int:
        return int(self.array(1, ">i4")[0])

    def array(self, count: int, dtype: str) -> Any:
        values = np.frombuffer(self.content, dtype, count, self.at)
        self.at += values.nbytes
        return values.astype(values.dtype.newbyteorder("="))

    def read(self) -> Any:
        """The object that begins here."""
        flags = self.integer()
        kind = flags & 0xFF
        if kind == NOTHING:
            return None
        if kind == REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        if kind == SYMBOL:
            self.symbols.append(self.read())
            return self.symbols[-1]
        if kind == CHARS:
            return self.text()
        if kind == PAIRLIST:
            return self.pairs(flags)
        values = self.vector(kind)
        return self.dressed(values, kind, dict(self.read())) if flags & HAS_ATTRIBUTES else values

    def text(self) -> str | None:
        length = self.integer()
        if length == MISSING_STRING:
            return None
        self.at += length
        return self.content[self.at - length : self.at].decode("latin-1")

    def pairs(self, flags: int) -> list[tuple[str, Any]]:
        """A linked list of tagged values."""
        pairs = []
        while flags & 0xFF != NOTHING:
            if flags & HAS_ATTRIBUTES:
                self.read()
            pairs.append((self.read() if flags & HAS_TAG else "", self.read()))
            flags = self.integer()
        return pairs

    def vector(self, kind: int) -> Any:
        if kind in NUMBERS:
            return self.array(self.integer(), NUMBERS[kind])
        if kind in (STRINGS, LIST):
            return [self.read() for _ in range(self.integer())]
        raise ValueError(f"the file holds an object of R's kind {kind}, which this reader does not know")

    @staticmethod
    def dressed(values: Any, kind: int, attributes: dict[str, Any]) -> Any:
        """Values with the meaning that their attributes give them."""
        if "dim" in attributes:
            values = values.reshape(attributes["dim"], order="F")
        if "dimnames" in attributes:
            return {"values": values, "dimnames": attributes["dimnames"]}
        if "names" in attributes and kind == LIST:
            return dict(zip(attributes["names"], values, strict=True))
        return values
