"""Examples run, and the numbers they end in hold."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example():
    return lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_digits(example):
    rows = {name: scores for name, *scores in example("digits")["compare"](n_train=20, n_splits=3)}
    assert list(rows) == ["kernel ridge", "entangled", "partial trace"]
    for alignment, accuracy, nmse in rows.values():
        assert accuracy > 0.85
        assert nmse < 0.35
        assert 0 < alignment < 1
    assert rows["entangled"][0] > rows["kernel ridge"][0] + 0.3


def test_digits_prints_its_table(example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits.py", "--train", "12", "--splits", "1"])
    example("digits")["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["method", "kernel", "entangled", "partial"]
