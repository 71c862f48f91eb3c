"""Sizes, seeds and psd matrices for tests that draw their kernels."""

from hypothesis import strategies as st

sizes = st.integers(2, 4)
seeds = st.integers(0, 2**32 - 1)


def random_psd(rng, size, rank=None):
    B = rng.normal(size=(size, rank or size))
    return B @ B.T
