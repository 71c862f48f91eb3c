import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.learning import Moments
from entangled_kernels.streams import stream


@pytest.fixture
def blocks_of_ten(monkeypatch):
    monkeypatch.setattr(stream, "FIRST_BLOCK", 10)
    monkeypatch.setattr("entangled_kernels.estimators.training.FIRST_BLOCK", 10)


def test_moments_of_parts(make_rows, watched_features, blocks_of_ten, rng):
    X, Y = make_rows(60, 3, 2)
    features, seen = watched_features
    fitted = features.fit(X)
    weight = rng.uniform(0.5, 2.0, size=60)
    model = EntangledKernelRidge(features, max_memory=16 * 30 * 10)
    parts = [np.arange(0, 60, 2), np.arange(1, 60, 2)]
    found = model._moments_of_parts(fitted, X, Y, weight, parts)
    assert max(seen) == 10
    for part, moments in zip(parts, found, strict=True):
        assert moments.allclose(Moments.from_arrays(fitted.transform(X)[part], Y[part], weight[part]))
    with pytest.raises(ValueError, match="every fold needs rows of positive sample_weight"):
        model._moments_of_parts(fitted, X, Y, np.where(np.arange(60) % 2, 0.0, 1.0), parts)


@pytest.mark.parametrize(
    ("n", "max_memory", "exceeds"), [(60, 1e3, True), (60, 1e6, False), (10, 1e3, False), (31, 1e3, False)]
)
def test_when_features_exceed_the_memory(make_rows, watched_features, blocks_of_ten, n, max_memory, exceeds):
    """Never for so few rows that moments would take more."""
    X, Y = make_rows(n, 3, 2)
    features, _ = watched_features
    model = EntangledKernelRidge(features, max_memory=max_memory)
    assert model._exceeds_memory(features.fit(X), X, Y) is exceeds
    assert not model._exceeds_memory(None, X, Y)


def test_rows_in_blocks_give_the_same_problem(make_rows, watched_features, blocks_of_ten):
    X, Y = make_rows(60, 3, 2)
    features, seen = watched_features
    fitted = features.fit(X)
    whole, kept = EntangledKernelRidge(features)._learning_problem(fitted, X, Y, None)
    seen.clear()
    blocked, stream = EntangledKernelRidge(features, max_memory=1e3)._learning_problem(fitted, X, Y, None)
    assert max(seen) == 10
    np.testing.assert_allclose(np.sort(blocked.scale)[-5:], np.sort(whole.scale)[-5:], rtol=1e-9)
    assert stream.moments()[0].allclose(kept.moments()[0])


def test_wide_tables_keep_no_moments(make_rows):
    X, Y = make_rows(10, 20, 2)
    assert EntangledKernelRidge()._learning_problem(None, X, Y, None)[1] is None
    with pytest.raises(ValueError, match="at least 2 rows of positive sample_weight"):
        EntangledKernelRidge()._learning_problem(None, X, Y, np.eye(10)[0])
