"""What the command says of odd tables, wrong files and long work, and how soon."""

import shlex
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from entangled_kernels.cli import screen as screen_module
from entangled_kernels.cli.screen import Screen
from entangled_kernels.io import open_model, read_table

TARGETS = "net load,peak load (kW)"


def test_all_columns_of_text_are_named_with_the_command_that_works(plant, run):
    plant["Bodenart"], plant["Ort"] = ["Sand", "Ton"] * 20, ["Ulm", "Aix"] * 20
    plant["Datum"] = "12.03.2024"
    plant.drop(columns="id").to_csv("my plant.csv", index=False)
    error = run(f"fit 'my plant.csv' -t '{TARGETS}' -f linear -o m.model", code=3).stderr
    for words in (
        "3 columns hold text and dates",
        "'Bodenart' (row 1: 'Sand')",
        "'Ort' (row 1: 'Ulm')",
    ):
        assert words in error
    command = shlex.split(error.partition("This works: entangled-kernels ")[2])
    assert command[-3:] == ["--exclude", "Datum", "--encode"]
    run(*command)
    assert open_model("m.model").info["text"] == ["Bodenart", "Ort"]


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encode", ["", " --encode"])
def test_one_cell_that_is_no_number_is_named(plant, run, decimal, encode):
    plant = plant.drop(columns="id").astype(object)

    def error(column, row, cell):
        table = plant.copy()
        table.loc[row - 1, column] = cell
        table.to_csv("plant.csv", index=False, sep=";", decimal=decimal)
        # A cell of text among numbers makes pandas write points.
        text = Path("plant.csv").read_text().replace(".", decimal)
        Path("plant.csv").write_text(text.replace("n,d,", "n.d."))
        ways = f"{encode} --decimal {decimal}"
        return run(f"fit plant.csv -t '{TARGETS}' -f linear -o m.model{ways}", code=3).stderr

    message = error("pressure", 10, "n.d.")
    assert "row 10, column 'pressure': 'n.d.' is no number, but 39 of the 40" in message
    assert "leave the cell empty" in message
    message = error("peak load (kW)", 20, "<85")
    assert "row 20, column 'peak load (kW)': '<85' is no number" in message
    assert "limit of detection" in message


def test_a_number_too_large_to_be_squared_is_named(plant, run):
    plant.loc[6, "pressure"] = 1e300
    plant.to_csv("plant.csv", index=False)
    error = run(f"fit plant.csv -t '{TARGETS}' -x id -o m.model", code=3).stderr
    assert "row 7, column 'pressure': 1e+300 is too large" in error


@pytest.mark.parametrize("content", [bytes(range(256)) * 20, b"\x00\xff\n\xfe,\x80\n" * 50])
def test_bytes_that_are_no_text_are_one_error(run, content):
    Path("noise.csv").write_bytes(content)
    done = run("fit noise.csv -t a -o m", code=None)
    assert done.exit_code in (2, 3)
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: noise.csv")
    assert "not text" in done.stderr or "not in UTF-8" in done.stderr


def test_folders_that_are_not_there_are_not_made(plant, run, folder, fitted):
    for arguments in (
        f"fit plant.csv -t '{TARGETS}' -x id -o new/m.model",
        f"predict {fitted} plant.csv --out new/p.csv",
        "demo --out new/demo",
    ):
        assert "there is no folder new for" in run(arguments, code=2).stderr
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        "fit nothing.csv -t a -o m.model",
        "fit plant.csv -t 'no such column' -o m.model",
        "fit plant.csv -t pressure -o plant.csv",
        "predict nothing.model plant.csv -o p.csv",
        "compare plant.csv -t pressure --methods magic",
        "plan nothing.model plant.csv",
        "inspect nothing.model",
        "export nothing.model --out m.onnx",
        "demo --help;fit --help;predict --help;plan --help;inspect --help",
        "compare --help;export --help;reproduce --help;datasets --help",
    ],
)
def test_help_and_errors_do_not_wait_for_scikit_learn(plant, arguments):
    code = (
        "import sys; from entangled_kernels.cli import main\n"
        f"for arguments in {[shlex.split(one) for one in arguments.split(';')]!r}:\n"
        "    sys.argv[1:] = arguments\n"
        "    try:\n        main()\n    except SystemExit as end:\n        code = end.code\n"
        "print('sklearn' in sys.modules, code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    wanted = 0 if "--help" in arguments else 2
    assert done.stderr.splitlines()[-1] == f"False {wanted}"


def test_tables_are_written_in_the_dialect_of_the_input(plant, run, folder, fitted):
    plant.to_csv("plant.csv", index=False, sep=";", decimal=",")
    run(f"predict {fitted} plant.csv --out p.csv")
    names, first, *_ = (folder / "p.csv").read_text().splitlines()
    assert names == "net load;peak load (kW)"
    assert "," in first
    run(f"predict {fitted} plant.csv --out q.csv --output-format comma")
    assert (folder / "q.csv").read_text().startswith("net load,peak load (kW)\n")
    pd.testing.assert_frame_equal(read_table("p.csv"), read_table("q.csv"))
    run(f"plan {fitted} plant.csv --out plan.csv")
    assert (folder / "plan.csv").read_text().startswith("measure_1;reduction_1")
    # A table of whole numbers shows no decimal sign; that of the training table counts.
    plant.to_csv("comma.csv", index=False, sep=";", decimal=",")
    run(f"fit comma.csv -t '{TARGETS}' -x id -f linear -o comma.model")
    plant.select_dtypes("number").round().astype(int).to_csv("whole.csv", index=False, sep=";")
    run("predict comma.model whole.csv --out whole-p.csv")
    assert "," in (folder / "whole-p.csv").read_text().splitlines()[1]
    error = run(f"predict {fitted} plant.csv --out r.csv --output-format xml", code=2).stderr
    assert "--output-format must be one of comma, semicolon, tab" in error


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(screen_module, "PAUSE", 0.01)
    shown, until = "", time.monotonic() + 5.0
    with Screen().progress() as report:
        report(2, 5, "splits")
        while "splits: 2 of 5" not in shown and time.monotonic() < until:
            shown = capsys.readouterr().err
    assert "splits: 2 of 5 (0 s)" in shown
