import numpy as np
import pytest

from entangled_kernels.learning.moments import Moments
from entangled_kernels.streams.checkpoints import (
    Checkpoint,
    CheckpointError,
    read_checkpoint,
    remove_unfinished,
    write_checkpoint,
)


@pytest.fixture
def parts(make_rows, rng):
    return [Moments.from_arrays(*make_rows(n, 3, 2), rng.uniform(size=n)) for n in (20, 30)]


def test_the_same_comes_back(tmp_path, parts):
    facts = {"place": {"file": "ü.csv", "start": 3}, "done": 7, "none": None}
    write_checkpoint(tmp_path / "state", Checkpoint(parts, facts, {"probe": np.arange(6.0).reshape(2, 3)}))
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
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        read_checkpoint(path)


def test_only_what_belongs_to_it_is_removed(tmp_path):
    for name in (".state.abc.part", ".other.abc.part", "state", ".state2.abc.part"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path / "state")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".other.abc.part",
        ".state2.abc.part",
        "state",
    ]
