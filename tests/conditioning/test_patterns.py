import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.uncertainty import group_patterns, random_halves


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 20))
def test_every_row_is_in_the_group_of_its_pattern(seed, n, p):
    known = np.random.default_rng(seed).random((n, p)) < 0.5
    seen = []
    for rows, pattern in group_patterns(known):
        assert (known[rows] == pattern).all()
        seen += rows.tolist()
    assert sorted(seen) == list(range(n))
    assert len(list(group_patterns(known))) == len(np.unique(known, axis=0))


def test_no_rows_and_no_columns():
    assert list(group_patterns(np.zeros((0, 3), dtype=bool))) == []
    ((rows, pattern),) = group_patterns(np.zeros((4, 0), dtype=bool))
    assert (rows.tolist(), pattern.tolist()) == ([0, 1, 2, 3], [])


def test_halves_and_their_complements():
    masks = random_halves(7, 3, np.random.default_rng(0))
    assert len(masks) == 6
    for half, rest in zip(masks[::2], masks[1::2], strict=True):
        assert half.sum() == 3
        np.testing.assert_array_equal(half, ~rest)
