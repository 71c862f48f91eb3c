"""How the text of a file is written: what separates its cells, its decimal sign and its encoding."""

from __future__ import annotations

import codecs
import csv
import os
import re
from contextlib import suppress
from dataclasses import dataclass

from .file_kinds import file_kind

__all__ = ["TextFormat"]

DELIMITERS = ",;\t"
# So much of a file is read for its first line, and so many signs of cells are looked at.
_SAMPLE_BYTES, _SAMPLE_CELLS = 2**20, 2**16
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
# May as well be a thousand.
_GROUPED_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class TextFormat:
    r"""How CSV and TSV files are written; what is None is found out from the file.

    Parameters
    ----------
    delimiter : str, optional
        What separates cells, one character. Otherwise a tab in TSV; in CSV a comma, a semicolon or a tab,
        whichever the first line has most of outside of quotes.
    decimal : {".", ","}, optional
        Otherwise a comma where it separates no cells, some number can only be meant so ("0,5", but not
        "1,234"), and no number has a point.
    encoding : str, optional
        Any that Python knows. Otherwise UTF-8, or UTF-16 where the file begins with its mark.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("speed;load\n1,5;2\n")
    >>> TextFormat().of(path)
    TextFormat(delimiter=';', decimal=',', encoding='utf-8')
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"delimiter must be one character, such as ';', got {self.delimiter!r}")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.decimal is not None and self.decimal == self.delimiter:
            raise ValueError(f"delimiter and decimal must differ, got {self.decimal!r} for both")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one that Python knows, such as cp1252, got {self.encoding!r}"
                ) from None

    def of(self, path: str | os.PathLike[str]) -> TextFormat:
        """The format of a file, with everything found out."""
        if None not in (self.delimiter, self.decimal, self.encoding):
            return self
        sample = _first_bytes(path)
        encoding = self.encoding or ("utf-16" if sample.startswith(_UTF_16_MARKS) else "utf-8")
        text = sample.decode(encoding, errors="replace").lstrip("\ufeff\r\n")
        delimiter = self.delimiter or _find_delimiter(path, text)
        return TextFormat(delimiter, self.decimal or _find_decimal(text, delimiter), encoding)


def _first_bytes(path: str | os.PathLike[str]) -> bytes:
    from .arrow import need_arrow

    with need_arrow().input_stream(os.fspath(path), compression="detect") as stream:
        return bytes(stream.read(_SAMPLE_BYTES))


def _find_delimiter(path: str | os.PathLike[str], text: str) -> str:
    if file_kind(path) == "tsv":
        return "\t"
    # Names in quotes may hold what separates nothing.
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", text.partition("\n")[0]).count)


def _find_decimal(text: str, delimiter: str) -> str:
    if delimiter == ",":
        return "."
    # The first line holds names; a cell that is cut at the end of the sample still shows its sign.
    rows = csv.reader(text.partition("\n")[2][:_SAMPLE_CELLS].splitlines(), delimiter=delimiter)
    sure = False
    with suppress(csv.Error):
        for row in rows:
            for cell in map(str.strip, row):
                if _POINT_NUMBER.fullmatch(cell):
                    return "."
                sure |= bool(_COMMA_NUMBER.fullmatch(cell)) and not _GROUPED_NUMBER.fullmatch(cell)
    return "," if sure else "."
