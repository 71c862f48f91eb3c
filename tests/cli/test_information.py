import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge
from entangled_kernels.cli.models import information_of
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


@pytest.mark.parametrize(("p", "rest"), [(4, "1 further pair tells"), (5, "5 further pairs tell")])
def test_of_many_pairs_some_are_told(p, rest):
    said = information_in_words(np.full((p, p), 0.3), list("abcde")[:p])
    assert len(said) == 6
    assert said[-1] == f"{rest} less about each other, but at least 5%."


def test_nothing_tells_anything():
    (said,) = information_in_words(np.array([[1.0, 0.01], [0.01, 1.0]]), ["zinc", "tin"])
    assert said.startswith("Nothing tells anything: ")
    assert "no more than 1%" in said


def test_one_target_and_models_that_do_not_know():
    assert information_in_words(np.ones((1, 1)), ["y"]) == [
        "There is one target, and no other that could tell about it."
    ]
    assert "Not known" in information_in_words(None, ["y", "z"])[0]


def test_information_of_models(make_rows):
    X, Y = make_rows(20, 3, 2)
    model = EntangledKernelRidge().fit(X, Y)
    np.testing.assert_array_equal(information_of(model), model.information_)
    assert information_of(OutputKernelRidge().fit(X, Y)) is None

    class Uncalibrated:
        @property
        def information_(self):
            raise ValueError("no rows were kept to calibrate on")

    assert information_of(Uncalibrated()) is None
