"""Comparison on any table: records do not depend on processes, units or containers."""

import numpy as np
import pytest
from sklearn.datasets import load_linnerud
from sklearn.preprocessing import StandardScaler

from entangled_kernels.experiments import METHODS, Setup, compare_methods
from entangled_kernels.experiments.compare import class_figures, table_cases
from entangled_kernels.experiments.methods import Plan
from entangled_kernels.io import ExperimentResults

TIMES = ("fit_seconds", "predict_seconds")


def without_times(records):
    return [{key: value for key, value in record.items() if key not in TIMES} for record in records]


def test_records_do_not_depend_on_the_number_of_processes():
    X, Y = load_linnerud(return_X_y=True)
    calls = []
    settings = {"train_sizes": (10, 12), "repeats": 1, "methods": ("KRR", "extra-trees")}
    first = compare_methods(X, Y, **settings, progress=lambda *call: calls.append(call))
    again = compare_methods(X, Y, **settings, n_jobs=2)
    assert without_times(first.records) == without_times(again.records)
    assert calls == [
        (0, 2, "10 training rows, split number 0"),
        (1, 2, "12 training rows, split number 0"),
        (2, 2, "done"),
    ]
    other = compare_methods(X, Y, **settings, seed=1)
    assert without_times(other.records) != without_times(first.records)


def test_all_methods_run_on_frames():
    X, Y = load_linnerud(return_X_y=True, as_frame=True)
    results = compare_methods(
        X, Y, methods=tuple(METHODS), train_sizes=(14,), repeats=1, features="rbf"
    )
    assert [record["method"] for record in results.records] == list(METHODS)
    for record in results.records:
        assert set(record) == {"method", "n", "split", "nmse", "ni", *TIMES}
        assert record["nmse"] > 0.0
        assert min(record[time] for time in TIMES) > 0.0
    assert {record["method"] for record in results.records if record["ni"] == 0.0} == {"KRR"}
    assert results.meta["features"] == "rbf"
    assert results.meta["versions"]["numpy"] == np.__version__


def test_the_fair_protocol_does_not_see_units():
    X, Y = load_linnerud(return_X_y=True)
    settings = {"methods": ("KRR", "ptrEKL"), "train_sizes": (12,), "repeats": 2}
    plain = compare_methods(X, Y, **settings)
    other = compare_methods(StandardScaler().fit_transform(X), 1e3 * Y + 5.0, **settings)
    for a, b in zip(plain.records, other.records, strict=True):
        assert a["nmse"] == pytest.approx(b["nmse"], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("methods", ("KRR", "magic")),
        ("methods", ()),
        ("train_sizes", (19,)),
        ("repeats", 0),
        ("protocol", "secret"),
        ("features", "round"),
    ],
)
def test_an_error_names_the_argument(name, value):
    X, Y = load_linnerud(return_X_y=True)
    with pytest.raises(ValueError, match=f"{name} must be"):
        compare_methods(X, Y, **({"train_sizes": (10,), "repeats": 1} | {name: value}))


def test_cases_cut_a_table_into_training_and_test_rows(make_rows):
    X, Y = make_rows(20, 3, 2)
    cases = table_cases(X, Y, (5, 8), 2, Plan(), Setup(seed=3), features="rbf", rank="60%")
    assert [case.keys for case in cases] == [
        {"n": n, "rank": "60%", "split": split} for n in (5, 8) for split in (0, 1)
    ]
    for case in cases:
        assert case.features == "rbf"
        assert len(case.rows.X) == len(case.rows.Y) == case.keys["n"]
        both = np.vstack([case.rows.X, case.rows.X_test])
        np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(X, axis=0))
    assert len({case.seed for case in cases}) == len(cases)


def test_figures_of_classes_mark_the_published_errors_of_their_settings():
    paper = [
        {"method": "EKL", "task": "class 1", "rank": rank, "n": n, "nmse": nmse}
        for rank, n, nmse in (
            ("100%", 20, 0.1),
            ("100%", 30, 0.2),
            ("100%", 40, 0.3),
            ("20%", 30, 0.4),
        )
    ]
    records = [record | {"split": 0, "nmse": 0.5} for record in paper]
    results = ExperimentResults("uwave", "uWave", records, paper)
    figures = class_figures(results)
    assert list(figures) == ["uwave-nmse", "uwave-rank"]

    def marked(figure):
        lines = [
            line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "none"
        ]
        return sorted(float(value) for line in lines for value in np.atleast_1d(line.get_ydata()))

    assert marked(figures["uwave-nmse"]) == [0.1, 0.2, 0.3]
    assert marked(figures["uwave-rank"]) == [0.2, 0.4]


def test_missing_targets_are_left_out_of_errors(make_rows):
    X, Y = make_rows(40, 3, 2)
    Y[::5, 0] = np.nan
    results = compare_methods(X, Y, methods=("mean", "ridge"), train_sizes=(24,), repeats=2)
    assert len(results.records) == 4
    assert all(np.isfinite(record["nmse"]) for record in results.records)
    with pytest.raises(ValueError, match="Y contains NaN"):
        compare_methods(X, Y, protocol="paper")
