import subprocess
import sys

import pytest

import entangled_kernels
from entangled_kernels import cli

COMMANDS = ["demo", "fit", "predict", "compare", "inspect", "reproduce", "datasets"]


def test_version(run):
    assert run("--version").stdout == f"entangled-kernels {entangled_kernels.__version__}\n"


def test_help_names_the_commands_and_the_exit_codes(run):
    shown = run("--help").stdout
    for command in COMMANDS:
        assert command in shown
    assert "Exit codes: 0 done" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run, command):
    assert "--json" in run(command, "--help").stdout


def test_unknown_commands_and_options(run):
    assert "No such command" in run("fitt", code=2).stderr
    assert "No such option" in run("fit", "a.csv", "--target", "b", "--frob", code=2).stderr


def test_without_typer_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("entangled_kernels.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match=r"needs typer.*pip install \"entangled-kernels\[cli\]\""):
        cli.main()


def test_no_such_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cli.nothing


def test_a_closed_pipe_is_no_error(folder):
    command = f"{sys.executable} -m entangled_kernels.cli datasets --data-home {folder} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_escapes_in_arguments_are_shown(run):
    wrong = run("fit", "a.csv", "--\x1b[2Jfrob", code=2).stderr
    assert "\x1b" not in wrong
    assert "[2Jfrob" in wrong
    wrong = run("--debug", "fit", "a\u202eb.csv", "-t", "y", "-o", "m", code=None)
    assert wrong.exit_code == 2
    assert "\u202e" not in wrong.stderr
    assert r"there is no file a\u202eb.csv" in wrong.stderr
