"""Facts about a model in words."""

import numpy as np
import pytest

from entangled_kernels.cli.words import (
    change_in_words,
    sharing_in_words,
    strongest_pairs,
)


@pytest.mark.parametrize(
    ("error", "reference", "words"),
    [
        (0.5, 0.5, "the same error"),
        (0.4, 0.5, "20.0% less error"),
        (0.6, 0.5, "20.0% more error"),
        (5.5, 0.5, "11 times the error"),
        (1.8e-7, 1e-13, "1.8e+06 times the error"),
        (0.5, 0.0, "-"),
        (None, 0.5, "-"),
        (0.5, None, "-"),
    ],
)
def test_changes(error, reference, words):
    assert change_in_words(error, reference) == words


def test_words_for_what_is_shared():
    settings = {"shrinkage": 0.5, "prediction": "entangled"}
    correlations = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, -0.05], [0.0, -0.05, 1.0]])
    assert strongest_pairs(correlations, ["a", "b", "c"])[0] == ("a", "b", 0.9)
    words = sharing_in_words(settings, correlations, ["a", "b", "c"])
    assert words == [
        "'a' and 'b' strongly move together (correlation +0.90 in the kernel).",
        "'c' keeps to itself.",
    ]
    assert "move against each other" in sharing_in_words(settings, -correlations, ["a", "b", "c"])[0]
    assert "hardly relates" in sharing_in_words(settings, np.eye(3), ["a", "b", "c"])[0]
    assert "one target" in sharing_in_words(settings, np.eye(1), ["a"])[0]
    assert "Plain kernel ridge" in sharing_in_words(settings | {"shrinkage": 1.0}, None, ["a", "b"])[0]
    assert (
        "share one learned measure"
        in sharing_in_words(settings | {"prediction": "partial_trace"}, None, ["a", "b"])[0]
    )
    many = np.full((5, 5), 0.6) + 0.4 * np.eye(5)
    assert sharing_in_words(settings, many, list("abcde"))[-1].startswith("5 further pairs are")
    few = np.eye(4)
    few[:3, :3] = few[3, 0] = few[0, 3] = few[1, 3] = few[3, 1] = 0.6
    few[2, 3] = few[3, 2] = 0.2
    assert sharing_in_words(settings, few, list("abcd"))[-1].startswith("1 further pair is related")
