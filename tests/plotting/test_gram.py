import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, OperatorValuedKernelRidge
from entangled_kernels.kernels import KrausKernel, SeparableKernel
from entangled_kernels.plotting import GramDisplay


def image(ax):
    return np.asarray(ax.get_images()[0].get_array())


def lines(ax):
    return sorted(
        line.get_xdata()[0] for line in ax.get_lines() if line.get_xdata()[0] == line.get_xdata()[1]
    )


def test_draws_the_kernel_sorted_by_class_with_lines_between(model, digits):
    X, labels = digits[:2]
    display = GramDisplay.from_estimator(model, X, labels)
    order = np.argsort(labels, kind="stable")
    G = model.kernel_(X[order]).to_dense()
    np.testing.assert_allclose(image(display.axes_[0]), G, atol=1e-12)
    counts = np.bincount(labels)
    assert lines(display.axes_[0]) == [3 * counts[0] - 0.5, 3 * (counts[0] + counts[1]) - 0.5]
    assert [tick.get_text() for tick in display.axes_[0].get_xticklabels()] == ["0", "1", "2"]


def test_enlarged_blocks_are_blocks_of_the_kernel(model, digits):
    X = digits[0]
    display = GramDisplay.from_estimator(model, X, zoom=[(1, 4), (2, 2)])
    blocks = model.kernel_.blocks(X)
    assert len(display.axes_) == 3
    np.testing.assert_allclose(image(display.axes_[1]), blocks[1, 4], atol=1e-12)
    np.testing.assert_allclose(image(display.axes_[2]), blocks[2, 2], atol=1e-12)
    assert [ax.get_title() for ax in display.axes_[1:]] == ["a  samples 1 and 4", "b  sample 2"]


def test_data_frames_reach_the_feature_map_with_their_names(make_rows):
    X, Y = make_rows(12, 3, 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = EntangledKernelRidge(StandardScaler()).fit(frame, pd.DataFrame(Y, columns=["y", "z"]))
    display = GramDisplay.from_estimator(model, frame)
    np.testing.assert_allclose(
        display.gram,
        KrausKernel(model.kraus_, metric=model.metric_)(
            StandardScaler().fit_transform(X)
        ).to_dense(),
        atol=1e-10,
    )
    assert display.names == ["y", "z"]


def test_kernels_that_were_not_learned(make_rows):
    X, Y = make_rows(6, 3, 2)
    kernel = SeparableKernel("rbf", np.array([[2.0, 1.0], [1.0, 2.0]]))
    model = OperatorValuedKernelRidge(kernel).fit(X, Y)
    np.testing.assert_allclose(GramDisplay.from_estimator(model, X).gram, kernel(X).to_dense())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gram": np.eye(4)}, "n_outputs is needed"),
        ({"gram": np.eye(4), "n_outputs": 3}, "n_outputs must divide the size of gram, 4, got 3"),
        ({"gram": np.ones((4, 2)), "n_outputs": 2}, "gram must have shape"),
        ({"gram": np.ones((2, 2, 3, 3)), "n_outputs": 2}, "n_outputs is 2, but the blocks have 3"),
        ({"gram": np.eye(4), "n_outputs": 2, "labels": [1]}, "labels must have shape"),
        ({"gram": np.eye(4), "n_outputs": 2, "names": ["a"]}, "names must hold 2 names"),
        (
            {"gram": np.eye(4), "n_outputs": 2, "zoom": [(0, 2)]},
            "zoom must be pairs of samples from 0 to 1",
        ),
        ({"gram": np.eye(4), "n_outputs": 2, "zoom": "all"}, "zoom must be 'auto', None or pairs"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        GramDisplay(**arguments)


def test_errors_of_from_estimator(model, digits):
    X, labels = digits[:2]
    with pytest.raises(ValueError, match="y must have 15 samples as X has, got 14"):
        GramDisplay.from_estimator(model, X, labels[:-1])
    with pytest.raises(ValueError, match="y must hold one label per sample"):
        GramDisplay.from_estimator(model, X, np.ones((15, 3)))
