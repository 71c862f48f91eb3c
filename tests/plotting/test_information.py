import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge
from entangled_kernels.plotting import InformationDisplay
from entangled_kernels.plotting.relations import arranged


def groups(sizes, inside=0.7, between=0.05):
    """Information within and between groups of targets, shuffled, and the group of each."""
    group = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    information = np.where(group[:, None] == group, inside, between)
    np.fill_diagonal(information, 1.0)
    return information, group


def test_cells_are_the_information_in_the_order_shown(search):
    display = InformationDisplay.from_estimator(search)
    order = display.order_
    assert sorted(order) == [0, 1, 2]
    drawn = display.ax_.get_images()[0].get_array()
    expected = search.information_[np.ix_(order, order)]
    inside = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(np.asarray(drawn)[inside], expected[inside])
    assert drawn.mask.tolist() == np.eye(3, dtype=bool).tolist()
    written = [text.get_text() for text in display.ax_.texts]
    assert written == [f"{100 * value:.0f}" for value in expected[inside]]


def test_names_are_those_of_the_table(make_rows):
    X, Y = make_rows(20, 3, 2)
    frame = pd.DataFrame(Y, columns=["zinc", "tin"])
    display = InformationDisplay.from_estimator(EntangledKernelRidge().fit(X, frame))
    labels = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert (
        labels == [label.get_text() for label in display.ax_.get_yticklabels()] == ["zinc", "tin"]
    )
    model = GridSearchCV(EntangledKernelRidge(), {"alpha": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert InformationDisplay.from_estimator(model).names == ["output0", "output1"]
    assert InformationDisplay.from_estimator(model, names="ab").names == ["a", "b"]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_order_is_one_of_the_strongest(p, seed):
    R = np.corrcoef(np.random.default_rng(seed).normal(size=(p, p + 3))).reshape(p, p)
    information = (R**2 + R.T**2) / 2
    order = arranged(information, most=12)
    assert len(set(order.tolist())) == len(order) == min(p, 12)
    strength = np.where(np.eye(p, dtype=bool), 0.0, information).max(axis=1)
    left_out = np.setdiff1d(np.arange(p), order)
    assert strength[order].min() >= strength[left_out].max(initial=0.0)


def test_errors_name_the_argument(make_rows):
    with pytest.raises(
        ValueError, match=r"information must be a square matrix, got shape \(1, 2\)"
    ):
        InformationDisplay([[1.0, 0.5]])
    with pytest.raises(ValueError, match="names must be 2 names, one for each target, got 1"):
        InformationDisplay(np.eye(2), ["a"])
    X, Y = make_rows(20, 3, 2)
    with pytest.raises(TypeError, match="model must be an EntangledKernelRidge, or a search"):
        InformationDisplay.from_estimator(OutputKernelRidge().fit(X, Y))
