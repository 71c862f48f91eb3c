"""What must not change a model: targets without weight, batches without any, interrupts, refused calls."""

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OperatorFourierFeatures,
    OperatorFourierRidge,
)
from entangled_kernels.learning import Moments


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(100, 3))
    return X, X @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(100, 2))


def nystroem():
    return Nystroem(n_components=20, random_state=0)


def test_a_row_of_weight_zero_may_have_some_targets_only(rng):
    X = rng.normal(size=(20, 3))
    Y = X @ rng.normal(size=(3, 60)) + 0.1 * rng.normal(size=(20, 60))
    weight = np.ones(20)
    Y[0, :30], weight[0] = np.nan, 0.0
    assert np.isfinite(
        EntangledKernelRidgeCV(None, random_state=0).fit(X, Y, weight).predict(X)
    ).all()


def test_a_batch_without_targets_leaves_the_range_of_the_inputs(rows):
    X, Y = rows
    model = EntangledKernelRidge(nystroem().fit(X)).partial_fit(X, Y)
    far = np.full((1, 3), 1e4)
    before = model.novelty(far)
    np.testing.assert_allclose(model.partial_fit(X, Y * np.nan).novelty(far), before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_while_solving_loses_no_batch(rows, monkeypatch, error):
    X, Y = rows
    model = EntangledKernelRidge(nystroem()).partial_fit(X[:50], Y[:50]).partial_fit(X[50:], Y[50:])

    def interrupted(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Moments, "from_arrays", interrupted)
        with pytest.raises(error):
            model.predict(X)
    whole = EntangledKernelRidge(nystroem()).partial_fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-8)
    assert model.n_samples_seen_ == 100


def test_a_refused_merge_fits_no_feature_map(rows):
    X, Y = rows
    one = EntangledKernelRidge(nystroem()).partial_fit(X[:50], Y[:50])
    other = EntangledKernelRidge(nystroem()).partial_fit(X[50:], Y[50:])
    with pytest.raises(ValueError, match="feature_map"):
        one.merge(other)
    whole = EntangledKernelRidge(nystroem()).partial_fit(X, Y)
    np.testing.assert_allclose(
        one.partial_fit(X[50:], Y[50:]).predict(X), whole.predict(X), rtol=1e-8
    )


def test_a_refused_first_batch_leaves_the_estimator_as_it_was(rows):
    X, Y = rows
    model = EntangledKernelRidge(target_transform="log")
    with pytest.raises(ValueError, match="target_transform"):
        model.fit_batches([(X, Y)])
    model.set_params(target_transform=None).partial_fit(X, Y[:, 0])
    assert model.predict(X).shape == (100,)


@pytest.mark.parametrize("left_out", ["weight", "target"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_rows_that_are_left_out_do_not_shape_the_feature_map(rows, method, left_out):
    X, Y = rows
    features = make_pipeline(StandardScaler(), nystroem())
    expected = EntangledKernelRidge(features).fit(X, Y)
    wide = np.vstack([X, np.full((1, 3), 1e4)]), np.vstack([Y, np.zeros((1, 2))])
    weight = np.append(np.ones(100), 0.0)
    if left_out == "target":
        wide[1][-1], weight = np.nan, None
    model = getattr(EntangledKernelRidge(features), method)(*wide, weight)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-7)
    assert model.n_samples_seen_ == 101


def test_rows_are_given_back_where_solving_fails(rng):
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    features = OperatorFourierFeatures(n_frequencies=20, random_state=0)
    model = OperatorFourierRidge(features).fit(X[:20], Y[:20])
    before = model.predict(X)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="alpha must be large enough"):
        model.partial_fit(X[20:], 1e308 * np.sign(Y[20:]))
    assert model.n_samples_seen_ == 20
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X[20:], Y[20:])
    whole = OperatorFourierRidge(features).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)
