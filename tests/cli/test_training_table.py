from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.options import TableOptions
from entangled_kernels.cli.tables import choose_columns, open_batches, read_rows
from entangled_kernels.storage import load_model, open_model
from entangled_kernels.tables import TableError, read_table, write_table

FIT = ("--targets", "y,z", "--inputs", "a,b,c", "--features", "linear", "--out", "m.model")


def read(path, targets, inputs=None, encode=False):
    return read_rows(Path(path), targets, inputs, encode=encode, fewest=3, work="fitting")


def test_rows_in_memory(plant):
    plant.assign(town=["Ulm", "Aix"] * 20, n=range(40)).to_csv("plant.csv", index=False)
    table = read("plant.csv", ["net load"], ["n,town"], encode=True)
    assert (table.inputs, table.targets, table.text) == (["n", "town"], ["net load"], ["town"])
    assert table.X["n"].dtype == np.float64
    assert list(table.X["town"][:2]) == ["Ulm", "Aix"]
    assert table.reader is None
    assert len(table.Y) == 40
    with pytest.raises(TableError, match=r"plant.csv: row 1, column 'town': 'Ulm' is no number; leave"):
        read("plant.csv", ["net load"], ["n,town"])
    plant[:2].to_csv("plant.csv", index=False)
    with pytest.raises(TableError, match="fitting needs at least 3 rows, got 2"):
        read("plant.csv", ["net load"], ["pressure"])


def test_blanks_of_targets_are_taken_where_they_may_be(folder):
    frame = pd.DataFrame({"a": range(6), "y": [1.0, None, 3.0, 4.0, None, 6.0], "z": 1.5})
    frame.loc[4, "z"] = np.nan
    frame.to_csv("t.csv", index=False)
    settings = {"encode": False, "fewest": 3, "work": "fitting"}
    table = read_rows(Path("t.csv"), ["y", "z"], None, **settings, blanks=True)
    assert list(table.X["a"]) == [0, 1, 2, 3, 5]
    np.testing.assert_array_equal(table.Y["y"], [1.0, np.nan, 3.0, 4.0, 6.0])
    assert (table.blanks.cells, table.blanks.empty_rows) == ({"y": 1}, 1)
    with pytest.raises(TableError, match="row 2, column 'y': the cell is empty"):
        read_rows(Path("t.csv"), ["y", "z"], None, **settings)
    frame[:2].to_csv("t.csv", index=False)
    with pytest.raises(TableError, match="fitting needs at least 3 rows, got 2"):
        read_rows(Path("t.csv"), ["y", "z"], None, **settings, blanks=True)
    frame.assign(y=np.nan).to_csv("t.csv", index=False)
    with pytest.raises(TableError, match="target 'y' has no measured cell"):
        read_rows(Path("t.csv"), ["y", "z"], None, **settings, blanks=True)


def test_numbers_that_are_text_elsewhere_stay_text(folder):
    """A column of text whose cells look like numbers here and there is text everywhere."""
    pd.DataFrame({"code": ["7", "x", "8"], "y": [1.0, 2.0, 3.0]}).to_csv("t.csv", index=False)
    assert list(read("t.csv", ["y"], encode=True).X["code"]) == ["7", "x", "8"]


def test_rows_in_batches(rows):
    table = open_batches(Path("rows"), ["y"], None, encode=True, max_memory=100)
    assert (table.inputs, table.text) == (["a", "b", "c", "id", "kind", "z"], ["kind"])
    pd.testing.assert_frame_equal(table.X, rows[table.inputs], check_dtype=False)
    assert table.Y is None
    assert table.reader.inputs == tuple(table.inputs)
    with pytest.raises(CommandError, match="no columns are left for inputs"):
        open_batches(Path("rows"), ["a,b,c,id,y,z"], None, encode=False, max_memory=100)


def test_text_is_left_out_unless_named(rows, run):
    shown = run("fit", "rows", "--targets", "y,z", "--features", "linear", "--out", "m.model")
    assert "left out, since they hold no numbers: 'kind'" in shown.stderr
    assert open_model("m.model").info["inputs"] == ["a", "b", "c", "id"]
    more = ("--targets", "y", "--inputs", "a,kind", "--features", "linear", "--out", "other.model")
    assert "column 'kind' holds text" in run("fit", "rows", *more, code=3).stderr
    assert (
        "or have its text turned into columns of 0 and 1 with --encode"
        in run("fit", "rows", *more, code=3).stderr
    )


