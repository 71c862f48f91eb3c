import pytest

from entangled_kernels.cli import options


@pytest.mark.parametrize("name", options.__all__)
def test_every_option_says_what_it_is(name):
    (option,) = getattr(options, name).__metadata__
    assert option.help.endswith(".")


def test_no_processes_are_wrong_usage(plant, run):
    wrong = run("fit", "plant.csv", "-t", "net load", "-o", "m", "--jobs", "0", code=2).stderr
    assert "must not be 0; 1 for one process, -1 for all" in wrong


@pytest.mark.parametrize("option", [("--seed", "-1"), ("--max-memory", "1"), ("--folds", "1")])
def test_numbers_have_bounds(plant, run, option):
    assert option[0] in run("fit", "plant.csv", "-t", "net load", "-o", "m", *option, code=2).stderr
