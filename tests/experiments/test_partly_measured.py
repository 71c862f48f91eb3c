"""Partly measured targets: balanced sets, and the errors and coverages of the models."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.experiments import methods, partly_measured
from entangled_kernels.experiments.partly_measured import (
    OURS,
    compare_partly_measured,
    measured_sets,
)
from entangled_kernels.experiments.protocol import partitions
from entangled_kernels.io import ExperimentResults

SEARCH = {
    "alphas": np.logspace(-4, 2, 7),
    "param_grid": {"shrinkage": (0.5,), "target_alpha": (0.1,)},
}
METHODS = [OURS, "ridge", "PLS", "extra-trees"]


@pytest.fixture(autouse=True)
def _small_search(monkeypatch):
    monkeypatch.setattr(
        partly_measured, "EntangledKernelRidgeCV", partial(EntangledKernelRidgeCV, "auto", **SEARCH)
    )


@pytest.fixture
def _small_baselines(monkeypatch):
    monkeypatch.setattr(
        methods, "ExtraTreesRegressor", lambda _, **more: ExtraTreesRegressor(5, **more)
    )


@pytest.fixture(scope="module")
def table():
    """Targets of which the first three have correlated errors, and the fourth has not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    common = rng.normal(size=(120, 1)) * [1.0, 1.0, -1.0, 0.0]
    Y = X @ rng.normal(size=(3, 4)) + common + 0.3 * rng.normal(size=(120, 4))
    return pd.DataFrame(X, columns=list("abc")), pd.DataFrame(Y, columns=["w", "x", "y", "z"])


@given(st.integers(2, 12), st.data())
def test_every_target_is_measured_as_often_as_any_other(p, data):
    k = data.draw(st.integers(1, p - 1))
    sets = measured_sets(p, k, np.random.default_rng(data.draw(st.integers(0, 1000))))
    assert len(sets) == p
    assert all(len(set(chosen.tolist())) == k for chosen in sets)
    assert np.bincount(np.concatenate(sets), minlength=p).tolist() == [k] * p


@pytest.mark.usefixtures("_small_baselines")
def test_records_have_errors_coverages_and_information(table, tmp_path):
    calls = []
    results = compare_partly_measured(
        *table, n_train=30, repeats=2, most=2, progress=lambda *call: calls.append(call)
    )
    by = results.summary("nmse", ("known", "method"))
    assert [(row["known"], row["method"]) for row in by] == [
        (k, m) for k in range(3) for m in METHODS
    ]
    assert all(row["count"] == 2 for row in by)
    assert calls[-1] == (2, 2, "done")
    ours = {row["known"]: row["mean"] for row in by if row["method"] == OURS}
    # Errors are correlated, so every measured target lowers the error of the others.
    assert ours[2] < ours[1] < ours[0]
    for record in results.records:
        assert record["fits"] == (
            int(record["known"] == 0) if record["method"] == OURS or not record["known"] else 4
        )
        if record["method"] == OURS:
            assert record["left"] == pytest.approx(record["nmse"] * (4 - record["known"]) / 4)
            assert 0.75 < record["coverage"] <= 1.0
            assert 0.65 < record["joint_coverage"] <= 1.0
    widths = [row["mean"] for row in results.summary("width", ("known",))]
    assert widths == sorted(widths, reverse=True)
    information, removed = results.array("information"), results.array("removed")
    assert information.shape == removed.shape == (4, 4)
    # The model's information agrees with the errors removed: the first three targets inform each
    # other, the last one none.
    assert removed[:3, :3].min() > 0.3 > removed[3, :3].max()
    assert information[:3, :3].min() > 0.3 > information[3, :3].max()
    loaded = ExperimentResults.load(results.save(tmp_path)[0])
    assert loaded.meta["targets"] == ["w", "x", "y", "z"]
    np.testing.assert_array_equal(loaded.array("removed"), removed)


@pytest.mark.usefixtures("_small_baselines")
def test_errors_are_those_of_the_methods(table):
    X, Y = (frame.to_numpy() for frame in table)
    results = compare_partly_measured(*table, n_train=30, repeats=1, most=1, seed=3)
    (split,) = partitions(120, 30, 1, 3)
    train, test = split.train, split.test
    X, Y = ((part - part[train].mean(axis=0)) / part[train].std(axis=0) for part in (X, Y))
    errors = []
    for known in range(4):
        A, others = np.column_stack([X, Y[:, known]]), np.delete(Y, known, axis=1)
        model = RidgeCV(methods.RIDGE_ALPHAS, alpha_per_target=True).fit(A[train], others[train])
        residuals = others[test] - model.predict(A[test])
        errors.append(np.mean(residuals**2, axis=0) / others[test].var(axis=0))
    (ridge,) = [r for r in results.records if r["method"] == "ridge" and r["known"] == 1]
    assert ridge["nmse"] == pytest.approx(np.mean(errors))


@pytest.mark.parametrize(
    ("settings", "problem"), [({"most": 4}, "most"), ({"n_train": 119}, "n_train")]
)
def test_bad_settings_are_named(table, settings, problem):
    with pytest.raises(ValueError, match=f"{problem} must be from"):
        compare_partly_measured(*table, **settings)
