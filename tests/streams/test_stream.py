import pickle

import numpy as np
import pytest
from entangled_kernels.streams.stream import FeatureBlocks, Rows, Stream
from sklearn import config_context

from entangled_kernels.learning import Moments
from entangled_kernels.streams import stream as module


@pytest.fixture
def rows(make_rows, rng):
    X, Y = make_rows(50, 3, 2)
    return Rows(X, Y, rng.uniform(0.5, 2.0, size=50), rng.integers(0, 3, size=50))


PLAIN = FeatureBlocks(None)


def assert_same(stream, rows):
    for number, part in enumerate(stream.parts):
        own = np.flatnonzero(rows.part == number)
        expected = Moments.from_arrays(rows.X[own], rows.Y[own], rows.weight[own])
        assert part.allclose(expected)


def test_parts_take_their_own_rows(rows):
    stream = Stream(2, [None] * 3)
    for index in np.array_split(np.arange(50), 7):
        stream.take(rows.some(index), PLAIN)
    assert stream.n_rows == 50
    assert_same(stream, rows)
    np.testing.assert_array_equal(stream.probe, rows.X[: len(stream.probe)])


def test_streams_of_parts_of_the_rows_are_merged(rows):
    streams = [Stream(2, [None] * 3) for _ in range(4)]
    for stream, index in zip(streams, np.array_split(np.arange(50), 4), strict=True):
        stream.take(rows.some(index), PLAIN)
    merged = Stream.merged(streams)
    assert (merged.n_rows, streams[0].n_rows) == (50, 13)
    assert_same(merged, rows)


def test_blocks_of_features_take_no_more_than_the_memory(rows, monkeypatch):
    monkeypatch.setattr(module, "FIRST_BLOCK", 7)
    seen = []

    def transform(X):
        seen.append(len(X))
        return np.hstack([X, X**2])

    stream = Stream(2, [None] * 3)
    with config_context(working_memory=16 * 6 * 11 / 2**20):
        stream.take(rows, FeatureBlocks(transform))
    assert seen == [7, 11, 11, 11, 10]
    assert_same(stream, rows._replace(X=np.hstack([rows.X, rows.X**2])))


def test_rows_of_no_weight_only_count(rows):
    weight = rows.weight.copy()
    weight[10:20] = 0.0
    stream, kept = Stream(2, [None] * 3), np.r_[:10, 20:50]
    stream.take(rows._replace(weight=weight), PLAIN)
    assert stream.n_rows == 50
    assert_same(stream, rows.some(kept))


def test_all_rows_or_none(rows, monkeypatch):
    monkeypatch.setattr(module, "FIRST_BLOCK", 7)
    stream = Stream(2, [None] * 3)
    stream.take(rows, PLAIN)
    before, blocks = list(stream.parts), []

    def fail_at_the_second(X):
        blocks.append(len(X))
        if len(blocks) == 2:
            raise ValueError("no features")
        return X

    with config_context(working_memory=16 * 3 * 4 / 2**20), pytest.raises(ValueError, match="no features"):
        stream.take(rows, FeatureBlocks(fail_at_the_second))
    assert len(blocks) == 2
    assert stream.n_rows == 50
    assert all(one is other for one, other in zip(stream.parts, before, strict=True))


def test_merging_is_taking_both(rows):
    one, other = Stream(2, [None] * 3), Stream(2, [None] * 3)
    one.take(rows.some(np.arange(20)), PLAIN)
    other.take(rows.some(np.arange(20, 50)), PLAIN)
    one.merge(other)
    assert one.n_rows == 50
    assert_same(one, rows)
    assert one.blank().n_rows == 0
    other.wait(rows)
    with pytest.raises(ValueError, match="wait for a feature map"):
        one.merge(other)


def test_rows_that_wait_are_copies(rows):
    stream = Stream(2, [None] * 3)
    X = rows.X.copy()
    stream.wait(rows._replace(X=X))
    X[:] = 0.0
    np.testing.assert_array_equal(stream.waiting[0].X, rows.X)
    assert stream.n_waiting == stream.n_rows == 50


def test_a_lock_is_not_pickled(rows):
    stream = Stream(2, [None] * 3)
    stream.take(rows, PLAIN)
    again = pickle.loads(pickle.dumps(stream))
    assert again.lock is not stream.lock
    with again.lock:
        assert_same(again, rows)


def test_forgetting_scales_all_that_is_kept(make_rows):
    X, Y = make_rows(12, 3, 2)
    blocks = FeatureBlocks(None)
    key = np.arange(12, dtype=np.uint64)
    faded, weighted = (Stream(2, [None]) for _ in range(2))
    faded.take(Rows(X[:8], Y[:8], key=key[:8]), blocks)
    faded.take(Rows(X[8:], Y[8:], key=key[8:]), blocks, 0.5)
    weighted.take(Rows(X, Y, np.repeat([0.5, 1.0], [8, 4]), key=key), blocks)
    assert faded.parts[0].allclose(weighted.parts[0])
    np.testing.assert_array_equal(faded.sample.weight, weighted.sample.weight)
    waits = Stream(2, [None])
    waits.wait(Rows(X[:3], Y[:3]))
    waits.wait(Rows(X[3:5], Y[3:5], np.full((2, 2), 2.0)))
    waits.forget(0.5)
    np.testing.assert_array_equal(waits.waiting[0].weight, [0.5] * 3)
    np.testing.assert_array_equal(waits.waiting[1].weight, np.ones((2, 2)))


def test_parts_without_rows_do_not_shift_the_sample(rows):
    """Rows that were drawn are found with the moments of their own part."""
    rows = rows._replace(part=np.where(rows.part == 1, 4, rows.part), key=np.arange(50, dtype=np.uint64))
    stream = Stream(2, [None] * 5, grouped=True)
    assert stream.numbered_sample() is None
    stream.take(rows, PLAIN)
    assert [part is None for part in stream.parts] == [False, True, False, True, False]
    sample = stream.numbered_sample()
    assert set(sample.part) == {0, 1, 2}
    for number, moments in enumerate(stream.moments()):
        assert np.sum(sample.part == number) == moments.n_samples
    assert stream.blank().grouped
