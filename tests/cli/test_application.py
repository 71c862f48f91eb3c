import subprocess
import sys

import pytest

import entangled_kernels
from entangled_kernels import cli
from entangled_kernels.cli.errors import CODES, explain
from entangled_kernels.cli.shell_command import command_line
from entangled_kernels.cli.result_tables import finding, pivot
from entangled_kernels.cli.screen import Screen
from entangled_kernels.storage import ExperimentResults

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


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            PermissionError(13, "Permission denied", "a.model"),
            "write",
            "not allowed to write or read (a.model)",
        ),
        (OSError(28, "No space left on device"), "write", "the disk is full; nothing was changed"),
        (OSError(5, "Input/output error", "x"), "write", "Input/output error (x)"),
        (ImportError("tables need pyarrow"), "missing", "tables need pyarrow"),
        (MemoryError(), "unexpected", "not enough memory"),
        (ZeroDivisionError("one by zero"), "unexpected", "unexpected ZeroDivisionError: one by zero"),
    ],
)
def test_errors_in_words(error, code, words):
    found, sentence = explain(error)
    assert found == CODES[code]
    assert words in sentence


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


def test_quiet_without_a_terminal(capsys):
    screen = Screen()
    with screen.progress() as report:
        report(1, 2, "half")
    with screen.working("thinking"):
        pass
    assert capsys.readouterr() == ("", "")


def test_bars_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with Screen().progress() as report:
        report(1, 2, "half of it")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "half of it" in shown.err
    assert "1/2" in shown.err


def test_cells_are_never_read_as_markup(capsys):
    Screen().table(["name [kW]"], [["[bold]x[/bold]"], [float("nan")], [None]])
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_long_names_are_not_folded(capsys):
    Screen().table(["name"], [["x" * 500]])
    assert "x" * 500 in capsys.readouterr().out


def test_json_has_no_nan(capsys):
    Screen(as_json=True).result({"a": float("nan"), "b": [float("inf"), 1.5], "c": None})
    assert capsys.readouterr().out == '{\n "a": null,\n "b": [\n  null,\n  1.5\n ],\n "c": null\n}\n'


def test_commands_can_be_copied():
    options = {"--targets": ["a b", "c, d"], "--seed": 0, "--quick": False, "--force": True, "--jobs": None}
    assert command_line("fit", "t.csv", options=options) == (
        """entangled-kernels fit t.csv --targets 'a b,"c, d"' --seed 0 --force"""
    )


def test_words_on_results():
    records = [
        {"method": method, "n": n, "split": 0, "nmse": nmse, "ni": 0.0}
        for n, errors in {10: (0.5, 0.4), 20: (0.4, 0.5)}.items()
        for method, nmse in zip(("KRR", "EKL"), errors, strict=True)
    ]
    results = ExperimentResults("r", "R", records, paper=[{"method": "KRR", "n": 10, "nmse": 0.45}])
    assert finding(results) == (
        "Against kernel ridge: EKL has the same error on average (from 20.0% less error at training rows "
        "n 10 to 25.0% more error at training rows n 20)."
    )
    assert pivot(results, "nmse") == (
        ["training rows n", "KRR", "KRR (paper)", "EKL"],
        [[10, 0.5, 0.45, 0.4], [20, 0.4, None, 0.5]],
        True,
    )
    assert pivot(results, "ni")[0] == ["training rows n", "EKL"]
    assert (
        finding(ExperimentResults("r", "R", [record for record in records if record["method"] == "EKL"]))
        == ""
    )
    assert "20.0% less error." in finding(ExperimentResults("r", "R", records[:2]))
