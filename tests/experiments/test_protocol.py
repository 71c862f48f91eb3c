"""Errors, partitions, folds and features, and the records of cases."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from entangled_kernels.experiments import Setup
from entangled_kernels.experiments.methods import Plan
from entangled_kernels.experiments.protocol import (
    Case,
    Rows,
    fit_features,
    improvement,
    nmse,
    partitions,
    run_cases,
)


def test_errors(rng):
    Y = rng.normal(size=(30, 3)) * [1.0, 10.0, 0.1]
    assert nmse(Y, np.tile(Y.mean(axis=0), (30, 1))) == pytest.approx(1.0)
    half = Y.mean(axis=0) + 0.5 * (Y - Y.mean(axis=0))
    assert nmse(Y, half) == pytest.approx(0.25)
    # A constant output says nothing.
    assert nmse(
        np.column_stack([Y, np.ones(30)]), np.column_stack([half, np.zeros(30)])
    ) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="all outputs are constant"):
        nmse(np.ones((3, 2)), np.ones((3, 2)))
    assert improvement(0.25, 1.0) == pytest.approx(1.5)
    assert improvement(1.0, 0.25) == pytest.approx(-1.5)


def test_partitions_are_disjoint_and_repeatable():
    first = list(partitions(20, 8, 3, seed=5))
    assert [own.number for own in first] == [0, 1, 2]
    for own in first:
        assert len(own.train) == 8
        assert sorted([*own.train, *own.test]) == list(range(20))
    assert not np.array_equal(first[0].train, first[1].train)
    again = list(partitions(20, 8, 3, seed=5))
    assert all(
        np.array_equal(a.train, b.train) and a.seed == b.seed
        for a, b in zip(first, again, strict=True)
    )
    assert not np.array_equal(first[0].train, next(partitions(20, 8, 3, seed=6)).train)


def test_rbf_features_give_the_kernel_of_median_width(rng):
    X, X_test = rng.normal(size=(15, 3)), rng.normal(size=(4, 3))
    Phi, Phi_test = fit_features("rbf", X, X_test, 0)
    distances = [np.sum((X[i] - X[j]) ** 2) for i in range(15) for j in range(i)]
    np.testing.assert_allclose(
        Phi_test @ Phi.T, rbf_kernel(X_test, X, 1 / np.median(distances)), atol=1e-8
    )
    assert fit_features("fourier", X, X_test, 0)[1].shape == (4, 300)
    assert fit_features(PolynomialFeatures(2), X, X_test, 0)[0].shape == (15, 10)
    with pytest.raises(
        ValueError, match="features must be 'linear', 'rbf', 'fourier' or a transformer, got 'x'"
    ):
        fit_features("x", X, X_test, 0)


def test_cases_keep_their_keys_and_are_told_of(make_rows):
    X, Y = make_rows(24, 3, 2)
    rows = Rows(X[:16], Y[:16], X[16:], Y[16:])
    cases = [
        Case({"n": 16, "split": split}, rows, Plan(methods=("PLS", "KRR")), split)
        for split in range(2)
    ]
    told = []
    records = run_cases(cases, Setup(progress=lambda *call: told.append(call)))
    assert [(record["method"], record["n"], record["split"]) for record in records] == [
        ("PLS", 16, 0),
        ("KRR", 16, 0),
        ("PLS", 16, 1),
        ("KRR", 16, 1),
    ]
    for least, ridge in (records[:2], records[2:]):
        assert least["ni"] == pytest.approx(improvement(least["nmse"], ridge["nmse"]))
        assert ridge["ni"] == 0.0
    assert told == [(0, 2, "n=16, split=0"), (1, 2, "n=16, split=1"), (2, 2, "done")]
