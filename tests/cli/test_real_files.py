"""The executable on real files: other encodings, missing values, dates, pipes, interrupts."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.io import open_model, read_table, save_model
from entangled_kernels.streams import TextFormat

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
EXECUTABLE = shutil.which("entangled-kernels", path=sysconfig.get_path("scripts"))
FIT = ("--targets", "Fe,Cu_lower,Cu", "--features", "linear", "--out", "m.model")
# These interrupt the process: when it begins to import scikit-learn, and when all but the last step
# of writing a file is done.
INTERRUPTS = {
    "importing": """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "sklearn":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
""",
    "writing": """
import os, signal
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGINT)
""",
}


def execute(*arguments, stdin=None, **settings):
    """Exit code, stdout and stderr of the executable."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
    done = subprocess.run([EXECUTABLE, *map(str, arguments)], input=stdin, **settings)
    assert b"Traceback" not in done.stderr
    return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()


def execute_unread(*arguments):
    """Exit code and stderr of the executable, with nobody to read its stdout."""
    read, write = os.pipe()
    os.close(read)
    code, _, errors = execute(*arguments, stdout=write)
    os.close(write)
    return code, errors


@pytest.fixture
def laboratory(folder):
    """A German spreadsheet: decimal commas, an umlaut, a date, a name twice, missing values."""
    rng = np.random.default_rng(0)
    lines = ["Datum;Größe (µm);Temp;Fe;Cu_lower;Cu;x;x"]
    for place, (size, heat) in enumerate(rng.normal(size=(30, 2))):
        numbers = [size, heat, size + 0.1 * heat, heat - size, size]
        cells = [f"{number:.4f}".replace(".", ",") for number in numbers]
        if place in (3, 7):
            cells[1] = ""
        lines.append(";".join(["12.03.2024", *cells, "1", "2"]))
    content = "\r\n".join(lines).encode("cp1252")
    Path("labor.csv").write_bytes(content)
    return content


@pytest.mark.slow
def test_from_a_pipe_to_a_model_to_a_pipe(laboratory):
    reading = ("--encoding", "cp1252", "--exclude", "Datum,x", "--missing", "median")
    code, shown, notes = execute("fit", "-", *FIT, *reading, stdin=laboratory)
    assert code == 0, notes
    assert shown.startswith("stdin.csv: 30 rows, 2 inputs, 3 targets.")
    assert "note: 2 missing values of inputs filled in, with medians where they hold" in notes
    saved = open_model("m.model")
    assert saved.info["inputs"] == ["Größe (µm)", "Temp"]
    assert shlex.split(saved.info["command"])[2] == "-"
    rows = read_table("labor.csv", TextFormat(encoding="cp1252"))
    expected = saved.model.predict(rows[saved.info["inputs"]])

    code, shown, notes = execute(
        "predict", "m.model", "-", *reading[:2], "-o", "-", stdin=laboratory
    )
    assert code == 0, notes
    names, *cells = shown.splitlines()
    # In the dialect of the input.
    assert names == "Fe;Cu_lower;Cu"
    found = [[float(cell.replace(",", ".")) for cell in line.split(";")] for line in cells]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert "Wrote 30 rows of 3 targets to standard output." in notes
    predict = ("predict", "m.model", "labor.csv", *reading[:2], "--out")
    assert execute_unread(*predict, "-") == (0, "")

    # With the intervals of Cu there would be two columns of one name.
    code, _, error = execute(*predict, "p.csv", "--intervals", "0.9")
    assert code == 2
    assert error.startswith("error: two columns of the output would have the name 'Cu_lower'")
    assert not Path("p.csv").exists()


def test_rows_are_dropped_and_what_is_read_is_never_replaced(laboratory):
    reading = ("--encoding", "cp1252", "--exclude", "Datum,x", "--missing", "drop")
    code, shown, notes = execute("fit", "labor.csv", *FIT, *reading)
    assert code == 0, notes
    assert shown.startswith("labor.csv: 28 rows, 2 inputs")
    assert "note: 2 rows of 30 have a missing input and are left out" in notes
    code, _, error = execute("fit", "labor.csv", *FIT[:-1], "labor.csv", "--force")
    assert (code, error) == (
        2,
        "error: labor.csv is read by this command, and would be lost; write to another file\n",
    )
    assert Path("labor.csv").read_bytes() == laboratory


def test_help_and_wrong_usage_are_quick_and_a_closed_pipe_is_no_error(folder):
    """Nothing that takes long is imported to show the help."""
    code = (
        "import sys; from entangled_kernels.cli import main; sys.argv[1:] = ['--help']\n"
        "try:\n    main()\nfinally:\n"
        "    print({'sklearn', 'scipy', 'pandas', 'pyarrow'} & set(sys.modules), file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("Usage: entangled-kernels")
    assert shown.stderr == "set()\n"
    assert execute_unread("--help") == (0, "")
    code, _, error = execute("fit", "t.csv")
    usage, sentence = error.splitlines()
    assert code == 2
    assert usage.startswith("Usage: entangled-kernels fit [OPTIONS]")
    assert sentence.startswith("error: Missing option '--targets' / '-t'")
    # The work is done, whoever reads about it.
    assert execute_unread("datasets", "--export", "wine.csv.gz") == (0, "")
    assert len(read_table("wine.csv.gz")) == 138


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal to send to oneself")
@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("when", INTERRUPTS)
def test_an_interrupt_leaves_no_half_files(folder, when):
    (folder / "sitecustomize.py").write_text(INTERRUPTS[when])
    (folder / "t.csv").write_text("a,Fe,Cu_lower,Cu\n1,2,3,4\n2,3,4,6\n5,6,7,7\n3,2,5,1\n")
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {"env": os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}}
    code, shown, error = execute("fit", "t.csv", *FIT, **settings)
    assert (code, shown) == (130, "")
    assert error.splitlines()[-1] == (
        "error: interrupted; files that were not finished were left as they were"
    )
    assert sorted(os.listdir()) == ["sitecustomize.py", "t.csv"]


def test_a_fresh_process_predicts_what_the_process_that_fitted_does(folder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    Y = X.to_numpy() @ rng.normal(size=(3, 2)) + 0.3 * rng.normal(size=(40, 2))
    Y = pd.DataFrame(Y, columns=["y", "z"])
    model = EntangledKernelRidgeCV([StandardScaler()], random_state=0).fit(X, Y)
    save_model(model, "m.model")
    X.to_csv("new.csv", index=False)
    assert execute("predict", "m.model", "new.csv", "-o", "p.parquet")[0] == 0
    np.testing.assert_allclose(read_table("p.parquet"), model.predict(X), rtol=1e-12)


@pytest.mark.slow
def test_the_commands_of_the_readme_run_as_they_stand(run):
    block = README.split("## Without Python")[1].split("```sh\n")[1].split("```")[0]
    commands = re.findall(r"^entangled-kernels (.*)$", block, re.MULTILINE)
    assert len(commands) > 6
    for command in commands:
        # Fewer methods and draws than by default, which all compare alike.
        fewer = "-m ridge,PLS -n 40 -r 2" if command.startswith("compare") else ""
        run(*shlex.split(command, comments=True), *fewer.split())
