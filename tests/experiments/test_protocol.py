"""Errors, partitions and features; the same records whatever the number of processes."""

import numpy as np
import pytest
from sklearn.datasets import load_linnerud
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from entangled_kernels.experiments import METHODS, compare_methods
from entangled_kernels.experiments.protocol import fit_features, folds_of, improvement, nmse, partitions
from entangled_kernels.experiments.published import LAMBDAS

TIMES = ("fit_seconds", "predict_seconds")


def without_times(records):
    return [{key: value for key, value in record.items() if key not in TIMES} for record in records]


def test_errors(rng):
    Y = rng.normal(size=(30, 3)) * [1.0, 10.0, 0.1]
    assert nmse(Y, np.tile(Y.mean(axis=0), (30, 1))) == pytest.approx(1.0)
    half = Y.mean(axis=0) + 0.5 * (Y - Y.mean(axis=0))
    assert nmse(Y, half) == pytest.approx(0.25)
    # A constant output says nothing.
    assert nmse(np.column_stack([Y, np.ones(30)]), np.column_stack([half, np.zeros(30)])) == pytest.approx(
        0.25
    )
    with pytest.raises(ValueError, match="all outputs are constant"):
        nmse(np.ones((3, 2)), np.ones((3, 2)))
    assert improvement(0.25, 1.0) == pytest.approx(1.5)
    assert improvement(1.0, 0.25) == pytest.approx(-1.5)


def test_partitions_are_disjoint_and_repeatable():
    first = list(partitions(20, 8, 3, seed=5))
    for split, (train, test), _ in first:
        assert len(train) == 8
        assert sorted([*train, *test]) == list(range(20))
        assert split in range(3)
    assert not np.array_equal(first[0][1][0], first[1][1][0])
    again = list(partitions(20, 8, 3, seed=5))
    assert all(np.array_equal(a[1][0], b[1][0]) and a[2] == b[2] for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0][1][0], next(partitions(20, 8, 3, seed=6))[1][0])


def test_folds_hold_out_every_row_once():
    assert sorted(np.concatenate([test for _, test in folds_of(13, 0)])) == list(range(13))
    assert len(folds_of(13, 0)) == 5
    assert len(folds_of(4, 0)) == 4


def test_rbf_features_give_the_kernel_of_median_width(rng):
    X, X_test = rng.normal(size=(15, 3)), rng.normal(size=(4, 3))
    Phi, Phi_test = fit_features("rbf", X, X_test, 0)
    distances = [np.sum((X[i] - X[j]) ** 2) for i in range(15) for j in range(i)]
    np.testing.assert_allclose(Phi_test @ Phi.T, rbf_kernel(X_test, X, 1 / np.median(distances)), atol=1e-8)
    assert fit_features("fourier", X, X_test, 0)[1].shape == (4, 300)
    assert fit_features(PolynomialFeatures(2), X, X_test, 0)[0].shape == (15, 10)
    with pytest.raises(
        ValueError, match="features must be 'linear', 'rbf', 'fourier' or a transformer, got 'x'"
    ):
        fit_features("x", X, X_test, 0)


@pytest.mark.parametrize("protocol", ["fair", "paper"])
def test_records_do_not_depend_on_the_number_of_processes(protocol):
    X, Y = load_linnerud(return_X_y=True)
    calls = []
    settings = {"train_sizes": (10, 12), "repeats": 1, "protocol": protocol, "methods": ("KRR", "EKL")}
    one = compare_methods(X, Y, **settings, progress=lambda *call: calls.append(call))
    two = compare_methods(X, Y, **settings, n_jobs=2)
    assert without_times(one.records) == without_times(two.records)
    assert calls == [(0, 2, "n=10, split=0"), (1, 2, "n=12, split=0"), (2, 2, "done")]
    other = compare_methods(X, Y, **settings, seed=1)
    assert without_times(other.records) != without_times(one.records)


def test_all_methods_run_on_frames():
    X, Y = load_linnerud(return_X_y=True, as_frame=True)
    results = compare_methods(X, Y, methods=tuple(METHODS), train_sizes=(14,), repeats=1, features="rbf")
    assert [record["method"] for record in results.records] == list(METHODS)
    for record in results.records:
        assert set(record) == {"method", "n", "split", "nmse", "ni", *TIMES}
        assert record["nmse"] > 0.0
        assert min(record[time] for time in TIMES) > 0.0
    assert results.records[0]["ni"] == 0.0
    assert results.meta["features"] == "rbf"
    assert results.meta["versions"]["numpy"] == np.__version__


def test_one_target_and_no_reference():
    X, Y = load_linnerud(return_X_y=True)
    results = compare_methods(X, Y[:, 0], methods=("OKL", "extra-trees"), train_sizes=(12,), repeats=1)
    assert [record["ni"] for record in results.records] == [None, None]


def test_kernel_ridge_of_the_paper_is_ridge_selected_on_the_folds():
    X, Y = load_linnerud(return_X_y=True)
    results = compare_methods(X, Y, methods=("KRR",), train_sizes=(14,), repeats=1, protocol="paper")
    _, (train, test), seed = next(partitions(20, 14, 1, 0))
    X_train, Y_train = X[train], Y[train]
    weights = np.var(Y_train, axis=0)

    def held_out(alpha):
        errors = []
        for inner, outer in folds_of(14, seed):
            model = Ridge(alpha=alpha, fit_intercept=False).fit(X_train[inner], Y_train[inner])
            errors.append(np.mean((Y_train[outer] - model.predict(X_train[outer])) ** 2 / weights))
        return np.mean(errors)

    best = Ridge(alpha=min(LAMBDAS, key=held_out), fit_intercept=False).fit(X_train, Y_train)
    assert results.records[0]["nmse"] == pytest.approx(nmse(Y[test], best.predict(X[test])), rel=1e-6)


def test_the_fair_protocol_does_not_see_units():
    X, Y = load_linnerud(return_X_y=True)
    settings = {"methods": ("KRR", "ptrEKL"), "train_sizes": (12,), "repeats": 2}
    plain = compare_methods(X, Y, **settings)
    other = compare_methods(StandardScaler().fit_transform(X), 1e3 * Y + 5.0, **settings)
    for a, b in zip(plain.records, other.records, strict=True):
        assert a["nmse"] == pytest.approx(b["nmse"], rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ("KRR", "magic")}, r"methods must be some of KRR.*got \['KRR', 'magic'\]"),
        ({"methods": ()}, "methods must be some of"),
        ({"train_sizes": (19,)}, "train_sizes must be from 3 to 18"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"protocol": "secret"}, "protocol must be 'paper' or 'fair', got 'secret'"),
        ({"features": "round"}, "features must be 'linear'"),
    ],
)
def test_bad_arguments(settings, message):
    X, Y = load_linnerud(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        compare_methods(X, Y, **({"train_sizes": (10,), "repeats": 1} | settings))
