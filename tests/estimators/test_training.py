import numpy as np
import pytest
from entangled_kernels.estimators.training import Table
from sklearn import config_context

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
    model = EntangledKernelRidge(features)
    parts = [np.arange(0, 60, 2), np.arange(1, 60, 2)]
    with config_context(working_memory=16 * 30 * 10 / 2**20):
        found, sample = model._moments_of_parts(fitted, Table(X, Y, weight), parts)
    assert max(seen) == 10
    for part, moments in zip(parts, found, strict=True):
        assert moments.allclose(Moments.from_arrays(fitted.transform(X)[part], Y[part], weight[part]))
    assert len(sample.Y) == 60
    assert all(sample.part[sample.Y[:, 0] == Y[row, 0]] == row % 2 for row in range(60))
    with pytest.raises(ValueError, match="every fold needs rows of positive sample_weight"):
        model._moments_of_parts(fitted, Table(X, Y, np.where(np.arange(60) % 2, 0.0, 1.0)), parts)


@pytest.mark.parametrize(
    ("n", "memory", "exceeds"), [(60, 1e-3, True), (60, 1.0, False), (10, 1e-3, False), (31, 1e-3, False)]
)
def test_when_features_exceed_the_memory(make_rows, watched_features, blocks_of_ten, n, memory, exceeds):
    """Never for so few rows that moments would take more."""
    X, Y = make_rows(n, 3, 2)
    features, _ = watched_features
    model = EntangledKernelRidge(features)
    with config_context(working_memory=memory):
        assert model._exceeds_memory(features.fit(X), Table(X, Y)) is exceeds
        assert not model._exceeds_memory(None, Table(X, Y))


def test_rows_in_blocks_give_the_same_problem(make_rows, watched_features, blocks_of_ten):
    X, Y = make_rows(60, 3, 2)
    features, seen = watched_features
    fitted = features.fit(X)
    whole = EntangledKernelRidge(features)._training(fitted, Table(X, Y))
    seen.clear()
    with config_context(working_memory=1e-3):
        blocked = EntangledKernelRidge(features)._training(fitted, Table(X, Y))
    assert max(seen) == 10
    scales = (np.sort(one.problem.scale)[-5:] for one in (blocked, whole))
    np.testing.assert_allclose(*scales, rtol=1e-9)
    assert blocked.stream.moments()[0].allclose(whole.stream.moments()[0])
    np.testing.assert_allclose(blocked.sample.Phi, whole.sample.Phi)


def test_wide_tables_keep_no_moments(make_rows):
    X, Y = make_rows(10, 20, 2)
    assert EntangledKernelRidge()._training(None, Table(X, Y)).stream is None
    with pytest.raises(ValueError, match="at least 2 rows of positive sample_weight"):
        EntangledKernelRidge()._training(None, Table(X, Y, np.eye(10)[0]))
