import io
import struct

import numpy as np
import pytest

from entangled_kernels.files import read_sealed, write_sealed
from entangled_kernels.learning.moments import Moments, RowSample
from entangled_kernels.streams.checkpoints import (
    FORMAT,
    Checkpoint,
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
)


@pytest.fixture
def parts(make_rows, rng):
    return [Moments.from_arrays(*make_rows(n, 3, 2), rng.uniform(size=n)) for n in (20, 30)]


def test_the_same_comes_back(tmp_path, parts):
    facts = {"place": {"file": "ü.csv", "start": 3}, "done": 7, "none": None}
    write_checkpoint(
        tmp_path / "state", Checkpoint(parts, facts, {"probe": np.arange(6.0).reshape(2, 3)})
    )
    again = read_checkpoint(tmp_path / "state")
    assert again.facts == facts
    np.testing.assert_array_equal(again.arrays["probe"], np.arange(6.0).reshape(2, 3))
    for one, other in zip(again.parts, parts, strict=True):
        assert (one.n_samples, one.weight, one.n_features) == (
            other.n_samples,
            other.weight,
            other.n_features,
        )
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.scatter, other.scatter)


@pytest.fixture
def missing(make_rows, rng):
    """Moments of rows with missing targets, and a sample of them."""
    X, Y = make_rows(25, 3, 4)
    weight = (rng.random((25, 4)) > 0.4).astype(float)
    weight[:2] = 1.0
    keys = rng.integers(0, 2**64, size=25, dtype=np.uint64)
    holes = np.where(weight > 0, Y, np.nan)
    sample = RowSample.of(X, holes, keys, weight, np.arange(25) % 3)
    return Moments.from_arrays(X, Y, weight), sample


def test_groups_of_targets_and_samples_come_back(tmp_path, parts, missing):
    moments, sample = missing
    write_checkpoint(tmp_path / "state", Checkpoint([parts[0], moments], {}, {}, sample))
    again = read_checkpoint(tmp_path / "state")
    np.testing.assert_array_equal(again.parts[0].scatter, parts[0].scatter)
    np.testing.assert_array_equal(again.parts[1].rows.scatter, moments.rows.scatter)
    for (places, one), (expected, other) in zip(again.parts[1].groups, moments.groups, strict=True):
        np.testing.assert_array_equal(places, expected)
        np.testing.assert_array_equal(one.scatter, other.scatter)
    for name in ("Phi", "Y", "weight", "part", "key"):
        np.testing.assert_array_equal(getattr(again.sample, name), getattr(sample, name))
        assert getattr(again.sample, name).dtype == getattr(sample, name).dtype


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(groups=[[[0, 1], [1, 2, 3]]]),
        lambda header, arrays: header.update(groups=[[[0, 1, 2, 3]]]),
        lambda header, arrays: header.update(groups=[None]),
        lambda header, arrays: header.update(groups=[[["a"]]]),
        lambda header, arrays: header.update(groups=7),
        lambda header, arrays: header.pop("groups"),
        lambda header, arrays: arrays.update(sample_Y=arrays["sample_Y"][:3]),
        lambda header, arrays: arrays.update(sample_rest=arrays["sample_rest"] + 0.5),
        lambda header, arrays: arrays.update(sample_rest=-arrays["sample_rest"]),
        lambda header, arrays: arrays.update(sample_Phi=arrays["sample_Phi"] * np.inf),
        lambda header, arrays: arrays.pop("sample_Y"),
    ],
)
def test_crafted_groups_and_samples_are_refused(tmp_path, missing, change):
    path = tmp_path / "state"
    write_checkpoint(path, Checkpoint([missing[0]], {}, {}, missing[1]))
    header, payload = read_sealed(path, "checkpoint", FORMAT, CheckpointError)
    with np.load(io.BytesIO(payload)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    change(header, arrays)
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_sealed(path, "checkpoint", header, content.getbuffer())
    with pytest.raises(CheckpointError, match="is not a checkpoint of a fit"):
        read_checkpoint(path)


def test_any_damage_is_noticed(tmp_path, parts):
    path = tmp_path / "state"
    write_checkpoint(path, Checkpoint(parts, {}))
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="state is"):
            read_checkpoint(path)
    path.write_bytes(content[:-1])
    with pytest.raises(CheckpointError, match="is damaged"):
        read_checkpoint(path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="is empty, not a checkpoint"):
        read_checkpoint(path)


