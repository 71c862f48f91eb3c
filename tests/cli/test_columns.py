import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.cli.columns import choose_columns, split_names
from entangled_kernels.cli.errors import CommandError

FRAME = pd.DataFrame(columns=["id", "net load", "flow, l/s", "t [C]", ""])


def test_names_with_commas():
    assert split_names(["a, b", '"x, y",z', " "]) == ["a", "b", "x, y", "z"]


@given(st.lists(st.sampled_from(["a", "net load", "größe", "a b c"]), min_size=1))
def test_plain_names_are_split_at_commas(names):
    assert split_names([",".join(names)]) == names


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
