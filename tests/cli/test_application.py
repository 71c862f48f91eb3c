import sys

import pytest
from typer.testing import CliRunner

import entangled_kernels
from entangled_kernels import cli
from entangled_kernels.cli.application import COMMANDS, app
from entangled_kernels.cli.errors import CODES, CommandError, explain
from entangled_kernels.io import ModelFileError, TableError


def test_version(run):
    assert run("--version").stdout == f"entangled-kernels {entangled_kernels.__version__}\n"


def test_help_names_the_commands_and_the_exit_codes(run):
    shown = run("--help").stdout
    for command in COMMANDS:
        assert command in shown
    assert "Exit codes: 0 done" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run, command):
    shown = run(command, "--help").stdout
    assert "--json" in shown
    assert COMMANDS[command] in " ".join(shown.split())


def test_without_typer_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("entangled_kernels.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match=r"needs typer.*pip install \"entangled-kernels\[cli\]\""):
        cli.main()


def test_errors_of_usage_are_a_line_of_usage_and_one_that_says_error(run):
    for arguments in ("fit t.csv", "fit t.csv --frob", "fit t.csv --seed -1", "fitt t.csv"):
        usage, error = run(arguments, code=2).stderr.splitlines()
        assert usage.startswith("Usage: entangled-kernels")
        assert error.startswith("error: ")
    assert run("", code=2).stderr.startswith("Usage: ")


@pytest.mark.parametrize("sign", ["\x1b", "\x9b", "\u202e", "\u2066"])
def test_what_terminals_obey_is_shown_wherever_it_comes_from(sign):
    for arguments in (
        ["fit", "a.csv", f"--{sign}]frob"],
        [f"{sign}]frob"],
        ["fit", f"{sign}]frob", "-t", "y", "-o", "m"],
        ["--debug", "fit", f"{sign}]frob", "-t", "y", "-o", "m"],
    ):
        wrong = CliRunner().invoke(app, arguments)
        assert wrong.exit_code == 2
        assert sign not in wrong.output
        assert "]frob" in wrong.output


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            PermissionError(13, "Permission denied", "m"),
            "write",
            "not allowed to write or read (m)",
        ),
        (OSError(28, "No space left on device"), "write", "the disk is full; nothing was changed"),
        (OSError(5, "Input/output error", "x"), "write", "Input/output error (x)"),
        (ImportError("tables need pyarrow"), "missing", "tables need pyarrow"),
        (MemoryError(), "unexpected", "not enough memory"),
        (ZeroDivisionError("by 0"), "unexpected", "unexpected ZeroDivisionError: by 0"),
        (CommandError("no"), "usage", "no"),
        (CommandError("no", "missing"), "missing", "no"),
        (TableError("t.csv", "wet"), "data", "t.csv: wet"),
        (ModelFileError("odd"), "model", "odd"),
        (KeyboardInterrupt(), "interrupted", "interrupted"),
    ],
)
def test_errors_in_words(error, code, words):
    found, sentence = explain(error)
    assert found == CODES[code]
    assert words in sentence
