"""Handwritten digits as related tasks."""

import numpy as np
import pytest

from entangled_kernels.datasets import load_digit_tasks


def test_every_digit_is_a_task():
    digits = load_digit_tasks(3)
    assert digits.data.max() == 1.0
    assert (digits.target.argmax(axis=1) == digits.labels).all()
    assert set(np.unique(digits.target)) == {-1.0, 1.0}
    np.testing.assert_array_equal(digits.images.reshape(len(digits.data), -1), digits.data)
    X, Y = load_digit_tasks(3, as_frame=True, return_X_y=True)
    assert list(Y.columns) == ["is 0", "is 1", "is 2"]
    assert len(X) == len(Y)


def test_there_are_ten_digits():
    with pytest.raises(ValueError, match="n_digits must be from 2 to 10, got 11"):
        load_digit_tasks(11)
