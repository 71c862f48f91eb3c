import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.plotting.display import (
    class_labels,
    one_per_class,
    shortened,
)


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=20), low=st.integers(-2, 0))
def test_targets_of_labels_give_the_labels_back(labels, low):
    Y = np.where(np.array(labels)[:, None] == np.arange(5), 1, low)
    assert one_per_class(Y)
    assert list(class_labels(Y)) == labels
    names = ["a", "b", "c", "d", "e"]
    assert list(class_labels(Y, names)) == [names[label] for label in labels]


@pytest.mark.parametrize(
    "Y",
    [
        [[1, -1], [1, 1]],
        [[1, -1], [-1, -1]],
        [[1, 0], [0, 2]],
        [[1, 1], [1, 1]],
        [[1], [0]],
        [["yes", "no"], ["no", "yes"]],
        [[1.0, np.nan], [np.nan, 1.0]],
    ],
    ids=["two_high", "none_high", "three_values", "one_value", "one_column", "words", "missing"],
)
def test_other_targets_are_no_classes(Y):
    assert not one_per_class(np.array(Y))
    with pytest.raises(
        ValueError, match=r"y must hold one label per sample, .* got shape \(2, [12]\)"
    ):
        class_labels(Y)


@settings(max_examples=30)
@given(name=st.text("ab …é", max_size=30), length=st.integers(1, 20))
def test_shortened_names_are_no_longer_than_asked(name, length):
    short = shortened(name, length)
    assert len(short) <= length
    assert short == name or "…" in short
