"""Atomic writes, sealed files, and the format of text tables.

Models and checkpoints are sealed files: two lines of text, a payload, and in the last 32 bytes the
SHA-256 of all bytes before. The first line names the kind, such as ``entangled-kernels model``; the
second is a JSON object with the number of the format under ``"format"``. This layout is the same in
every format, so that any version can tell a damaged file from one that is too new. The checksum
shows accidents, not intent: anyone can write a sealed file, so readers do not trust its content.
"""

from __future__ import annotations

import codecs
import csv
import errno
import hashlib
import io
import json
import os
import platform
import re
import secrets
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import IO, Any

__all__ = [
    "KINDS",
    "TEXT_KINDS",
    "TextFormat",
    "atomic_write",
    "check_expansion",
    "file_kind",
    "first_bytes",
    "need_arrow",
    "read_sealed",
    "remove_abandoned",
    "text_options",
    "write_sealed",
]

# After this time without a write, a partial file of another machine counts as abandoned.
_ABANDONED_SECONDS = 24 * 3600


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that replaces ``path`` once it is complete and on the disk.

    An old file stays until then, and if writing fails.

    Parameters
    ----------
    path : path
        A missing folder is made, unless the path is a link. A link stays a link, and its target is
        replaced.
    mode : {"w", "wb"}, default="w"
        Text is UTF-8 with line ends as written.
    """
    path = _resolved(Path(path))
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    name = path.parent / f".{path.name}.{_machine()}-{os.getpid()}.{secrets.token_hex(4)}.part"
    descriptor = os.open(
        name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
    )
    try:
        with os.fdopen(descriptor, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def remove_abandoned(path: str | os.PathLike[str]) -> None:
    """Remove partial files of ``path`` left by processes that were killed while writing.

    Partial files of running processes stay, and those of other machines stay for a day.
    """
    path = Path(os.path.realpath(path))
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        with suppress(FileNotFoundError):
            machine, _, process = part.name[len(path.name) + 2 :].partition(".")[0].partition("-")
            here = machine == _machine() and process.isdigit() and hasattr(os, "getuid")
            old = time.time() - part.stat().st_mtime > _ABANDONED_SECONDS
            if old or (here and not _is_alive(int(process))):
                part.unlink()


def _machine() -> str:
    """A short name of this machine for names of files."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_alive(process: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        with suppress(PermissionError, OverflowError):
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _resolved(path: Path) -> Path:
    """The file to write, behind links, in a folder that exists."""
    target = Path(os.path.realpath(path))
    if not path.is_symlink():
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"the link leads to {target}, in a folder that is not there", str(path)
        )
    return target


DIGEST = hashlib.sha256().digest_size
# An archive may expand to this many bytes, or to this many times its size, whichever is more.
LEAST_EXPANSION, LARGEST_RATIO = 2**26, 200


def write_sealed(
    path: str | os.PathLike[str], kind: str, header: dict[str, Any], payload: Any
) -> None:
    """Write a sealed file with a header for JSON and a payload of bytes."""
    # repr of a float, which JSON uses, gives the same float back.
    lines = _magic(kind) + json.dumps(header).encode() + b"\n"
    digest = hashlib.sha256(lines)
    digest.update(payload)
    with atomic_write(path, "wb") as file:
        file.writelines([lines, payload, digest.digest()])


def read_sealed(
    path: str | os.PathLike[str], kind: str, number: int, error: type[ValueError]
) -> tuple[dict[str, Any], bytes]:
    """Header and payload of a sealed file; no code in it is run.

    Parameters
    ----------
    path : path
    kind : str
        Such as ``"model"``.
    number : int
        The format that can be read.
    error : type of ValueError
        Raised if the file is damaged, of another kind or of another format.
    """
    content, magic, what = (
        Path(path).read_bytes(),
        _magic(kind),
        f"{kind} file of entangled-kernels",
    )
    if not content:
        raise error(f"{path} is empty, not a {kind} file")
    if not content.startswith(magic):
        if magic.startswith(content):
            raise error(f"{path} is damaged: it was cut short")
        raise error(f"{path} is not a {what}")
    body = content[:-DIGEST]
    if hashlib.sha256(body).digest() != content[-DIGEST:]:
        raise error(
            f"{path} is damaged: its checksum does not match, so it was cut short or changed after "
            f"it was written"
        )
    line, _, payload = body[len(magic) :].partition(b"\n")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError) as cause:
        raise error(f"{path} is not a {what}: it has no header") from cause
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise error(f"{path} is not a {what}: it has no header")
    if header["format"] != number:
        software = header.get("software")
        writer = software.get("entangled-kernels") if isinstance(software, dict) else None
        newer = header["format"] > number
        raise error(
            f"{path} has {kind} format {header['format']}, written by entangled-kernels "
            f"{writer or 'of unknown version'}; this version reads format {number}: "
            f"{'upgrade entangled-kernels' if newer else 'make the file again with this version'}"
        )
    return header, payload