def crafted(path, parts, change_header=None, change_arrays=None, savez=np.savez):
    """A checkpoint with a right seal and wrong contents."""
    write_checkpoint(path, Checkpoint(parts, {}))
    header, payload = read_sealed(path, "checkpoint", FORMAT, CheckpointError)
    arrays = dict(np.load(io.BytesIO(payload)))
    if change_header is not None:
        change_header(header)
    if change_arrays is not None:
        change_arrays(arrays)
    content = io.BytesIO()
    savez(content, **arrays)
    write_sealed(path, "checkpoint", header, content.getvalue())


@pytest.mark.parametrize(
    ("change_header", "change_arrays"),
    [
        (None, lambda arrays: arrays["scatter_0"].__setitem__((0, 0), np.nan)),
        (None, lambda arrays: arrays["mean_1"].__setitem__(0, np.inf)),
        (None, lambda arrays: arrays.pop("mean_0")),
        (None, lambda arrays: arrays.update(mean_0=arrays["mean_0"][:-1])),
        (None, lambda arrays: arrays.update(mean_0=arrays["mean_0"].astype(str))),
        (None, lambda arrays: arrays.update(scatter_0=arrays["scatter_0"][0])),
        (lambda header: header.pop("facts"), None),
        (lambda header: header.update(facts=[1]), None),
        (lambda header: header.update(parts=3), None),
        (lambda header: header.update(parts=[3]), None),
        (lambda header: header["parts"][0].update(n_features=-1), None),
        (lambda header: header["parts"][0].update(n_features=99), None),
        (lambda header: header["parts"][0].update(n_samples=True), None),
        (lambda header: header["parts"][0].update(n_samples=10**400), None),
        (lambda header: header["parts"][0].update(weight=10**400), None),
        (lambda header: header["parts"][0].update(weight="1"), None),
        (lambda header: header["parts"][0].update(weight=-1.0), None),
        (lambda header: header["parts"][0].update(other=1), None),
    ],
)
def test_a_crafted_checkpoint_is_refused(tmp_path, parts, change_header, change_arrays):
    crafted(tmp_path / "state", parts, change_header, change_arrays)
    with pytest.raises(CheckpointError, match="is not a checkpoint of a fit"):
        read_checkpoint(tmp_path / "state")


def test_a_checkpoint_does_not_expand(tmp_path, parts):
    crafted(tmp_path / "state", parts)
    assert len(read_checkpoint(tmp_path / "state").parts) == 2
    crafted(tmp_path / "state", parts, savez=np.savez_compressed)
    with pytest.raises(CheckpointError, match="arrays must not be compressed"):
        read_checkpoint(tmp_path / "state")


def test_arrays_that_overlap_are_refused(tmp_path, parts):
    """Many entries of an archive may share their bytes, and would be read to the sum of their sizes."""
    write_checkpoint(tmp_path / "state", Checkpoint(parts, {}))
    header, payload = read_sealed(tmp_path / "state", "checkpoint", FORMAT, CheckpointError)
    directory = payload.index(b"PK\x01\x02")
    sizes = struct.pack("<II", len(payload), len(payload))  # as stored, and as they are
    overlapping = payload[: directory + 20] + sizes + payload[directory + 28 :]
    write_sealed(tmp_path / "state", "checkpoint", header, overlapping)
    with pytest.raises(CheckpointError, match="arrays must not overlap"):
        read_checkpoint(tmp_path / "state")


def test_a_checkpoint_without_an_archive_is_refused(tmp_path, parts):
    write_sealed(
        tmp_path / "state", "checkpoint", {"format": FORMAT, "facts": {}, "parts": []}, b"no zip"
    )
    with pytest.raises(CheckpointError, match="BadZipFile"):
        read_checkpoint(tmp_path / "state")
