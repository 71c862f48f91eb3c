import numpy as np

from entangled_kernels.cli.words import information_in_words


def test_strongest_pairs_come_first():
    information = np.array([[1.0, 0.2, 0.61], [0.2, 1.0, 0.04], [0.61, 0.04, 1.0]])
    assert information_in_words(information, ["zinc", "tin", "cadmium"]) == [
        "Measuring 'zinc' removes 61% of the uncertainty of 'cadmium', and the other way round.",
        "Measuring 'zinc' removes 20% of the uncertainty of 'tin', and the other way round.",
    ]


def test_one_way_may_tell_more_than_the_other():
    said = information_in_words(np.array([[1.0, 0.2], [0.5, 1.0]]), ["zinc", "tin"])
    assert said == ["Measuring 'tin' removes 50% of the uncertainty of 'zinc'."]


def test_nothing_tells_anything():
    (said,) = information_in_words(np.array([[1.0, 0.01], [0.01, 1.0]]), ["zinc", "tin"])
    assert said.startswith("Nothing tells anything: ")
    assert "no more than 1%" in said


def test_one_target_and_models_that_do_not_know():
    assert information_in_words(np.ones((1, 1)), ["y"]) == [
        "There is one target, and no other that could tell about it."
    ]
    assert "Not known" in information_in_words(None, ["y", "z"])[0]