def check_expansion(payload: bytes) -> None:
    """Raise if a ZIP archive would expand to a size out of proportion to its own."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        total = sum(entry.file_size for entry in archive.infolist())
    if total > max(LEAST_EXPANSION, LARGEST_RATIO * len(payload)):
        raise ValueError(f"an archive of {len(payload)} bytes would expand to {total}")


def _magic(kind: str) -> bytes:
    return f"entangled-kernels {kind}\n".encode()


KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
}
TEXT_KINDS = ("csv", "tsv")


def file_kind(path: str | os.PathLike[str], *, compressed: bool = True) -> str | None:
    """One of "csv", "tsv", "parquet", "arrow" and "npz", or None for any other name.

    Parameters
    ----------
    path : path
    compressed : bool, default=True
        Whether ``.csv.gz`` and ``.tsv.gz`` are accepted.

    Examples
    --------
    >>> file_kind("speed.parquet"), file_kind("Speed.CSV.gz"), file_kind("speed.xlsx")
    ('parquet', 'csv', None)
    """
    name = Path(path).name.lower()
    packed = compressed and name.endswith(".gz")
    kind = KINDS.get(Path(name.removesuffix(".gz") if packed else name).suffix)
    return None if packed and kind not in TEXT_KINDS else kind


DELIMITERS = ",;\t"
# Bytes of a file that are read for its first line, and characters that are searched for decimals.
_SAMPLE_BYTES, _SAMPLE_CELLS = 2**20, 2**16
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
# Its comma may also separate thousands.
_GROUPED_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class TextFormat:
    r"""The format of CSV and TSV files; settings that are None are found from the file.

    Parameters
    ----------
    delimiter : str, optional
        One character. By default a tab in TSV; in CSV the one of comma, semicolon and tab that the
        first line has most of outside of quotes.
    decimal : {".", ","}, optional
        By default a comma if it is not the delimiter, some number has a comma that can only be
        decimal ("0,5", but not "1,234"), and no number has a point.
    encoding : str, optional
        Any that Python knows. By default UTF-8, or UTF-16 if the file begins with its mark.
    usual_decimal : {".", ","}, default="."
        The decimal sign of a file whose numbers do not show it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("speed;load\n1,5;2\n")
    >>> TextFormat().of(path)
    TextFormat(delimiter=';', decimal=',', encoding='utf-8', usual_decimal='.')
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    usual_decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(
                f"delimiter must be one character, such as ';', got {self.delimiter!r}"
            )
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.decimal is not None and self.decimal == self.delimiter:
            raise ValueError(f"delimiter must differ from decimal, got {self.decimal!r} for both")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one that Python knows, such as cp1252, got {self.encoding!r}"
                ) from None

    def of(self, path: str | os.PathLike[str]) -> TextFormat:
        """The format of a file, with no setting None."""
        if None not in (self.delimiter, self.decimal, self.encoding):
            return self
        sample = first_bytes(path)
        encoding = self.encoding or ("utf-16" if sample.startswith(_UTF_16_MARKS) else "utf-8")
        text = sample.decode(encoding, errors="replace").lstrip("\ufeff\r\n")
        delimiter = self.delimiter or _find_delimiter(path, text)
        if delimiter == ",":
            return replace(self, delimiter=delimiter, decimal=".", encoding=encoding)
        decimal = self.decimal or _find_decimal(text, delimiter) or self.usual_decimal
        return replace(self, delimiter=delimiter, decimal=decimal, encoding=encoding)


def first_bytes(path: str | os.PathLike[str]) -> bytes:
    """The beginning of a file, decompressed if it is compressed."""
    with need_arrow().input_stream(os.fspath(path), compression="detect") as stream:
        return bytes(stream.read(_SAMPLE_BYTES))


def _find_delimiter(path: str | os.PathLike[str], text: str) -> str:
    if file_kind(path) == "tsv":
        return "\t"
    # Quoted names may contain delimiters.
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", text.partition("\n")[0]).count)


def _find_decimal(text: str, delimiter: str) -> str | None:
    """The decimal sign of the numbers in a text; None if no number shows it."""
    # The first line holds names; a number cut off at the end of the sample still shows its sign.
    rows = csv.reader(text.partition("\n")[2][:_SAMPLE_CELLS].splitlines(), delimiter=delimiter)
    sure = False
    with suppress(csv.Error):
        for row in rows:
            for cell in map(str.strip, row):
                if _POINT_NUMBER.fullmatch(cell):
                    return "."
                sure |= bool(_COMMA_NUMBER.fullmatch(cell)) and not _GROUPED_NUMBER.fullmatch(cell)
    return "," if sure else None


def need_arrow() -> Any:
    """The module pyarrow, or an error that names the extra to install."""
    try:
        import pandas  # noqa: F401
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            'tables need pandas and pyarrow: pip install "entangled-kernels[data]"'
        ) from error
    return pa


def text_options(path: str, text_format: TextFormat, **more: Any) -> dict[str, Any]:
    """Arguments for pyarrow's CSV readers.

    Parameters
    ----------
    path : str
    text_format : TextFormat
    **more : options of pyarrow's `ReadOptions` and `ConvertOptions`
        ``block_size``, ``column_types`` and ``include_columns``.
    """
    from pyarrow import csv

    resolved = text_format.of(path)
    # For "utf8" pyarrow needs no codec, and skips the mark at the beginning.
    utf8 = codecs.lookup(str(resolved.encoding)).name in ("utf-8", "utf-8-sig", "ascii")
    block_size = more.pop("block_size", None)
    return {
        "read_options": csv.ReadOptions(
            use_threads=False, block_size=block_size, encoding="utf8" if utf8 else resolved.encoding
        ),
        "parse_options": csv.ParseOptions(delimiter=resolved.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            strings_can_be_null=True, decimal_point=resolved.decimal, **more
        ),
    }
