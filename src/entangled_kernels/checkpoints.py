"""Checkpoints of a pass over rows: arrays and plain facts in one file, with a checksum and no code."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .files import atomic_write
from .moments import Moments

__all__ = ["Checkpoint", "CheckpointError", "read_checkpoint", "remove_unfinished", "write_checkpoint"]

_MAGIC = b"entangled-kernels checkpoint 1\n"


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or that belongs to another fit."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Moments of the rows seen so far, and where the pass stands.

    Attributes
    ----------
    parts : list of Moments
        One, or one for every fold.
    facts : dict
        Anything that JSON can hold: the place in the stream, names of columns, what the fit is of.
    arrays : dict of ndarray
        Further numbers.
    """

    parts: list[Moments]
    facts: dict[str, Any]
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole or not at all; a previous one stays until the new one is on the disk."""
    arrays = {f"array_{name}": values for name, values in checkpoint.arrays.items()}
    counts = []
    for number, part in enumerate(checkpoint.parts):
        arrays |= {f"mean_{number}": part.mean, f"scatter_{number}": part.scatter}
        counts.append({"n_samples": part.n_samples, "weight": part.weight, "n_features": part.n_features})
    # repr of a float, which JSON uses, gives the same float back.
    text = json.dumps({"facts": checkpoint.facts, "parts": counts})
    payload = io.BytesIO()
    np.savez(payload, text=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
    content = payload.getbuffer()
    with atomic_write(path, "wb") as file:
        file.write(_MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n")
        file.write(content)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; nothing in the file is run.

    Raises
    ------
    CheckpointError
        When the file is no checkpoint, or was damaged.
    """
    with open(path, "rb") as file:
        magic, digest, content = file.read(len(_MAGIC)), file.readline().strip(), file.read()
    if magic != _MAGIC:
        raise CheckpointError(f"{path} is not a checkpoint of this version; name another file, or remove it")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise CheckpointError(f"{path} is damaged: its contents do not match its checksum; remove it")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        text = json.loads(stored["text"].tobytes())
        parts = [
            Moments(mean=stored[f"mean_{number}"], scatter=stored[f"scatter_{number}"], **counts)
            for number, counts in enumerate(text["parts"])
        ]
        names = [name for name in stored.files if name.startswith("array_")]
        return Checkpoint(parts, text["facts"], {name.removeprefix("array_"): stored[name] for name in names})


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove what a process that was killed while writing left beside the checkpoint."""
    path = Path(os.path.realpath(path))
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)
