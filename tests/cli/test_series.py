import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.screen import Screen
from entangled_kernels.cli.series import network_frame, read_series, show_network
from entangled_kernels.tables import TableError


@pytest.fixture
def series(folder):
    rows = pd.DataFrame({"": [0, 1, 2], "day": ["mon", "tue", "wed"], "a": [1.0, 2.0, 3.0], "b": [3, 4, 5]})
    rows.to_csv("s.csv", index=False)
    return folder / "s.csv"


def test_all_columns_of_numbers(series):
    table = read_series(series, None, "--columns")
    assert table.inputs == table.targets == ["a", "b"]
    assert table.notes == ["left out, since they hold no numbers: 'day'"]
    assert table.Y["b"].tolist() == [3.0, 4.0, 5.0]


def test_columns_by_name(series):
    assert read_series(series, ["b,a"], "--columns").targets == ["b", "a"]
    with pytest.raises(CommandError, match="there is no column 'z'"):
        read_series(series, ["z"], "--columns")
    # A table that lacks what a model needs is no wrong usage.
    with pytest.raises(TableError, match="there is no column 'z'"):
        read_series(series, ["z"], None)
    with pytest.raises(TableError, match="row 1, column 'day': 'mon' is no number; a series needs"):
        read_series(series, ["day"], "--columns")


def test_a_table_without_numbers(folder):
    pd.DataFrame({"day": ["mon", "tue"]}).to_csv("s.csv", index=False)
    with pytest.raises(TableError, match="no column holds numbers"):
        read_series(folder / "s.csv", None, "--columns")


def test_networks(capsys):
    strength = np.array([[0.1, 0.5], [0.0, 0.2]])
    assert network_frame(strength, ["x", "y"]).to_dict("list") == {
        "influence on": ["x", "y"],
        "x": [0.1, 0.0],
        "y": [0.5, 0.2],
    }
    show_network(Screen(), strength, ["x", "y"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line and line[-1].startswith("0.")] == [
        ["y", "x", "0.5"],
        ["y", "y", "0.2"],
        ["x", "x", "0.1"],
    ]
