"""Interrupts, standard streams and what is shown on a screen."""

import io
import json
import os
import signal
import sys
from pathlib import Path

import pandas as pd
import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.files import STREAM, check_streams, local_table, output_name
from entangled_kernels.cli.process import exit_at_interrupt
from entangled_kernels.cli.screen import Screen, say_error, say_note
from entangled_kernels.io import read_table, write_table


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_ends_the_process_while_modules_are_imported(monkeypatch, capfd):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with exit_at_interrupt():
        signal.raise_signal(signal.SIGINT)
    assert ended == [130]
    assert capfd.readouterr().err.startswith("error: interrupted; files that were not finished")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


FRAME = pd.DataFrame({"a": [1.5, 2.5], "b": [3.0, 4.0]})


class Bytes:
    """A standard input that holds these bytes."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "npz"])
def test_the_kind_is_told_by_the_first_bytes(monkeypatch, folder, kind):
    write_table(FRAME, f"t.{kind}")
    monkeypatch.setattr(sys, "stdin", Bytes(Path(f"t.{kind}").read_bytes()))
    with local_table(STREAM) as path:
        assert path.name == f"stdin.{kind}"
        pd.testing.assert_frame_equal(read_table(path), FRAME)
    assert not path.parent.exists()


def test_one_thing_goes_to_standard_output():
    check_streams(STREAM, json=False)
    check_streams(Path("p.csv"), json=True)
    with pytest.raises(CommandError, match="--json and --out - both write to standard output"):
        check_streams(STREAM, json=True)
    assert (output_name(STREAM), output_name(Path("p.csv"))) == ("standard output", "p.csv")


HIDDEN = ["\x1b[31m", "\x9b31m", "\x07", "\x7f", "\u202e", "\u2066", "\u200f", "\u061c"]


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


def test_json_has_no_nan(capsys):
    Screen(as_json=True).result({"a": float("nan"), "b": [float("inf"), 1.5], "c": None})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": None}


@pytest.mark.parametrize("text", HIDDEN)
def test_what_terminals_obey_is_shown(capsys, text):
    screen, name = Screen(), f"net{text}load"
    screen.say(name)
    screen.table([name], [[name]], title=name)
    say_error(name)
    say_note(name)
    shown = capsys.readouterr()
    assert text[0] not in shown.out + shown.err
    assert (shown.out + shown.err).count(f"net\\u{ord(text[0]):04x}{text[1:]}load") == 6
    Screen(as_json=True).result({name: [name]})
    shown = capsys.readouterr().out
    assert text[0] not in shown
    assert json.loads(shown) == {name: [name]}


def test_a_sentence_is_one_line(capsys):
    say_note("the wind\nhas turned")
    Screen().say("a\nb")
    shown = capsys.readouterr()
    assert shown.err == "note: the wind has turned\n"
    assert shown.out == "a\\u000ab\n"
