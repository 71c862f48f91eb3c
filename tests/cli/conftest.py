"""A new user's folder: small tables, and a way to run the command in it."""

import shlex
import shutil
import signal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.cli.application import app
from entangled_kernels.io import load_model, write_table

# A search of a few candidates, where the search itself is not what is tested.
SMALL = {
    "alphas": np.logspace(-5, 3, 9),
    "param_grid": {"shrinkage": (0.5,), "alignment_mix": (0.5, 1.0), "target_alpha": (0.1,)},
}
FIT = '-t "net load,peak load (kW)" -i \'inlet temp,"flow, l/s",pressure\' -f linear'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test works in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _small_search(request, monkeypatch):
    if "thorough" not in request.keywords:
        monkeypatch.setattr(
            "entangled_kernels.cli.models.new_search", partial(EntangledKernelRidgeCV, **SMALL)
        )
        monkeypatch.setattr("entangled_kernels.cli.models.BASELINES", ("ridge",))


@pytest.fixture
def small():
    """Parameters of that search."""
    return SMALL


@pytest.fixture
def run():
    """Run a command, given as one text or as arguments, and check its exit code."""

    def invoke(*arguments, code=0):
        if len(arguments) == 1:
            arguments = shlex.split(arguments[0])
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert code is None or result.exit_code == code, result.output
        assert "Traceback" not in result.output
        if code is not None and code > 2:
            assert result.stderr.splitlines()[-1].startswith("error: ")
        return result

    return invoke


def make_table(n=40, seed=0):
    """Two related targets with awkward names, three inputs and an id."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    common = np.sin(X[:, 0]) + X[:, 1]
    noise = 0.1 * rng.normal(size=(n, 2))
    columns = {"id": [f"s{i}" for i in range(n)]}
    columns |= {"inlet temp": X[:, 0], "flow, l/s": X[:, 1], "pressure": X[:, 2]}
    columns["net load"] = common + noise[:, 0]
    columns["peak load (kW)"] = 2.0 * common - X[:, 2] + noise[:, 1] + 5.0
    return pd.DataFrame(columns)


@pytest.fixture
def plant(folder):
    """The table as plant.csv."""
    table = make_table()
    table.to_csv(folder / "plant.csv", index=False)
    return table


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A model of that table, fitted once."""
    place = tmp_path_factory.mktemp("fitted")
    make_table().to_csv(place / "plant.csv", index=False)
    arguments = ["fit", place / "plant.csv", *shlex.split(FIT), "-o", place / "plant.model"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return place / "plant.model"


@pytest.fixture
def model(fitted, folder):
    """That model, and its file as plant.model."""
    shutil.copy(fitted, folder / "plant.model")
    return load_model("plant.model")


@pytest.fixture
def rows(folder):
    """Three files of a hundred rows each, with an id and a column of text."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(id=np.arange(300), kind="plain")
    table["y"], table["z"] = X[:, 0] + 0.1 * rng.normal(size=300), X[:, 1] * 2.0
    (folder / "rows").mkdir()
    for number in range(3):
        write_table(table[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    return table


@pytest.fixture
def _interruptible():
    """Interrupts as Python has them, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
