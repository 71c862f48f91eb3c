"""Rows that come in batches: all or none are taken in, by part, faded or merged, and once a map is there."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from entangled_kernels.learning import Moments
from entangled_kernels.streams.row_stream import Rows, RowStream, first_missing_value


def no_map(rows):
    raise AssertionError("there is nothing to fit")


def scaler(rows):
    """A scaler that does not let missing values through."""
    if np.isnan(rows.X).any():
        raise ValueError("no missing values, please")
    return StandardScaler().fit(rows.X, sample_weight=rows.weight), None


@pytest.fixture
def rows(make_rows, rng):
    X, Y = make_rows(50, 3, 2)
    key = np.arange(50, dtype=np.uint64)
    return Rows(X, Y, rng.uniform(0.5, 2.0, size=50), rng.integers(0, 3, size=50), key=key)


def stream_of(rows, *indices, feature_map=None, forget=1.0):
    """A stream that has taken in some rows, in batches."""
    stream = RowStream(3, ready=True, feature_map=feature_map)
    for index in indices:
        stream.add(rows.select(index), no_map, forget)
    return stream


def assert_same(stream, rows):
    for number, part in stream.parts.items():
        some = np.flatnonzero(rows.part == number)
        assert part.allclose(Moments.from_arrays(rows.X[some], rows.Y[some], rows.weight[some]))


def test_parts_hold_their_rows_however_they_are_cut_and_merged(rows):
    cuts = np.array_split(np.arange(50), 7)
    stream = stream_of(rows, *cuts)
    merged = RowStream.merged([stream_of(rows, *cuts[:3]), stream_of(rows, *cuts[3:])])
    for one in (stream, merged, pickle.loads(pickle.dumps(stream))):
        assert one.n_rows == 50
        assert_same(one, rows)
        with one.lock:
            np.testing.assert_array_equal(one.probe, rows.X[: len(one.probe)])
    assert stream.without_rows().n_rows == 0


def test_rows_of_no_weight_only_count(rows):
    weight = np.where(np.arange(50) < 10, 0.0, rows.weight)
    stream = stream_of(rows._replace(weight=weight), slice(None))
    assert stream.n_rows == 50
    assert_same(stream, rows.select(np.arange(10, 50)))


def test_all_rows_or_none(rows):
    stream, before = stream_of(rows, slice(0, 20)), stream_of(rows, slice(0, 20))
    spoilt = rows._replace(X=np.where(np.arange(50)[:, None] == 40, 1e200, rows.X))
    for feature_map in (None, FunctionTransformer(np.asarray)):
        stream.feature_map = feature_map
        with pytest.raises(ValueError, match="values between"):
            stream.add(spoilt, no_map, 0.5)
    assert stream.n_rows == 20
    assert all(
        part.allclose(before.parts[number], rtol=0.0) for number, part in stream.parts.items()
    )
    np.testing.assert_array_equal(stream.sample.weight, before.sample.weight)


def test_forgetting_scales_all_that_is_kept(rows):
    faded = stream_of(rows, slice(0, 20), slice(20, 50), forget=0.5)
    weight = rows.weight * np.repeat([0.5, 1.0], [20, 30])
    assert_same(faded, rows._replace(weight=weight))
    np.testing.assert_array_equal(
        faded.sample.weight, stream_of(rows._replace(weight=weight), slice(None)).sample.weight
    )
    waits = RowStream()
    waits.add(Rows(rows.X[:3], rows.Y[:3]), scaler)
    waits.add(Rows(rows.X[3:5], rows.Y[3:5], np.full((2, 2), 2.0)), scaler, 0.5)
    waits.forget(0.5)
    np.testing.assert_array_equal(waits.waiting[0].weight, [0.25] * 3)
    np.testing.assert_array_equal(waits.waiting[1].weight, np.ones((2, 2)))


def test_parts_without_rows_do_not_shift_the_sample(rows):
    """Rows that were drawn are numbered as the moments of their part."""
    rows = rows._replace(part=np.where(rows.part == 1, 4, rows.part))
    stream = RowStream(5, ready=True, grouped=True)
    assert stream.summary() == ([], None)
    stream.add(rows, no_map)
    assert sorted(stream.parts) == [0, 2, 4]
    parts, sample = stream.summary()
    for number, moments in enumerate(parts):
        assert np.sum(sample.part == number) == moments.n_samples
    assert stream.without_rows().grouped


@pytest.fixture
def waiting(rows):
    """A stream of three batches of ten rows that wait for a map."""
    stream = RowStream(3)
    for start in range(0, 30, 10):
        stream.add(rows.select(slice(start, start + 10)), scaler)
    return stream


def spoil(stream, number):
    stream.waiting[number].X[0, 0] = np.nan


def test_rows_wait_as_copies_until_there_is_a_map(waiting, rows):
    other = stream_of(rows, slice(0, 20))
    with pytest.raises(ValueError, match="wait for a feature map"):
        other.merge(waiting)
    X = rows.X.copy()
    rows.X[:] = 0.0
    waiting.finish_waiting(scaler)
    np.testing.assert_allclose(
        waiting.feature_map.mean_, np.average(X[:30], axis=0, weights=rows.weight[:30])
    )
    assert not waiting.waiting
    assert waiting.n_rows == sum(part.n_samples for part in waiting.parts.values()) == 30


def test_if_several_batches_spoil_the_map_none_is_left_out(waiting, rows):
    for number in (0, 1):
        spoil(waiting, number)
    for newest in (None, rows.select(slice(30, 40))):
        with pytest.raises(ValueError, match="no missing values"):
            waiting.finish_waiting(scaler, newest)
        assert waiting.n_rows == 30


def test_an_interruption_changes_nothing(waiting):
    def interrupted(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.finish_waiting(interrupted)
    assert waiting.n_rows == sum(len(rows.Y) for rows in waiting.waiting) == 30


def test_the_first_missing_value_is_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]})
    assert first_missing_value(frame) == "; the first missing value is in row 2 of them, column 'b'"
    assert first_missing_value(np.array([[np.nan]]), frame[["a"]], None) == ""
