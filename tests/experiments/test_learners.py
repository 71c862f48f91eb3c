import numpy as np
import pytest
from sklearn.datasets import load_linnerud

from entangled_kernels.experiments import LEARNERS, compare_methods
from entangled_kernels.experiments.learners import build_learner
from entangled_kernels.experiments.protocol import folds_of


@pytest.mark.parametrize(("features", "names"), [("linear", tuple(LEARNERS)), ("rbf", ("OKL-trace", "MKL"))])
def test_every_learner_is_compared(features, names):
    X, Y = load_linnerud(return_X_y=True)
    found = compare_methods(X, Y, methods=("KRR", *names), train_sizes=(8,), repeats=1, features=features)
    assert [record["method"] for record in found.records] == ["KRR", *names]
    assert all(np.isfinite(record["nmse"]) for record in found.records)
    assert found.meta["methods"]["MKL"] == LEARNERS["MKL"]


def test_groups_are_those_of_the_kernels(rng):
    X, Y = rng.normal(size=(20, 4)), rng.normal(size=(20, 2))
    folds = folds_of(20, 0)
    groups = {"first": [0, 1, 2], "last": [3]}
    for method in ("MKL", "MVML"):
        model = build_learner(method, X, "linear", groups, folds, 0, fit_intercept=True).fit(X, Y)
        inner = model.best_estimator_
        assert getattr(inner, "kernel_names_", getattr(inner, "view_names_", None)) == list(groups)
        assert [list(columns) for columns in inner._columns] == list(groups.values())
    alone = build_learner("MKL", X, "rbf", None, folds, 0, fit_intercept=False)
    assert [columns for _, _, columns in alone.estimator.kernels] == [[0], [1], [2], [3]]
    assert alone.estimator.fit_intercept is False


def test_penalties_are_balls():
    model = build_learner("OKL-trace", np.zeros((9, 2)), "rbf", None, folds_of(9, 0), 0, fit_intercept=True)
    assert (model.penalty, model.constraint, model.kernel) == ("trace", True, "linear")