def test_text_is_encoded_in_batches_as_in_memory(rows, run):
    rows["kind"] = np.where(rows["id"] % 2 == 0, "even", "odd")
    rows["y"] += rows["kind"] == "odd"
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    options = (
        "--targets",
        "y,z",
        "--inputs",
        "a,b,kind",
        "--features",
        "linear",
        "--encode",
        "--out",
        "m.model",
    )
    shown = run("fit", "rows", *options).stdout
    assert "OneHotEncoder + StandardScaler" in shown
    model = load_model("m.model")
    assert np.mean((model.predict(rows[["a", "b", "kind"]])[:, 0] - rows["y"]) ** 2) < 0.05
    result = run("predict", "m.model", "rows", "--out", "p.parquet")
    assert result.stderr == ""
    np.testing.assert_allclose(read_table("p.parquet"), model.predict(rows[["a", "b", "kind"]]), rtol=1e-9)
    for number in range(3):
        part = rows[100 * number : 100 * number + 100]
        write_table(part.assign(kind="new"), f"rows/{number}.parquet")
    result = run("predict", "m.model", "rows", "--out", "q.parquet")
    first, second = result.stderr.splitlines()
    assert first == "note: column 'kind' holds 'new', unknown to the model; all its 0/1 columns are 0 there"
    # No training row has a 0 in all of them.
    assert second.startswith("note: 300 of 300 rows are far from what the model was fitted on")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_missing_text_is_named(rows, run, kind):
    part = read_table("rows/1.parquet").assign(kind="odd")
    (Path("rows") / "1.parquet").unlink()
    for name in ("0.parquet", "2.parquet"):
        table = read_table(f"rows/{name}")
        (Path("rows") / name).unlink()
        write_table(table, f"rows/{name.split('.')[0]}.{kind}")
    write_table(part.assign(kind=np.where(part["id"] == 106, None, part["kind"])), f"rows/1.{kind}")
    options = ("--targets", "y", "--inputs", "a,kind", "--features", "linear", "--encode", "--out", "m.model")
    error = run("fit", "rows", *options, code=3).stderr
    assert f"rows/1.{kind}, rows 1 to 100: " in error
    assert "the first missing value is in row 7 of them, column 'kind'" in error


def test_constant_columns_and_texts_that_name_rows_are_told(folder):
    frame = pd.DataFrame({"id": [f"s{i}" for i in range(30)], "a": 1.0, "b": range(30), "y": 2.0})
    frame.to_csv("t.csv", index=False)
    assert read("t.csv", ["y"], encode=True).notes == [
        "column 'id' has 30 different texts in 30 rows; leave it out if it names the rows",
        "input 'a' has the same value in every row and says nothing about the targets",
        "target 'y' has the same value in every row and needs no model; its error is not counted",
    ]


FRAME = pd.DataFrame(columns=["id", "net load", "flow, l/s", "t [C]", ""])


def test_others_are_inputs():
    targets, inputs, notes = choose_columns(FRAME, ["net load"], None, "t.csv")
    assert (targets, inputs) == (["net load"], ["id", "flow, l/s", "t [C]"])
    assert notes == ["the column without a name is taken for row numbers and left out"]


@pytest.mark.parametrize("value", ["flow, l/s", '"flow, l/s"', "flow*"])
def test_a_name_as_it_is_in_quotes_or_by_a_pattern(value):
    assert choose_columns(FRAME, [value], ["id"], "t.csv")[0] == ["flow, l/s"]


def test_signs_of_patterns_in_names():
    assert choose_columns(FRAME, ["t [C]"], ["id"], "t.csv")[0] == ["t [C]"]


@pytest.mark.parametrize(
    ("targets", "inputs", "sentence"),
    [
        (["net load", "net*"], None, "column 'net load' is named twice in --targets"),
        (["net load"], ["net load"], "named in both --inputs and --targets"),
        (["netload"], None, r"no column 'netload' \(is it 'net load'"),
        ([","], None, "--targets must name at least one column"),
        (["id", "net load", '"flow, l/s"', "t [C]"], None, "no columns are left for inputs"),
    ],
)
def test_wrong_names(targets, inputs, sentence):
    with pytest.raises(CommandError, match=sentence):
        choose_columns(FRAME, targets, inputs, "t.csv")


