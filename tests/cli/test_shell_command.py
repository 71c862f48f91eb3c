import shlex

import pytest

from entangled_kernels.cli.columns import split_names
from entangled_kernels.cli.shell_command import command_line


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
