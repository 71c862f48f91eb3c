import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.learning import row_sample
from entangled_kernels.learning.row_sample import RowSample, sample_size


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**63, size=n).astype(np.uint64)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), keys, rng.uniform(0.5, 2.0, size=n)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 99), max_size=5))
def test_samples_of_parts_merge_to_that_of_the_whole(seed, cuts):
    Phi, Y, keys, weight = draw(100, seed)
    part = np.arange(100) % 4
    before = row_sample.MOST_ROWS
    row_sample.MOST_ROWS = 17
    try:
        whole = RowSample.of(Phi, Y, keys, weight, part)
        samples = [
            RowSample.of(Phi[rows], Y[rows], keys[rows], weight[rows], part[rows])
            for rows in np.split(np.random.default_rng(seed).permutation(100), sorted(set(cuts)))
        ]
        merged = samples[0]
        for sample in samples[1:]:
            merged = merged.merge(sample)
    finally:
        row_sample.MOST_ROWS = before
    for name in ("Phi", "Y", "weight", "part", "key"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    assert len(whole.Y) == 17
    np.testing.assert_array_equal(whole.key, np.sort(keys)[:17])


def test_rows_of_no_weight_are_not_taken():
    Phi, Y, keys, weight = draw(30)
    weight[::2] = 0.0
    sample = RowSample.of(Phi, Y, keys, weight)
    assert len(sample.Y) == 15
    assert set(map(tuple, sample.Y)) == set(map(tuple, Y[1::2]))


def test_sizes_are_bounded():
    assert sample_size(10) == row_sample.MOST_ROWS
    assert sample_size(2**14) == 256
    assert sample_size(10**7) == row_sample.FEWEST_ROWS


def test_cells_keep_their_weights():
    Phi, Y, keys, weight = draw(6)
    cells = np.column_stack([weight, 3.0 * weight])
    cells[0, 1] = cells[1] = 0.0
    Y[2, 0] = np.nan
    sample = RowSample.of(Phi, Y, keys, cells)
    order = np.argsort(keys)
    expected = np.where(np.isnan(Y), 0.0, cells)[order[order != 1]]
    np.testing.assert_array_equal(sample.weight, expected)
    np.testing.assert_array_equal(np.isnan(sample.Y), expected == 0.0)
    np.testing.assert_array_equal(sample.row_weight, expected.max(axis=1))


def test_rows_that_hardly_weigh_are_dropped():
    Phi, Y, key = np.arange(6.0)[:, None], np.ones((6, 1)), np.arange(6, dtype=np.uint64)
    sample = RowSample.of(Phi, Y, key, np.array([1.0, 1e-4, 0.5, 1e-2, 0.0, 2.0]))
    faded = sample.scaled(0.5)
    assert list(faded.Phi[:, 0]) == [0.0, 2.0, 3.0, 5.0]
    np.testing.assert_array_equal(faded.weight[:, 0], [0.5, 0.25, 0.005, 1.0])
