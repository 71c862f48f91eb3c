import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.cli.shell_command import command_line, split_names


def test_commands_can_be_copied():
    options = {"--targets": ["a b", "c, d"], "--seed": 0, "--quick": False, "--force": True, "--jobs": None}
    assert command_line("fit", "t.csv", options=options) == (
        """entangled-kernels fit t.csv --targets 'a b,"c, d"' --seed 0 --force"""
    )


NAMES = ["net load", "flow, l/s", 'say "x", y', "it's", "a;b & $(c)", "größe"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_comes_back_from_a_shell(name):
    words = shlex.split(command_line("fit", f"{name}.csv", options={"--targets": NAMES, "--out": name}))
    assert words[:3] == ["entangled-kernels", "fit", f"{name}.csv"]
    assert split_names([words[4]]) == NAMES
    assert words[6] == name


def test_a_dash_begins_no_file():
    assert command_line("inspect", "-m.model", options={}) == "entangled-kernels inspect ./-m.model"
    assert command_line("fit", "-", options={}) == "entangled-kernels fit -"


def test_names_with_commas():
    assert split_names(["a, b", '"x, y",z', " "]) == ["a", "b", "x, y", "z"]


@given(st.lists(st.sampled_from(["a", "net load", "größe", "a b c"]), min_size=1))
def test_plain_names_are_split_at_commas(names):
    assert split_names([",".join(names)]) == names
