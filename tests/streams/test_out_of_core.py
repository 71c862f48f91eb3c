"""Where a pass over batches stands."""

from dataclasses import asdict

import numpy as np
import pytest

from entangled_kernels.streams.batch import Batch, Source
from entangled_kernels.streams.checkpoints import CheckpointError
from entangled_kernels.streams.out_of_core import Position

PLAIN = asdict(Position())


def test_batches_are_counted_from_one():
    position = Position()
    assert str(position) == "batch 1, after 0 rows"
    for _ in range(2):
        position = position.after(Batch(np.ones((2, 1)), np.ones(2)), with_checksum=False)
    assert str(position) == "batch 3, after 4 rows"
    assert position.checksum == 0


def test_checksums_begin_anew_with_every_file():
    X, y = np.ones((2, 1)), np.ones(2)
    start = Position().after(Batch(X, y, None, Source("a", 0, 2)), with_checksum=True)
    same = start.after(Batch(X, y, None, Source("b", 0, 2)), with_checksum=True)
    more = start.after(Batch(X, y, None, Source("a", 2, 4)), with_checksum=True)
    assert same.checksum == start.checksum != more.checksum


@pytest.mark.parametrize(
    "position", [Position(), Position(3, 6, Source("a", 4, 6), 77, {"b": "cafe"})]
)
def test_a_position_comes_back_from_plain_values(position):
    assert Position.read(asdict(position), "state") == position


@pytest.mark.parametrize(
    "stored", [None, [], {}, {"done": 1}, PLAIN | {"done": True}, PLAIN | {"source": 3}]
)
def test_anything_else_is_refused(stored):
    with pytest.raises(CheckpointError, match="state is not a checkpoint of a fit"):
        Position.read(stored, "state")
