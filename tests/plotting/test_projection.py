import numpy as np
import pytest
from matplotlib.colors import to_rgba
from sklearn.model_selection import GridSearchCV

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.plotting import ProjectionDisplay
from entangled_kernels.plotting.display import BLUE


def points(ax, *, own):
    """Places of the samples of the task's own class, or of the others; training samples last."""
    drawn = [c for c in ax.collections if (tuple(c.get_facecolors()[0]) == to_rgba(BLUE)) == own]
    return np.concatenate([np.asarray(collection.get_offsets()) for collection in drawn])


def test_every_sample_is_where_the_model_projects_it(model, digits):
    X_train, _, Y_train, X_test, labels_test, Y_test = digits
    labels_train = digits[1]
    display = ProjectionDisplay.from_estimator(model, X_train, Y_train, X_test, Y_test)
    Z_train, Z_test = model.project(X_train), model.project(X_test)
    assert len(display.axes_) == 3
    for task, ax in enumerate(display.axes_):
        for own in (True, False):
            expected = [
                Z_test[(labels_test == task) == own, task, :2],
                Z_train[(labels_train == task) == own, task, :2],
            ]
            np.testing.assert_allclose(points(ax, own=own), np.concatenate(expected))


def test_numbers_are_told_by_a_scale(make_rows):
    X, Y = make_rows(20, 5, 2)
    model = EntangledKernelRidge(rank=3).fit(X, Y)
    display = ProjectionDisplay.from_estimator(model, X, Y, names=["a", "b"], coordinates=(2, 0))
    assert not display.by_class
    for task, ax in enumerate(display.axes_):
        np.testing.assert_allclose(ax.collections[-1].get_array(), Y[:, task])
        np.testing.assert_allclose(
            ax.collections[-1].get_offsets(), model.project(X)[:, task, [2, 0]]
        )
    assert display.axes_[0].get_xlabel() == "Kraus operator 3"


def test_many_tasks_fill_several_rows(rng):
    display = ProjectionDisplay(rng.normal(size=(6, 7, 2)), rng.normal(size=(6, 7))).plot()
    assert len(display.axes_) == 7
    assert len({round(ax.get_position().y0, 3) for ax in display.axes_}) == 3


Z = np.zeros((4, 2, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((4, 2, 1)), [0, 1, 0, 1]), "Z_train must have shape .* rank=2 or more"),
        ((Z, [0, 1, 2, 0]), "y has 3 classes but there are 2 tasks"),
        ((Z, np.zeros((4, 3))), r"y must have shape \(n,\) or \(n, 2\)"),
        ((Z, [0, 1, 0]), "targets must be of 4 and 0 samples"),
        ((Z, [0, 1, 0, 1], Z), "Z_test and y_test belong together"),
        ((Z, [0, 1, 0, 1], np.zeros((4, 3, 2)), [0, 1, 0, 1]), "Z_test must have shape"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        ProjectionDisplay(*arguments)


def test_a_search_says_which_candidate_it_chose(make_rows):
    X, Y = make_rows(30, 4, 3)
    settings = {"cv": 2, "alphas": [1.0], "random_state": 0}
    plain = EntangledKernelRidgeCV(None, **settings, param_grid={"shrinkage": (1.0,)}).fit(X, Y)
    message = (
        r"the candidate that the search chose \(.*shrinkage=1.0.*\) has 0 coordinates.* rank=2"
    )
    with pytest.raises(ValueError, match=message):
        ProjectionDisplay.from_estimator(plain, X, Y)
    search = GridSearchCV(EntangledKernelRidge(rank=2), {"alpha": [1.0]}, cv=2).fit(X, Y)
    assert len(ProjectionDisplay.from_estimator(search, X, Y).axes_) == 3
