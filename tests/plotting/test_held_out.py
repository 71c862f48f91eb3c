import numpy as np

from entangled_kernels.uncertainty import HeldOut
from entangled_kernels.plotting import HeldOutDisplay


def made(n):
    measured = np.random.default_rng(0).normal(size=(n, 2))
    predicted = measured + 0.1
    predicted[0, 1] += 5.0
    measured[1, 1] = np.nan
    return HeldOut(measured, predicted, predicted - 1.0, predicted + 1.0)


def test_rows_inside_and_outside_of_their_intervals_look_apart():
    display = HeldOutDisplay(made(20), 1, "zinc").plot()
    inside, outside, diagonal = display.ax_.lines
    assert (len(inside.get_xdata()), len(outside.get_xdata())) == (18, 1)
    assert display.ax_.get_title() == "zinc"
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert 1 not in display.rows_


def test_of_many_rows_some_are_drawn():
    assert len(HeldOutDisplay(made(5000)).rows_) == 300


def test_without_rows_there_is_nothing_to_draw():
    empty = HeldOut(*(np.full((3, 1), np.nan) for _ in range(4)))
    assert len(HeldOutDisplay(empty).plot().rows_) == 0
