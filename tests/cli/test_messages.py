"""What the command says of odd tables, wrong files and long work, and how soon."""

import shlex
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli import screen as screen_module
from entangled_kernels.cli.results import winner_in_words
from entangled_kernels.cli.screen import Screen
from entangled_kernels.io import ExperimentResults, open_model, read_table

INPUTS = 'inlet temp,"flow, l/s",pressure'
TARGETS = "net load,peak load (kW)"
FIT = ("fit", "plant.csv", "-t", TARGETS, "-i", INPUTS, "-f", "linear", "-o", "m.model")


def test_all_columns_of_text_are_named_with_the_command_that_works(plant, run):
    plant["Bodenart"], plant["Ort"] = ["Sand", "Ton"] * 20, ["Ulm", "Aix"] * 20
    plant["Datum"] = "12.03.2024"
    plant.drop(columns="id").to_csv("my plant.csv", index=False)
    arguments = ("fit", "my plant.csv", "-t", TARGETS, "-f", "linear", "-o", "m.model")
    error = run(*arguments, code=3).stderr
    for words in (
        "3 columns hold text and dates",
        "'Bodenart' (row 1: 'Sand')",
        "'Ort' (row 1: 'Ulm')",
    ):
        assert words in error
    command = error.partition("This works: entangled-kernels ")[2]
    assert shlex.split(command)[-3:] == ["--exclude", "Datum", "--encode"]
    run(*shlex.split(command))
    assert open_model("m.model").info["text"] == ["Bodenart", "Ort"]


def test_a_number_too_large_to_be_squared_is_named(plant, run):
    plant.loc[6, "pressure"] = 1e300
    plant.to_csv("plant.csv", index=False)
    error = run(*FIT, code=3).stderr
    assert "row 7, column 'pressure': 1e+300 is too large" in error


@pytest.mark.parametrize("content", [bytes(range(256)) * 20, b"\x00\xff\n\xfe,\x80\n" * 50])
def test_bytes_that_are_no_text_are_one_error(folder, content):
    (folder / "noise.csv").write_bytes(content)
    command = [
        sys.executable,
        "-m",
        "entangled_kernels.cli",
        "fit",
        "noise.csv",
        "-t",
        "a",
        "-o",
        "m",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (2, 3)
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: noise.csv")


def test_folders_that_are_not_there_are_not_made(plant, run, folder, fitted):
    for arguments in (
        (*FIT[:-1], "new/m.model"),
        ("predict", fitted, "plant.csv", "--out", "new/p.csv"),
        ("demo", "--out", "new/demo"),
    ):
        assert "there is no folder new for" in run(*arguments, code=2).stderr
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "nothing.csv", "-t", "a", "-o", "m.model"),
        ("fit", "plant.csv", "-t", "no such column", "-o", "m.model"),
        ("fit", "plant.csv", "-t", "pressure", "-o", "plant.csv"),
        ("predict", "nothing.model", "plant.csv", "-o", "p.csv"),
        ("compare", "plant.csv", "-t", "pressure", "--methods", "magic"),
        ("plan", "nothing.model", "plant.csv"),
        ("inspect", "nothing.model"),
        ("export", "nothing.model", "--out", "m.onnx"),
        *(
            (name, "--help")
            for name in ("demo", "fit", "predict", "plan", "inspect", "compare", "export")
        ),
        *((name, "--help") for name in ("reproduce", "datasets")),
    ],
)
def test_help_and_errors_do_not_wait_for_scikit_learn(plant, arguments):
    code = (
        "import sys; from entangled_kernels.cli import main\n"
        f"sys.argv[1:] = {list(arguments)!r}\n"
        "try:\n    main()\nfinally:\n    print('sklearn' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "False"
    assert done.returncode == (0 if "--help" in arguments else 2)


def test_tables_are_written_in_the_dialect_of_the_input(plant, run, folder, fitted):
    plant.to_csv("plant.csv", index=False, sep=";", decimal=",")
    run("predict", fitted, "plant.csv", "--out", "p.csv")
    lines = (folder / "p.csv").read_text().splitlines()
    assert lines[0] == "net load;peak load (kW)"
    assert "," in lines[1]
    found = read_table("p.csv")
    run("predict", fitted, "plant.csv", "--out", "q.csv", "--output-format", "comma")
    assert (folder / "q.csv").read_text().startswith("net load,peak load (kW)\n")
    pd.testing.assert_frame_equal(found, read_table("q.csv"))
    run("plan", fitted, "plant.csv", "--out", "plan.csv")
    assert (folder / "plan.csv").read_text().startswith("measure_1;reduction_1")
    error = run(
        "predict", fitted, "plant.csv", "--out", "r.csv", "--output-format", "xml", code=2
    ).stderr
    assert "--output-format must be one of comma, semicolon, tab" in error


def test_limits_below_zero_of_positive_targets_are_told(folder, run):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60)})
    table["zinc"] = np.exp(table["x"] + 0.8 * rng.normal(size=60))
    table["level"] = table["x"] + rng.normal(size=60)
    table.to_csv("soil.csv", index=False)
    run("fit", "soil.csv", "-t", "zinc,level", "-f", "linear", "-o", "m.model")
    note = run("predict", "m.model", "soil.csv", "--intervals", 0.9, "-o", "p.csv").stderr
    assert "lower limits of 'zinc' are below zero" in note
    assert "--target-transform zinc=log" in note
    transformed = ("--target-transform", "zinc=log", "--force")
    run("fit", "soil.csv", "-t", "zinc,level", "-f", "linear", "-o", "m.model", *transformed)
    note = run("predict", "m.model", "soil.csv", "--intervals", 0.9, "-o", "q.csv").stderr
    assert "below zero" not in note


def test_export_takes_the_options_that_it_advises(plant, run, fitted):
    pytest.importorskip("onnx")
    plant.loc[3, "pressure"] = np.nan
    plant.to_csv("plant.csv", index=False)
    error = run("export", fitted, "--out", "m.onnx", "--check", "plant.csv", code=3).stderr
    assert "row 4, column 'pressure': the cell is empty" in error
    assert "--missing drop" in error
    assert "--exclude" not in error
    run("export", fitted, "--out", "m.onnx", "--check", "plant.csv", "--missing", "drop")
    run("export", fitted, "--onnx", "m.onnx", "--force")


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(screen_module, "PAUSE", 0.01)
    with Screen().progress() as report:
        report(2, 5, "splits")
        until = time.monotonic() + 5.0
        while (
            "splits: 2 of 5" not in (shown := capsys.readouterr().err) and time.monotonic() < until
        ):
            pass
    assert "splits: 2 of 5 (0 s)" in shown


def test_equal_errors_are_the_same_as():
    records = [
        {"method": name, "n": 20, "split": split, "nmse": 0.5}
        for name in ("PLS", "KRR")
        for split in (0, 1)
    ]
    words = winner_in_words(ExperimentResults("c", "Methods", records))
    assert "the same error as the next, KRR" in words
    assert "same error than" not in words


def test_three_rows_are_noted_once(plant, run):
    plant[:3].to_csv("plant.csv", index=False)
    notes = run(*FIT).stderr.splitlines()
    assert len(notes) == len(set(notes))
    assert sum("3 rows" in note or "three rows" in note for note in notes) <= 1
