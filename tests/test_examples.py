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


@pytest.fixture(scope="module")
def partly_measured():
    """The names of the example, and what it compares on one split."""
    names = runpy.run_path(str(EXAMPLES / "partly_measured.py"))
    return names, names["compare"](n_train=40, n_splits=1)


def test_partly_measured(partly_measured):
    _, (results, model, order) = partly_measured
    ours, ridge, inside, width = results.T
    assert sorted(order) == sorted(model.target_names_)
    assert ours[-1] < 0.7 * ours[0]
    assert width[-1] < 0.9 * width[0]
    assert ours[-1] < ridge[-1]
    assert inside.min() > 0.85
    assert inside.max() < 0.99


def test_partly_measured_draws_and_ends_in_a_number(partly_measured, monkeypatch, capsys, tmp_path):
    names, compared = partly_measured
    figure, asked = tmp_path / "figure.svg", []
    monkeypatch.setattr(
        sys, "argv", ["partly_measured.py", "--train", "40", "--splits", "1", "--figure", str(figure)]
    )
    # What was compared once is not compared again.
    monkeypatch.setitem(names["main"].__globals__, "compare", lambda *sizes: asked.append(sizes) or compared)
    names["main"]()
    assert asked == [(40, 1)]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:7]] == ["0", "1", "2", "3", "4"]
    assert float(lines[-1].split()[5]) < 1.0
    assert "<svg" in figure.read_text()


def test_curves(example, monkeypatch, capsys):
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = example("plot_curves")
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert names["model"].coef_.shape[0] == 6
    assert 0.84 < names["inside"] < 0.95
    assert 0.84 < names["inside_after"] < 0.95
    assert names["share"] < 0.4
    assert len(names["figure"].axes) == 4
    names["plt"].close(names["figure"])
