"""Rows that are held out together: groups of a column, and rows in the order of time."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.io import open_model, write_table
from entangled_kernels.streams import group_folds

FIT = "fit visits.csv --targets y,z --features linear --out m.model --force --json"


@pytest.fixture
def visits(folder):
    """Visits of twelve patients, in no order of time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = X @ rng.normal(size=(3, 2)) + 0.3 * rng.normal(size=(60, 2))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=Y[:, 0], z=Y[:, 1])
    table["patient"] = np.repeat([f"p{i}" for i in range(12)], 5)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(60), "D")
    table["day"] = days.strftime("%Y-%m-%d")
    table.to_csv(folder / "visits.csv", index=False)
    return table


def fitted_with(small, cv, table, groups=None, *, frozen=False):
    scaler = StandardScaler()
    if frozen:
        # As in batches, where the map is fitted once.
        scaler = FrozenEstimator(scaler.fit(table[["a", "b", "c"]]))
    model = EntangledKernelRidgeCV([scaler], cv=cv, random_state=0, **small)
    return model.fit(table[["a", "b", "c"]], table[["y", "z"]], groups=groups)


def test_groups_of_a_column_are_held_out_together(visits, run, small):
    shown = json.loads(run(f"{FIT} --exclude day --groups patient").stdout)
    expected = fitted_with(small, 5, visits, visits["patient"])
    assert shown["nmse"] == pytest.approx(expected.cv_score_)
    assert shown["inputs"] == ["a", "b", "c"]
    assert shown["held_out"] == {"by": "groups", "column": "patient", "groups": 12}
    again = json.loads(run(*shlex.split(shown["command"])[1:], "--json", "--force").stdout)
    assert again["nmse"] == shown["nmse"]
    told = run("inspect m.model --report m.html").stdout
    about = "Cross-validated error on new groups (12 groups of 'patient')"
    assert about in told
    assert "(12 groups of" in Path("m.html").read_text()


def test_ridge_beside_the_model_holds_out_groups_too(visits, run):
    """Rows of a group are copies of each other, so that leaving out one row hides no target."""
    rng = np.random.default_rng(1)
    first = visits["patient"] != visits["patient"].shift()
    columns = [*"abcyz"]
    visits[columns] = visits[columns].where(first).ffill()
    visits[["y", "z"]] = rng.normal(size=(12, 2))[np.arange(60) // 5]
    more = [f"x{i}" for i in range(8)]
    visits[more] = rng.normal(size=(12, 8))[np.arange(60) // 5]
    visits.to_csv("visits.csv", index=False)
    alone, together = (
        json.loads(
            run(f"{FIT} --exclude day,patient {groups}".replace("day,patient ", names)).stdout
        )
        for groups, names in (("", "day,patient "), ("--groups patient", "day "))
    )
    assert alone["baselines"]["ridge"] < 0.5
    # Nothing can be learned of a new group; a weak penalty would be far worse than the mean.
    assert 0.9 < together["baselines"]["ridge"] < 1.8


def test_a_column_of_time_orders_the_rows(visits, run, small):
    shown = json.loads(run(f"{FIT} --exclude patient --time-column day").stdout)
    in_order = visits.sort_values("day")
    expected = fitted_with(small, TimeSeriesSplit(5), in_order)
    assert shown["nmse"] == pytest.approx(expected.cv_score_)
    saved = open_model("m.model")
    assert isinstance(saved.model.cv, TimeSeriesSplit)
    np.testing.assert_allclose(saved.model.coef_, expected.coef_)
    assert shlex.split(shown["command"])[-2:] == ["--time-column", "day"]
    in_order.to_csv("visits.csv", index=False)
    rows = json.loads(run(f"{FIT} --exclude patient,day --time-ordered").stdout)
    assert rows["nmse"] == pytest.approx(shown["nmse"])
    assert "--time-ordered" in shlex.split(rows["command"])
    told = run("inspect m.model").stdout
    assert "error on later rows, each fold predicted from the rows before it" in told


def test_german_dates_are_in_the_order_of_time(visits, run):
    shown = json.loads(run(f"{FIT} --exclude patient --time-column day").stdout)
    visits["day"] = pd.to_datetime(visits["day"]).dt.strftime("%d.%m.%Y")
    visits.to_csv("visits.csv", index=False)
    german = json.loads(run(f"{FIT} --exclude patient --time-column day").stdout)
    assert german["nmse"] == shown["nmse"]


def test_tables_in_batches(visits, run, small):
    Path("rows").mkdir()
    for number in range(3):
        write_table(visits[20 * number : 20 * number + 20], f"rows/{number}.parquet")
    fit = f"{FIT} --inputs a,b,c".replace("visits.csv", "rows")
    shown = json.loads(run(f"{fit} --groups patient").stdout)
    folds = group_folds(visits["patient"].to_numpy(str), 5)
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in np.unique(folds)]
    expected = fitted_with(small, splits, visits, frozen=True).cv_score_
    assert shown["nmse"] == pytest.approx(expected, rel=1e-6)
    assert shown["held_out"] == {"by": "groups", "column": "patient", "groups": None}
    shown = json.loads(run(f"{fit} --time-ordered").stdout)
    expected = fitted_with(small, TimeSeriesSplit(5), visits, frozen=True).cv_score_
    assert shown["nmse"] == pytest.approx(expected, rel=1e-6)
    visits.loc[25, "patient"] = None
    write_table(visits[20:40], "rows/1.parquet")
    error = run(f"{fit} --groups patient", code=3).stderr
    assert "1.parquet, rows 1 to 20: groups must hold a value in every row" in error
    error = run(f"{fit} --time-column day", code=2).stderr
    assert "--time-column needs the table in memory" in error


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--groups patients", 2, "there is no column 'patients' (is it 'patient'?)"),
        ("--groups y", 2, "column 'y' is named in both --groups and --targets"),
        ("--groups one", 3, "column 'one' has the same value in every row"),
        ("--groups two", 2, "--folds 5 is more than the 2 groups of column 'two'; say --folds 2"),
        ("--groups gap", 3, "row 3, column 'gap': the cell is empty"),
        ("--time-column gap", 3, "row 3, column 'gap': the cell is empty"),
        ("--time-column slashes", 3, "'31/12/2024' is no number and no date such as 2024-05-31"),
        ("--time-column dots", 3, "'04.05.2024' may begin with the day or the month"),
        ("--time-column two", 3, "the times must differ enough for 5 folds, got 2 different ones"),
        ("--time-ordered --folds 40", 3, "40 folds in the order of time need at least 82 rows"),
    ],
)
def test_what_cannot_be_held_out(visits, run, options, code, message):
    visits = visits.assign(one=1, two=np.repeat([1, 2], 30), gap="x")
    visits = visits.assign(slashes="31/12/2024", dots="04.05.2024")
    visits.loc[2, "gap"] = ""
    visits.to_csv("visits.csv", index=False)
    others = "--exclude day,patient,one,two,slashes,dots,gap"
    assert message in run(f"{FIT} {others} {options}", code=code).stderr
