"""Checkpoints of a pass over rows: moments, the place in the stream, and plain facts in one sealed file."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning.moments import Moments
from ..storage.sealed import read_sealed, write_sealed

__all__ = ["Checkpoint", "CheckpointError", "read_checkpoint", "write_checkpoint"]

FORMAT = 2


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
    payload = io.BytesIO()
    np.savez(payload, **arrays)  # type: ignore[arg-type]
    header = {"format": FORMAT, "facts": checkpoint.facts, "parts": counts}
    write_sealed(path, "checkpoint", header, payload.getbuffer())


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; nothing in the file is run, and nothing in it is trusted.

    Raises
    ------
    CheckpointError
        When the file is no checkpoint, or was damaged.
    """
    header, payload = read_sealed(path, "checkpoint", FORMAT, CheckpointError)
    try:
        arrays = _read_arrays(payload)
        facts, counts = header["facts"], header["parts"]
        if not isinstance(facts, dict):
            raise TypeError("facts must be a JSON object")
        parts = [
            _read_moments(arrays.pop(f"mean_{number}"), arrays.pop(f"scatter_{number}"), **own)
            for number, own in enumerate(counts)
        ]
    # Whatever a crafted file leads to, it is refused.
    except Exception as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of a fit ({type(error).__name__}: {error}); remove it"
        ) from error
    return Checkpoint(parts, facts, {name.removeprefix("array_"): array for name, array in arrays.items()})


def _read_arrays(payload: bytes) -> dict[str, NDArray[np.float64]]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("arrays must not be compressed")
    if sum(entry.file_size for entry in entries) > len(payload):
        raise ValueError("arrays must not overlap")
    with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for name, array in arrays.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers of type float64")
    return arrays


def _read_moments(
    mean: NDArray[np.float64], scatter: NDArray[np.float64], n_samples: Any, weight: Any, n_features: Any
) -> Moments:
    """Moments whose numbers fit each other."""
    whole = all(
        isinstance(number, int) and not isinstance(number, bool) for number in (n_samples, n_features)
    )
    if not (whole and isinstance(weight, int | float) and np.isfinite(weight) and weight >= 0.0):
        raise ValueError("counts of rows and features must be whole numbers, and weights finite")
    width = mean.shape[0] if mean.ndim == 1 else -1
    if scatter.shape != (width, width) or not 0 <= n_features < width or not 0 <= n_samples < 2**63:
        raise ValueError(f"means of shape {mean.shape} do not fit moments of shape {scatter.shape}")
    return Moments(n_samples, float(weight), n_features, mean, scatter)
