import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from entangled_kernels import (
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorValuedKernelRidge,
)
from entangled_kernels.kernels import DivergenceFreeKernel
from entangled_kernels.streams import BatchError


def whirl(X):
    """A field without divergence: the turned gradient of a stream function."""
    x, y = X.T
    return np.column_stack([np.cos(x) * np.cos(2 * y) * 2, np.sin(x) * np.sin(2 * y)])


def jacobians(model, X, step=1e-4):
    """Derivatives (n, outputs, inputs) by central differences."""
    return np.stack(
        [
            (model.predict(X + step * e) - model.predict(X - step * e)) / (2 * step)
            for e in np.eye(X.shape[1])
        ],
        axis=2,
    )


@pytest.mark.parametrize("kind", ["curl_free", "divergence_free"])
def test_fitted_fields_keep_the_law(kind, rng):
    """Divergence, or curl, at most 1e-6 of the size of the derivatives, whatever the data."""
    X, Y = rng.uniform(-2, 2, size=(80, 2)), rng.normal(size=(80, 2))
    features = OperatorFourierFeatures(kind, gamma=0.5, random_state=0)
    J = jacobians(
        OperatorFourierRidge(features, alpha=0.1).fit(X, Y), rng.uniform(-2, 2, size=(30, 2))
    )
    off = J[:, 0, 1] - J[:, 1, 0] if kind == "curl_free" else np.trace(J, axis1=1, axis2=2)
    assert np.abs(off).max() <= 1e-6 * np.abs(J).max()


@pytest.mark.slow
def test_the_right_law_helps(rng):
    """A noisy field without divergence: at most 0.75 of the error of features that do not know it."""
    errors = {}
    for kind in ("decomposable", "divergence_free", "curl_free"):
        total = 0.0
        for seed in range(5):
            draw = np.random.default_rng(seed)
            X, Z = draw.uniform(-2, 2, size=(120, 2)), draw.uniform(-2, 2, size=(300, 2))
            Y = whirl(X) + 0.3 * draw.normal(size=(120, 2))
            fits = [
                np.mean(
                    (
                        OperatorFourierRidge(
                            OperatorFourierFeatures(
                                kind, gamma=0.5, n_frequencies=200, random_state=seed
                            ),
                            alpha=alpha,
                        )
                        .fit(X, Y)
                        .predict(Z)
                        - whirl(Z)
                    )
                    ** 2
                )
                for alpha in (0.01, 0.1, 1.0, 10.0)
            ]
            total += min(fits)
        errors[kind] = total
    assert errors["divergence_free"] <= 0.75 * errors["decomposable"]
    assert errors["curl_free"] > 10 * errors["decomposable"]


def test_many_features_are_the_kernel(rng):
    X = rng.uniform(-1, 1, size=(30, 2))
    Y = whirl(X)
    features = OperatorFourierFeatures(
        "divergence_free", gamma=0.5, n_frequencies=1000, random_state=0
    )
    model = OperatorFourierRidge(features, alpha=0.3, fit_intercept=False).fit(X, Y)
    exact = OperatorValuedKernelRidge(DivergenceFreeKernel(2, gamma=0.5), alpha=0.3).fit(X, Y)
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.05 * np.abs(Y).max()


@pytest.mark.parametrize("kind", ["decomposable", "divergence_free", "transformable"])
def test_rows_in_batches(kind, rng):
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 3.0
    w = rng.integers(1, 4, size=60)
    model = OperatorFourierRidge(OperatorFourierFeatures(kind, random_state=0))
    whole = model.fit(X, Y, w).predict(X)
    streamed = OperatorFourierRidge(OperatorFourierFeatures(kind, random_state=0))
    for part in (slice(10), slice(10, 45), slice(45, 60)):
        streamed.partial_fit(X[part], Y[part], w[part])
    np.testing.assert_allclose(streamed.predict(X), whole, atol=1e-8)
    assert streamed.n_samples_seen_ == 60
    again = model.fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0)).predict(X)
    np.testing.assert_allclose(again, whole, atol=1e-8)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(streamed)).predict(X), streamed.predict(X)
    )


@pytest.mark.parametrize("kind", ["decomposable", "curl_free"])
def test_batches_and_dask_are_fit(kind, rng):
    """The same model from batches, empty ones among them, and from Dask arrays and frames."""
    X, Y, w = (
        rng.normal(size=(90, 2)),
        rng.normal(size=(90, 2)) + 3.0,
        rng.uniform(0.5, 2.0, size=90),
    )
    model = OperatorFourierRidge(OperatorFourierFeatures(kind, random_state=0))
    whole, plain = clone(model).fit(X, Y, w), clone(model).fit(X, Y)
    parts, seen = [slice(20), slice(20, 20), slice(20, 75), slice(75, 90)], []
    found = clone(model).fit_batches(((X[i], Y[i], w[i]) for i in parts), progress=seen.append)
    assert len(seen) == 4
    table = pd.DataFrame(np.hstack([X, Y]), columns=["a", "b", "u", "v"])
    named = clone(model).fit_batches([table[:40], table[40:]], targets=["u", "v"])
    assert list(named.target_names_) == ["u", "v"]
    chunks = da.from_array(X, chunks=(25, 1))
    lazy = clone(model).fit(chunks, da.from_array(Y, chunks=(30, 2)), da.from_array(w, chunks=90))
    frame = dd.from_pandas(table, npartitions=4)
    rest = clone(model).fit(frame[["a", "b"]], frame[["u", "v"]])
    for other, expected in ((found, whole), (lazy, whole), (named, plain), (rest, plain)):
        np.testing.assert_allclose(other.coef_, expected.coef_, atol=1e-9)
        np.testing.assert_allclose(other.intercept_, expected.intercept_, atol=1e-9)
        assert other.n_samples_seen_ == 90
    predicted = lazy.predict(chunks)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), whole.predict(X), atol=1e-9)
    more = clone(model).fit_batches([(X[:50], Y[:50])]).partial_fit(X[50:], Y[50:])
    np.testing.assert_allclose(more.coef_, plain.coef_, atol=1e-9)


def test_batches_that_are_refused(rng):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    model = OperatorFourierRidge().fit(X, Y)
    with pytest.raises(BatchError, match=r"batch [12].*: y must have 2 columns as before, got 1"):
        model.fit_batches([(X, Y), (X, Y[:, :1])])
    with pytest.raises(NotFittedError):
        model.predict(X)
    for empty in ([], [(X[:0], Y[:0])]):
        with pytest.raises(ValueError, match="batches must hold at least one row, got none"):
            model.fit_batches(empty)
    bad = np.where(np.arange(40).reshape(20, 2) == 33, np.nan, X)
    lazy, targets = da.from_array(bad, chunks=(5, 2)), da.from_array(Y, chunks=(5, 2))
    with pytest.raises(BatchError, match="partition 3: Input X contains NaN"):
        OperatorFourierRidge().fit(lazy, targets)
    with pytest.raises(BatchError, match="partition 0: y must have 2 columns for features"):
        OperatorFourierRidge(OperatorFourierFeatures("curl_free")).fit(lazy, targets[:, :1])
    with pytest.raises(ValueError, match="X must hold at least one row, got none"):
        OperatorFourierRidge().fit(lazy[:0], targets[:0])
