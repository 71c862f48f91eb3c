"""Where a pass over batches stands, and going on from there when what was read is still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.utils.validation import _num_samples

from .batch import Batch, Source, batch_checksum
from .checkpoints import CheckpointError

__all__ = ["Position", "remaining"]


@dataclass(frozen=True)
class Position:
    """Where a pass over batches stands.

    Attributes
    ----------
    done : int
        Number of batches taken in.
    n_rows : int
        Number of rows in them.
    source : Source or None
        Where the last one came from, where that is known.
    checksum : int
        Of the values of all batches, or of those from the file of ``source``.
    digests : dict of str
        Digests of the files that were finished, by name.
    """

    done: int = 0
    n_rows: int = 0
    source: Source | None = None
    checksum: int = 0
    digests: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"batch {self.done + 1}, after {self.n_rows} rows"

    def after(self, batch: Batch, *, with_checksum: bool) -> Position:
        """The position after one more batch; the checksum takes time, and only checkpoints need it."""
        before, now = (None if source is None else source.file for source in (self.source, batch.source))
        start = self.checksum if before == now else 0
        return replace(
            self,
            done=self.done + 1,
            n_rows=self.n_rows + _num_samples(batch.X),
            source=batch.source,
            checksum=batch_checksum(batch, start) if with_checksum else 0,
        )

    def with_digests(self, batches: Any) -> Position:
        """The position with digests of all files that are finished."""
        if self.source is None or not hasattr(batches, "files_before"):
            return self
        before = batches.files_before(self.source)
        self.digests.update({file: _digest(file) for file in before if file not in self.digests})
        return self

    @classmethod
    def read(cls, stored: Any, path: Any) -> Position:
        """A position from a checkpoint, whose every part is checked."""
        try:
            source = None if stored["source"] is None else Source(**stored["source"])
            position = cls(stored["done"], stored["n_rows"], source, stored["checksum"], stored["digests"])
            numbers = [position.done, position.n_rows, position.checksum]
            texts = [*position.digests, *position.digests.values()]
            if source is not None:
                numbers += [source.start, source.stop]
                texts.append(source.file)
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise TypeError("counts must be whole numbers")
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("names of files and digests must be text")
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{path} is not a checkpoint of a fit ({type(error).__name__}: {error}); remove it"
            ) from error
        return position


def remaining(
    batches: Iterable[Any], items: Iterator[Batch], seen: Position, position: Position, path: Any
) -> Iterator[Batch]:
    """The batches after a position, once it is sure that those before it are what they were.

    Parameters
    ----------
    batches : iterable, or reader of files
        A reader starts where it is needed; of an iterable the batches that are done are passed over.
    items : iterator
        Over the batches, of which those up to ``seen`` have been taken.
    seen, position : Position
    path : path
        Of the checkpoint, for the error.
    """
    if position.source is not None and hasattr(batches, "after"):
        _check_files(batches, position, position.source, path)
        rest: Iterator[Batch] = iter(batches.after(position.source))
        return rest
    while seen.done < position.done and (item := next(items, None)) is not None:
        seen = seen.after(item, with_checksum=True)
    if seen.n_rows != position.n_rows:
        raise CheckpointError(
            f"the first {position.done} batches held {position.n_rows} rows when the checkpoint {path} was "
            f"written, and hold {seen.n_rows} now; cut the rows into the same batches, or remove the "
            f"checkpoint"
        )
    if seen.checksum != position.checksum:
        raise _changed(f"the first {position.done} batches", path)
    return items


def _check_files(reader: Any, position: Position, source: Source, path: Any) -> None:
    """Raise unless all that was read of the files, up to the source of the last batch, is what it was."""
    if source.file not in reader.files:
        raise CheckpointError(
            f"{source.file}, where reading was interrupted, is not among the files; name the files that "
            f"{path} was begun with, or remove it"
        )
    if list(reader.files_before(source)) != list(position.digests):
        raise CheckpointError(
            f"the files before {source.file} are not those that {path} was begun with; name these, or "
            f"remove it"
        )
    for file, digest in position.digests.items():
        if _digest(file) != digest:
            raise _changed(file, path)
    checksum, stop = 0, 0
    for batch in reader.until(source):
        checksum, stop = batch_checksum(batch, checksum), batch.source.stop
    if (checksum, stop) != (position.checksum, source.stop):
        raise _changed(f"{source.file}, rows 1 to {source.stop}", path)


def _changed(what: str, path: Any) -> CheckpointError:
    return CheckpointError(
        f"{what}: the values are not those that were read when the checkpoint {path} was written; restore "
        f"them, or remove the checkpoint to start anew"
    )


def _digest(file: str) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "blake2b").hexdigest()
