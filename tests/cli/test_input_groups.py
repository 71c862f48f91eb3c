import pandas as pd
import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.input_groups import name_pair, place_groups, read_groups
from entangled_kernels.cli.training_table import TrainingTable

X = pd.DataFrame({"flow": [1.0], "inlet a": [2.0], "inlet b": [3.0]})
TABLE = TrainingTable(list(X), ["y"], [], X, X[["flow"]], None, [])


def test_columns_and_patterns():
    groups = read_groups(["heat=inlet*", "water=flow"])
    assert place_groups(groups, TABLE) == {"heat": [1, 2], "water": [0]}
    assert place_groups(read_groups(None), TABLE) == {}
    assert name_pair("--set", " a = b=c ") == ("a", "b=c")


def test_what_is_refused():
    with pytest.raises(CommandError, match="--input-group 'a' is named twice"):
        read_groups(["a=x", "a=y"])
    with pytest.raises(CommandError, match="--input-group must be NAME=VALUE, got 'a'"):
        read_groups(["a"])
    with pytest.raises(CommandError, match="--input-group a: 'id' is not among the inputs"):
        place_groups({"a": ["id"]}, TABLE)
    text = TrainingTable(["kind"], ["y"], ["kind"], X, X[["flow"]], None, [])
    with pytest.raises(CommandError, match="--input-group needs inputs that are numbers"):
        place_groups({"a": ["kind"]}, text)
