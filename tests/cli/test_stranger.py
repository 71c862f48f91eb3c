"""A stranger's German spreadsheet, from the first error to an ONNX file, by the executable."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from entangled_kernels.io import read_table

TARGETS = ["Zink [mg/kg]", "Blei [µg/l]", "Kupfer, gelöst (ppm)"]
INPUTS = ["Bodenart", "Höhe [m]", "pH-Wert", "Ton (%)", "Abstand Fluß (m)"]
NAMES = ",".join(f'"{name}"' for name in TARGETS)


def execute(*arguments, code=0):
    """Stdout and stderr of the command."""
    command = [sys.executable, "-m", "entangled_kernels.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def spreadsheet(path, rows, seed, *, targets=True):
    """BOM, semicolons, decimal commas, an id, a date, text, and missing values in all columns."""
    rng = np.random.default_rng(seed)
    x, soil = rng.normal(size=(rows, 4)), rng.integers(0, 3, rows)
    Y = x[:, [0, 0, 3]] + x[:, [1, 2, 0]] + 0.7 * soil[:, None] + 0.3 * rng.normal(size=(rows, 3))
    Y = np.exp(0.3 * Y) * [100.0, 3.0, 0.5]
    lines = [["Proben-ID", "Datum", *INPUTS, *(f'"{name}"' for name in TARGETS[: 3 * targets])]]
    for i in range(rows):
        cells = [f"P{i:03d}", f"2023-0{1 + i % 9}-1{i % 10}", ["Lehm", "Sand", "Ton"][soil[i]]]
        numbers = [*(x[i] * [10, 1, 5, 30] + [300, 6, 20, 100]), *Y[i, : 3 * targets]]
        cells += [f"{number:.4f}".replace(".", ",") for number in numbers]
        for place, every in ((2, 11), (4, 9), (5, 13), (7, 5), (8, 6)):
            if place < len(cells) and i % every == 4:
                cells[place] = ""
        lines.append(cells)
    path.write_text("\r\n".join(";".join(line) for line in lines) + "\r\n", encoding="utf-8-sig")


@pytest.mark.slow
def test_the_script_of_a_stranger(folder):
    spreadsheet(folder / "boden.csv", 40, 0)
    spreadsheet(folder / "neu.csv", 12, 1, targets=False)
    spreadsheet(folder / "teil.csv", 12, 2)

    # The first error names all columns, and the command that it offers works.
    fit = ("fit", "boden.csv", "--targets", NAMES, "--folds", 3, "-o", "m.model")
    _, error = execute(*fit, code=3)
    assert all(name in error for name in ("'Proben-ID'", "'Datum'", "'Bodenart'"))
    offered = shlex.split(error.partition("This works: entangled-kernels ")[2])
    assert "Proben-ID,Datum" in offered
    assert {"--encode", "--missing", "median"} <= set(offered)
    shown, notes = execute(*offered)
    assert "boden.csv: 40 rows, 5 inputs, 3 targets." in shown
    assert "filled in, with medians" in notes

    kept = ("--keep", "Proben-ID", "-o", "p.csv")
    execute("predict", "m.model", "neu.csv", "--intervals", 0.9, *kept)
    written = Path("p.csv").read_text(encoding="utf-8")
    assert written.startswith("Proben-ID;Zink [mg/kg];Zink [mg/kg]_lower;")
    predicted = read_table("p.csv")
    assert predicted.notna().all(axis=None)
    execute("predict", "m.model", "neu.csv", "-o", "points.csv", "--output-format", "comma")
    assert read_table("points.csv")["Zink [mg/kg]"].tolist() == predicted["Zink [mg/kg]"].tolist()
    assert "," in Path("points.csv").read_text(encoding="utf-8").splitlines()[1]

    execute("predict", "m.model", "teil.csv", "--measured", "-o", "given.csv")
    given, found = read_table("teil.csv")[TARGETS], read_table("given.csv")
    assert given.isna().any(axis=None)
    assert found.notna().all(axis=None)
    known = given.notna().to_numpy()
    np.testing.assert_allclose(found.to_numpy()[known], given.to_numpy()[known])

    plan = json.loads(execute("plan", "m.model", "teil.csv", "--json")[0])
    assert plan["rows"] == 12
    assert sum(step["rows"] for step in plan["first"]) == 12 - plan["complete"] > 0

    told, _ = execute("inspect", "m.model", "--report", "model.html")
    assert not any(word in told.lower() for word in ("partial transpose", "negativity", "schmidt"))
    assert "PPT" in execute("inspect", "m.model", "--theory")[0]

    compare = ("compare", "boden.csv", "-t", NAMES, "-x", "Proben-ID,Datum", "--encode")
    few = ("--missing", "median", "-m", "mean,ridge,kernel-ridge", "-r", 2, "-n", 20)
    compared = json.loads(execute(*compare, *few, "--json", "--report", "compare.html")[0])
    errors = {row["method"]: row["mean"] for row in compared["summary"]["nmse"]}
    assert errors["ridge"] < errors["mean"]
    for page in ("model.html", "compare.html"):
        assert "Zink [mg/kg]" in Path(page).read_text(encoding="utf-8")

    pytest.importorskip("onnxruntime")
    from entangled_kernels.io import run_onnx

    execute("export", "m.model", "-o", "m.onnx")
    rows = read_table("neu.csv")[INPUTS]
    largest = np.abs(run_onnx("m.onnx", rows) - predicted[TARGETS].to_numpy()).max(axis=0)
    assert (largest < 1e-4 * given.std().to_numpy()).all()
