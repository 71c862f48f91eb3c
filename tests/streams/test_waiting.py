import numpy as np
import pandas as pd
import pytest
from entangled_kernels.streams.stream import FeatureBlocks, Rows, Stream
from entangled_kernels.streams.waiting import missing_cell, settle, wait_for_map
from sklearn.preprocessing import StandardScaler

from entangled_kernels.streams import waiting


def fit_map(rows):
    """A scaler that does not let missing values through."""
    if np.isnan(rows.X).any():
        raise ValueError("no missing values, please")
    return StandardScaler().fit(rows.X, sample_weight=rows.weight)


def make_blocks(feature_map):
    return FeatureBlocks(feature_map.transform)


@pytest.fixture
def stream(make_rows):
    X, Y = make_rows(30, 3, 2)
    stream = Stream(2, [None])
    for start in range(0, 30, 10):
        assert not wait_for_map(stream, Rows(X[start : start + 10], Y[start : start + 10]))
    return stream


def spoil(stream, place):
    stream.waiting[place].X[0, 0] = np.nan


def test_enough_rows_are_told(stream, monkeypatch):
    monkeypatch.setattr(waiting, "FEATURE_SAMPLE", 40)
    assert wait_for_map(stream, stream.waiting[0])
    assert stream.n_waiting == stream.n_rows == 40


def test_all_that_waits_is_taken_in(stream, monkeypatch):
    monkeypatch.setattr(waiting, "FEATURE_SAMPLE", 15)
    X = np.concatenate([rows.X for rows in stream.waiting])
    feature_map = settle(stream, fit_map, make_blocks)
    np.testing.assert_allclose(feature_map.mean_, X[:15].mean(axis=0))
    assert not stream.waiting
    assert stream.n_rows == stream.moments()[0].n_samples == 30


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_batch_that_stands_in_the_way_is_left_out(stream, place):
    spoil(stream, place)
    message = rf"rows {10 * place + 1} to {10 * place + 10}: .* left out: no missing values"
    with pytest.raises(ValueError, match=message):
        settle(stream, fit_map, make_blocks)
    assert stream.n_rows == stream.n_waiting == 20
    assert stream.moments() == []
    assert settle(stream, fit_map, make_blocks).n_samples_seen_ == 20


def test_the_newest_batch_is_refused_as_it_comes(stream):
    spoil(stream, 2)
    with pytest.raises(ValueError, match=r"^no missing values, please$"):
        settle(stream, fit_map, make_blocks, newest_on_trial=True)
    assert stream.n_waiting == 20


def test_no_batch_alone_is_to_blame(stream):
    for place in (0, 1):
        spoil(stream, place)
    with pytest.raises(ValueError, match="no missing values"):
        settle(stream, fit_map, make_blocks)
    assert stream.n_waiting == stream.n_rows == 30
    with pytest.raises(ValueError, match="no missing values"):
        settle(stream, fit_map, make_blocks, newest_on_trial=True)
    assert stream.n_waiting == stream.n_rows == 20


def test_rows_that_the_fitted_map_refuses_are_left_out(stream):
    def picky_blocks(feature_map):
        def transform(X):
            if X[0, 0] == first:
                raise ValueError("not this one")
            return feature_map.transform(X)

        return FeatureBlocks(transform)

    first = stream.waiting[1].X[0, 0]
    with pytest.raises(ValueError, match=r"rows 11 to 20: .* left out: not this one"):
        settle(stream, fit_map, picky_blocks)
    assert stream.n_waiting == 20


def test_an_error_of_another_kind_changes_nothing(stream):
    def interrupted(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        settle(stream, interrupted, make_blocks)
    assert stream.n_waiting == 30


def test_the_first_missing_cell_is_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]})
    assert missing_cell(frame) == "; the first missing value is in row 2 of them, column 'b'"
    assert missing_cell(np.array([[np.nan]]), frame[["a"]], None) == ""
