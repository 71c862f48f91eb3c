"""The first use of a stream: safe in threads, and never brought about by looking at the estimator."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV

GRID = {
    "alphas": np.logspace(-2, 2, 5),
    "param_grid": {"shrinkage": (0.0, 0.5), "target_alpha": (0.1,)},
}
PLAIN, SEARCH = EntangledKernelRidge(), EntangledKernelRidgeCV(None, cv=3, random_state=0, **GRID)
MAP = Nystroem(gamma=0.1, n_components=10, random_state=0)
N_THREADS = 4


def stream(model, X, Y, method):
    """The estimator after all rows were taken in."""
    batches = [(X[rows], Y[rows]) for rows in np.array_split(np.arange(len(X)), 5)]
    if method == "fit_batches":
        return model.fit_batches(batches)
    for batch in batches:
        model.partial_fit(*batch)
    return model


def first_predictions(model, X):
    """What threads that start together get from their first predict."""
    barrier = threading.Barrier(N_THREADS)

    def predict(_):
        barrier.wait()
        return model.predict(X)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(predict, range(N_THREADS)))


@pytest.mark.parametrize("method", ["partial_fit", "fit_batches"])
@pytest.mark.parametrize("feature_map", [None, MAP], ids=["columns", "Nystroem"])
@pytest.mark.parametrize("model", [PLAIN, SEARCH], ids=["plain", "search"])
def test_first_predict_from_several_threads(make_rows, model, feature_map, method):
    X, Y = make_rows(60, 3, 2)
    model = clone(model).set_params(feature_map=feature_map)
    expected = stream(clone(model), X, Y, method).solve().predict(X)
    for _ in range(10 if model.__class__ is EntangledKernelRidge else 3):
        own = stream(clone(model), X, Y, method)
        for found in first_predictions(own, X):
            np.testing.assert_array_equal(found, expected)
        assert own.n_samples_seen_ == 60
        np.testing.assert_array_equal(own.predict(X), expected)


def test_an_error_of_the_solve_reaches_every_thread_and_leaves_no_lock(make_rows):
    X, Y = make_rows(60, 3, 2)
    model = stream(EntangledKernelRidge(rank=50), X, Y, "partial_fit")
    with ThreadPoolExecutor(N_THREADS) as pool:
        calls = [pool.submit(model.predict, X) for _ in range(N_THREADS)]
        assert all("full rank 6" in str(call.exception()) for call in calls)
    assert model.set_params(rank=None).predict(X).shape == (60, 2)


@pytest.mark.parametrize("model", [PLAIN, SEARCH], ids=["plain", "search"])
@pytest.mark.parametrize("feature_map", [None, MAP], ids=["columns", "Nystroem"])
def test_looking_at_an_estimator_solves_nothing(make_rows, model, feature_map):
    X, Y = make_rows(60, 3, 2)
    model = stream(clone(model).set_params(feature_map=feature_map), X, Y, "partial_fit")
    repr(model)
    model._repr_html_()
    model._repr_mimebundle_()
    check_is_fitted(model)
    for name in dir(model):
        hasattr(model, name)
    assert not hasattr(model, "coef_")
    assert hasattr(model.solve(), "coef_")
    # Diagrams list fitted attributes since scikit-learn 1.9, and then ours too.
    listed = "coef_" in Ridge().fit(X, Y)._repr_html_()
    assert ("coef_" in model._repr_html_()) == listed
