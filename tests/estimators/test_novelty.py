"""Novelty: rows like those of training are not flagged, multiples are, and predict warns of these alone."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
)
from entangled_kernels.estimators import NoveltyWarning
from entangled_kernels.io import load_model, save_model

MAPS = {
    "none": None,
    "scaler": StandardScaler(),
    "gaussian": make_pipeline(StandardScaler(), Nystroem(random_state=0)),
    "evidence": EvidenceFeatures(random_state=0, max_rows=100),
    "warped": EvidenceFeatures(warp=True, random_state=0, max_rows=100),
    "forest": ForestFeatures(n_estimators=20, random_state=0),
}


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 4))
    return X, np.column_stack([X[:, 0], np.sin(X[:, 1])]) + 0.1 * rng.normal(size=(150, 2))


@pytest.mark.parametrize("name", MAPS)
def test_multiples_are_flagged_and_rows_like_those_of_training_are_not(name):
    X, Y = table()
    model = EntangledKernelRidge(MAPS[name]).fit(X, Y)
    alike = np.random.default_rng(1).normal(size=(1000, 4))
    assert np.mean(model.novelty(alike) > 1.0) <= 0.01
    for factor in (1e3, 1e12, -1e12):
        assert (model.novelty(factor * X) > 1.0).all()


@pytest.mark.parametrize("read", [load_wine, load_diabetes])
def test_few_rows_of_real_tables_are_flagged(read):
    data = read().data
    order = np.random.default_rng(0).permutation(len(data))
    train, test = order[: len(data) * 2 // 3], order[len(data) * 2 // 3 :]
    model = EntangledKernelRidgeCV([StandardScaler()], cv=3).fit(data[train, :7], data[train, 7:])
    assert np.mean(model.novelty(data[test, :7]) > 1.0) <= 0.02
    assert (model.novelty(1e12 * data[test, :7]) > 1.0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoveltyWarning)
        model.predict(data[test, :7])


def test_a_direction_that_training_rows_lack_is_new():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(100, 1))
    X = np.hstack([first, first + 0.01 * rng.normal(size=(100, 1))])
    model = EntangledKernelRidge(alpha=1e-3, shrinkage=1.0).fit(
        X, first + 0.1 * rng.normal(size=(100, 1))
    )
    # Each input is in its range, but not both of them together.
    assert model.novelty(np.array([[1.5, -1.5]])) > 1.0
    assert model.novelty(np.array([[1.5, 1.5]])) < 1.0


def test_predict_warns_of_rows_far_out_and_says_how_many():
    X, Y = table()
    model = EntangledKernelRidge(MAPS["gaussian"]).fit(X, Y)
    rows = np.vstack([X[:5], 1e3 * X[:2]])
    with pytest.warns(NoveltyWarning, match="2 of 7 rows lie far outside"):
        model.predict(rows)
    with pytest.warns(NoveltyWarning):
        model.score(1e12 * X, Y)


def test_streams_and_files_know_the_inputs(tmp_path):
    X, Y = table()
    whole = EntangledKernelRidgeCV(StandardScaler(), cv=3).fit(X, Y)
    parts = EntangledKernelRidgeCV(StandardScaler(), cv=3)
    for start in range(0, 150, 50):
        parts.partial_fit(X[start : start + 50], Y[start : start + 50])
    rows = np.vstack([X[:3], 100.0 * X[:3]])
    save_model(parts.solve(), tmp_path / "parts.model")
    found = parts.novelty(rows)
    np.testing.assert_array_equal(load_model(tmp_path / "parts.model").novelty(rows), found)
    assert (
        (found > 1.0).tolist() == (whole.novelty(rows) > 1.0).tolist() == [False] * 3 + [True] * 3
    )
    np.testing.assert_array_equal(parts.model_.inputs.packed(), whole.model_.inputs.packed())


def test_inputs_are_watched_after_fit_and_across_merges():
    X, Y = table()
    first = EntangledKernelRidge().fit(X, Y)
    other = EntangledKernelRidge().partial_fit(100.0 * X, Y)
    far = 60.0 * X[:3]
    assert (first.novelty(far) > 1.0).any()
    assert not (first.merge(other).novelty(far) > 1.0).any()


@pytest.mark.parametrize("search", [False, True])
def test_predict_warns_of_a_batch_that_is_shifted_as_a_whole(search):
    """No row is far out alone; the warning points at the line of the caller."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 5)), rng.normal(size=(60, 5)) + 2.0
    Y = X[:, :2] + rng.normal(size=(100, 2))
    model = EntangledKernelRidgeCV(None, cv=3) if search else EntangledKernelRidge()
    model.fit(X, Y)
    for method in (model.predict, model.predict_interval):
        with pytest.warns(NoveltyWarning, match="% of 60 rows have inputs outside") as told:
            method(new)
        assert [warning.filename for warning in told] == [__file__]
