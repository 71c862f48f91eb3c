import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.uncertainty import Correlation

from reference import cells as dense


def draw(seed, r, p):
    rng = np.random.default_rng(seed)
    return Correlation(rng.normal(size=(r, p)), rng.uniform(0.1, 1.0, size=p)), rng


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(1, 12))
def test_conditioning_is_that_of_the_dense_covariance(seed, r, p):
    """Whether the factor is shorter or longer than what is known."""
    correlation, rng = draw(seed, r, p)
    R = correlation.dense()
    np.testing.assert_allclose(np.diag(R), correlation.diagonal())
    Z = np.where(rng.random((9, p)) < 0.5, rng.normal(size=(9, p)), np.nan)
    found = correlation.condition(Z, with_covariance=True)
    for i in range(9):
        mean, covariance = dense.condition(R, Z[i])
        np.testing.assert_allclose(found.mean[i], mean, atol=1e-8)
        np.testing.assert_allclose(found.covariance[i], covariance, atol=1e-8)
        np.testing.assert_allclose(found.variance[i], np.diag(covariance), atol=1e-8)
    assert correlation.condition(Z).covariance is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 8))
def test_knowing_more_is_never_worse(seed, r, p):
    correlation, rng = draw(seed, r, p)
    z = rng.normal(size=p)
    order = rng.permutation(p)
    before = correlation.diagonal()
    for count in range(p + 1):
        known = np.isin(np.arange(p), order[:count])
        variance = correlation.condition(np.where(known, z, np.nan)[None]).variance[0]
        assert (variance <= before + 1e-9).all()
        assert (variance[known] == 0.0).all()
        before = variance


def test_unrelated_targets_tell_nothing():
    correlation = Correlation.identity(4)
    found = correlation.condition(np.array([[2.0, np.nan, np.nan, 1.0]]))
    np.testing.assert_array_equal(found.mean, [[2.0, 0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(found.variance, [[0.0, 1.0, 1.0, 0.0]])
    assert correlation.n_outputs == 4


def test_many_targets_need_no_large_system(monkeypatch):
    """With a short factor nothing of the size of what is known is factorised."""
    correlation, rng = draw(0, 3, 200)
    from entangled_kernels.uncertainty import correlation as module

    sizes, factor = [], module.cho_factor
    monkeypatch.setattr(
        module, "cho_factor", lambda A, **options: (sizes.append(len(A)), factor(A, **options))[1]
    )
    Z = np.where(np.arange(200) < 150, rng.normal(size=200), np.nan)[None]
    mean, _ = dense.condition(correlation.dense(), Z[0])
    np.testing.assert_allclose(correlation.condition(Z).mean[0], mean, atol=1e-8)
    assert sizes == [3]


@pytest.mark.parametrize("p", [1, 3])
def test_nothing_or_everything_known(p):
    correlation, rng = draw(1, 2, p)
    Z = np.vstack([np.full(p, np.nan), rng.normal(size=p)])
    found = correlation.condition(Z, with_covariance=True)
    np.testing.assert_array_equal(found.mean[0], 0.0)
    np.testing.assert_allclose(found.covariance[0], correlation.dense())
    np.testing.assert_array_equal(found.mean[1], Z[1])
    assert not found.covariance[1].any()
