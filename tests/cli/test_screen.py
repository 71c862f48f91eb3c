import json

import pytest

from entangled_kernels.cli.screen import Screen, say_error, say_note

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
    assert capsys.readouterr().out == '{\n "a": null,\n "b": [\n  null,\n  1.5\n ],\n "c": null\n}\n'


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
