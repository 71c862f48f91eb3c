from dataclasses import asdict

import numpy as np
import pytest
from entangled_kernels.streams.position import Position, remaining

from entangled_kernels.streams.batch import Batch, Source
from entangled_kernels.streams.checkpoints import CheckpointError


def batches(n):
    return [Batch(np.full((2, 1), float(i)), np.ones(2)) for i in range(n)]


def after(items):
    position = Position()
    for batch in items:
        position = position.after(batch, with_checksum=True)
    return position


def test_batches_are_counted_from_one():
    assert str(Position()) == "batch 1, after 0 rows"
    assert str(after(batches(2))) == "batch 3, after 4 rows"


def test_checksums_begin_anew_with_every_file():
    X, y = np.ones((2, 1)), np.ones(2)
    start = Position().after(Batch(X, y, None, Source("a", 0, 2)), with_checksum=True)
    same = start.after(Batch(X, y, None, Source("b", 0, 2)), with_checksum=True)
    assert same.checksum == start.checksum
    assert start.after(Batch(X, y, None, Source("a", 2, 4)), with_checksum=True).checksum != start.checksum
    assert Position().after(Batch(X, y), with_checksum=False).checksum == 0


def test_a_position_comes_back_from_plain_values():
    position = Position(3, 6, Source("a.csv", 4, 6), 77, {"b.csv": "cafe"})
    assert Position.read(asdict(position), "state") == position
    assert Position.read(asdict(Position()), "state") == Position()


PLAIN = asdict(Position())


@pytest.mark.parametrize("stored", [None, [], {}, {"done": 1}, PLAIN | {"done": True}, PLAIN | {"source": 3}])
def test_anything_else_is_refused(stored):
    with pytest.raises(CheckpointError, match="state is not a checkpoint of a fit"):
        Position.read(stored, "state")


def test_what_is_left_of_an_iterable():
    items, place = batches(5), after(batches(3))
    rest = list(remaining(items, iter(items), Position(), place, "state"))
    assert [batch.X[0, 0] for batch in rest] == [3.0, 4.0]
    # Some of them were taken already, to fit a feature map on.
    used = iter(items)
    seen = after([next(used)])
    assert [batch.X[0, 0] for batch in remaining(items, used, seen, place, "state")] == [3.0, 4.0]


def test_an_iterable_that_is_another():
    place = after(batches(3))
    with pytest.raises(CheckpointError, match=r"the first 3 batches held 6 rows .* and hold 4 now"):
        remaining(batches(2), iter(batches(2)), Position(), place, "state")
    other = [batch._replace(X=batch.X + 1.0) for batch in batches(4)]
    with pytest.raises(CheckpointError, match="the first 3 batches: the values are not those"):
        remaining(other, iter(other), Position(), place, "state")