@pytest.mark.parametrize("text", [False, True])
def test_blank_inputs_are_dropped_or_left_to_be_filled(folder, text):
    frame = pd.DataFrame({"a": [1.0, None, 3.0, 4.0, 5.0], "b": list("xyzxy"), "c": 1.5, "y": range(5)})
    frame.loc[3, "b"] = None
    frame = frame if text else frame.drop(columns="b")
    frame.to_csv("t.csv", index=False)
    settings = {"encode": text, "fewest": 3, "work": "fitting"}
    inputs = ["a", "b"] if text else ["a", "c"]
    dropped = read_rows(Path("t.csv"), ["y"], inputs, **settings, options=TableOptions(missing="drop"))
    assert list(dropped.Y["y"]) == ([0, 2, 4] if text else [0, 2, 3, 4])
    assert dropped.X.notna().all(axis=None)
    assert not dropped.fill
    left = "2 rows of 5 have" if text else "1 row of 5 has"
    assert dropped.notes[0].startswith(f"{left} a blank input and")
    filled = read_rows(Path("t.csv"), ["y"], inputs, **settings, options=TableOptions(missing="median"))
    assert filled.fill
    assert np.isnan(filled.X["a"][1])
    assert "blank cell" in filled.notes[0]
    if text:
        assert filled.X["b"][3] == ""
    with pytest.raises(TableError, match=r"column '[ab]': the cell is empty; fill it, or leave out the row"):
        read_rows(Path("t.csv"), ["y"], inputs, **settings)
    frame.assign(a=np.nan).to_csv("t.csv", index=False)
    with pytest.raises(TableError, match="input 'a' has no value in any row; leave it out with --exclude"):
        read_rows(Path("t.csv"), ["y"], ["a", "c"], **settings, options=TableOptions(missing="median"))


def test_blank_inputs_in_batches_are_those_of_a_whole_table(rows, run):
    rows.loc[::7, "a"] = np.nan
    rows.to_csv("all.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    Path("parts").mkdir()
    for number in range(3):
        part = rows[100 * number : 100 * number + 100]
        part.to_csv(f"parts/{number}.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    for missing in ("drop", "median"):
        for table in ("all.csv", "parts"):
            run("fit", table, *FIT[:-1], f"{table}.model", "--missing", missing, "--force")
        one, other = (load_model(f"{table}.model") for table in ("all.csv", "parts"))
        expected = rows[["a", "b", "c"]].dropna() if missing == "drop" else rows[["a", "b", "c"]]
        one_scale, other_scale = (
            getattr(model.feature_map_, "steps", [("", model.feature_map_)])[-1][1].mean_
            for model in (one, other)
        )
        np.testing.assert_allclose(one_scale, other_scale, rtol=1e-12)
        filled = expected.fillna(expected.median())
        np.testing.assert_allclose(other_scale, filled.mean(), rtol=1e-12)
        predict = ("--out", "p.csv", "--force", *(["--missing", "drop"] if missing == "drop" else []))
        shown = run("predict", "parts.model", "parts", *predict)
        assert ("43 rows of 300 have a blank input and are left out" in shown.stderr) == (missing == "drop")
        np.testing.assert_allclose(read_table("p.csv"), other.predict(expected), rtol=1e-9)


def test_excluded_columns_are_no_inputs(run):
    _, inputs, _ = choose_columns(FRAME, ["net load"], None, "t.csv", TableOptions(exclude=("id", "t [C]")))
    assert inputs == ["flow, l/s"]
    assert choose_columns(FRAME, ["net load"], ["id", "flow*"], "t.csv", TableOptions(exclude=("flow*",)))[
        1
    ] == ["id"]
    with pytest.raises(CommandError, match="there is no column 'idd'"):
        choose_columns(FRAME, ["net load"], None, "t.csv", TableOptions(exclude=("idd",)))
    twice = pd.DataFrame(columns=["a", "b", "a", "y"])
    assert choose_columns(twice, ["y"], None, "t.csv", TableOptions(exclude=("a",)))[1] == ["b"]
    with pytest.raises(CommandError, match="2 columns have the name 'a'"):
        choose_columns(twice, ["y"], None, "t.csv")
    pd.DataFrame([[1.0, 2.0, 3.0, 4.0]] * 5, columns=list("abay")).to_csv("t.csv", index=False)
    assert open_batches(
        Path("t.csv"), ["y"], None, encode=False, max_memory=100, options=TableOptions(exclude=("a",))
    ).inputs == ["b"]
    with pytest.raises(CommandError, match="several columns have the name 'a'; rename or exclude them"):
        open_batches(Path("t.csv"), ["y"], ["a"], encode=False, max_memory=100)
