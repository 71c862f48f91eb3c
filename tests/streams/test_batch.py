"""Batches: where they come from, and their checksums."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from entangled_kernels.streams.batch import Batch, Position, Source, batch_checksum


def test_rows_are_counted_from_one():
    assert str(Source("a.csv", 0, 8)) == "a.csv, rows 1 to 8"


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        csr_array,
        lambda X: pd.DataFrame(X, columns=list("abc")),
        lambda X: pl.DataFrame(X, schema=list("abc")),
        lambda X: pd.DataFrame(np.where(X > 0, "yes", "no"), columns=list("abc")),
    ],
    ids=["array", "sparse", "pandas", "polars", "text"],
)
def test_a_checksum_sees_every_value(rng, make):
    X, y, weight = rng.normal(size=(5, 3)), rng.normal(size=5), np.ones(5)
    plain = batch_checksum(Batch(make(X), y, weight))
    assert plain == batch_checksum(Batch(make(X.copy()), y.copy(), weight.copy()))
    changed = X.copy()
    changed[4, 2] *= -1.0
    others = {
        batch_checksum(Batch(make(changed), y, weight)),
        batch_checksum(Batch(make(X), -y, weight)),
        batch_checksum(Batch(make(X), y, 2.0 * weight)),
        batch_checksum(Batch(make(X), y)),
        batch_checksum(Batch(make(X), y, weight), plain),
    }
    assert len(others | {plain}) == 6


def test_how_memory_is_laid_out_does_not_matter(rng):
    X, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    assert batch_checksum(Batch(X, y)) == batch_checksum(
        Batch(np.asfortranarray(X), np.asfortranarray(y))
    )


def test_checksums_begin_anew_with_every_file():
    X, y = np.ones((2, 1)), np.ones(2)
    start = Position().after(Batch(X, y, None, Source("a", 0, 2)), with_checksum=True)
    same = start.after(Batch(X, y, None, Source("b", 0, 2)), with_checksum=True)
    more = start.after(Batch(X, y, None, Source("a", 2, 4)), with_checksum=True)
    assert same.checksum == start.checksum != more.checksum
