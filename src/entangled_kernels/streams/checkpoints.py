"""Checkpoints of a pass over rows: moments, the position in the stream, and facts in one sealed file."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..files import read_sealed, write_sealed
from ..learning.moments import Moments, RowSample
from ..linalg import Array

__all__ = ["Checkpoint", "CheckpointError", "read_checkpoint", "write_checkpoint"]

FORMAT = 3


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or that belongs to another fit."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Moments of the rows seen so far, and the position of the pass.

    Attributes
    ----------
    parts : list of Moments
        One, or one for every fold.
    facts : dict
        JSON values: the position, and settings that must be the same when the pass continues.
    arrays : dict of ndarray
        Further numbers.
    sample : RowSample or None
        A sample of the rows.
    """

    parts: list[Moments]
    facts: dict[str, Any]
    arrays: dict[str, Array] = field(default_factory=dict)
    sample: RowSample | None = None


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a previous one is replaced once the new one is complete on the disk."""
    arrays = {f"array_{name}": values for name, values in checkpoint.arrays.items()}
    counts, groups = list[dict[str, Any]](), list[Any]()
    for part in checkpoint.parts:
        pieces = [part] if part.complete else [part.rows, *(group for _, group in part.groups)]
        groups.append(None if part.complete else [targets.tolist() for targets, _ in part.groups])
        for piece in pieces:
            arrays |= {f"mean_{len(counts)}": piece.mean, f"scatter_{len(counts)}": piece.scatter}
            counts.append(
                {
                    "n_samples": piece.n_samples,
                    "weight": piece.weight,
                    "n_features": piece.n_features,
                }
            )
    if checkpoint.sample is not None:
        arrays |= _pack_sample(checkpoint.sample)
    payload = io.BytesIO()
    np.savez(payload, **arrays)  # type: ignore[arg-type]
    header = {"format": FORMAT, "facts": checkpoint.facts, "parts": counts, "groups": groups}
    write_sealed(path, "checkpoint", header, payload.getbuffer())


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; nothing in the file is run, and everything in it is checked.

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
        pieces = [
            _read_moments(arrays.pop(f"mean_{number}"), arrays.pop(f"scatter_{number}"), **count)
            for number, count in enumerate(counts)
        ]
        parts = [_read_part(groups, pieces) for groups in header["groups"]]
        if pieces:
            raise ValueError("there are more moments than parts")
        sample = _read_sample(arrays)
    # A crafted file may cause any error.
    except Exception as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of a fit ({type(error).__name__}: {error}); remove it"
        ) from error
    further = {name.removeprefix("array_"): array for name, array in arrays.items()}
    return Checkpoint(parts, facts, further, sample)


def _read_arrays(payload: bytes) -> dict[str, Array]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("arrays must not be compressed")
    if sum(entry.file_size for entry in entries) > len(payload):
        raise ValueError("arrays must not overlap")
    with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for name, array in arrays.items():
        # Targets of a sample may be missing.
        numbers = array[~np.isnan(array)] if name == "sample_Y" else array
        if array.dtype != np.float64 or not np.isfinite(numbers).all():
            raise ValueError(f"{name} must hold finite numbers of type float64")
    return arrays


def _read_moments(
    mean: Array, scatter: Array, n_samples: Any, weight: Any, n_features: Any
) -> Moments:
    """Moments whose numbers fit each other."""
    whole = all(
        isinstance(number, int) and not isinstance(number, bool)
        for number in (n_samples, n_features)
    )
    if not (whole and isinstance(weight, int | float) and np.isfinite(weight) and weight >= 0.0):
        raise ValueError("counts of rows and features must be whole numbers, and weights finite")
    width = mean.shape[0] if mean.ndim == 1 else -1
    if (
        scatter.shape != (width, width)
        or not 0 <= n_features <= width
        or not 0 <= n_samples < 2**63
    ):
        raise ValueError(f"means of shape {mean.shape} do not fit moments of shape {scatter.shape}")
    return Moments(n_samples, float(weight), n_features, mean, scatter)


def _read_part(groups: Any, pieces: list[Moments]) -> Moments:
    """The moments of a part, made of the first pieces, which are removed from the list."""
    rows = pieces.pop(0)
    if groups is None:
        if rows.n_outputs == 0:
            raise ValueError("moments must be of at least one target")
        return rows
    parts = [(np.array(targets, dtype=np.intp), pieces.pop(0)) for targets in groups]
    order = np.sort(np.concatenate([targets for targets, _ in parts]))
    if not (
        rows.n_outputs == 0
        and np.array_equal(order, np.arange(len(order)))
        and all(
            len(targets) == moments.n_outputs
            and moments.n_features == rows.n_features
            and (np.diff(targets) > 0).all()
            for targets, moments in parts
        )
    ):
        raise ValueError("groups of targets do not fit their moments")
    return Moments.from_groups(rows, parts)


def _pack_sample(sample: RowSample) -> dict[str, Array]:
    """A sample as floats; a key of 64 bits is stored as two of them, so that it is not rounded."""
    high, low = (sample.key >> np.uint64(32)), sample.key & np.uint64(2**32 - 1)
    rest = np.column_stack([sample.weight, sample.part, high, low]).astype(np.float64)
    return {"sample_Phi": sample.Phi, "sample_Y": sample.Y, "sample_rest": rest}


def _read_sample(arrays: dict[str, Array]) -> RowSample | None:
    """The sample in the arrays, which are removed, None if there is none."""
    if "sample_rest" not in arrays:
        return None
    Phi, Y, rest = (arrays.pop(f"sample_{name}") for name in ("Phi", "Y", "rest"))
    if (
        Phi.ndim != 2
        or Y.ndim != 2
        or rest.shape != (len(Phi), Y.shape[1] + 3)
        or len(Y) != len(Phi)
    ):
        raise ValueError(
            f"a sample of shapes {Phi.shape}, {Y.shape} and {rest.shape} does not fit together"
        )
    weight, whole = rest[:, :-3], rest[:, -3:]
    part, high, low = whole.T
    if (rest < 0.0).any() or (whole != np.floor(whole)).any() or (whole >= 2.0**32).any():
        raise ValueError("weights, parts and keys of a sample must be numbers of their kind")
    key = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return RowSample(Phi, Y, np.array(weight), part.astype(np.intp), key)
