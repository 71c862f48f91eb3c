"""docs/architecture.md: its rooms are those of the package, and its journeys are what happens."""

import importlib
import re
import shlex
import sys
import warnings
from contextlib import chdir
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

import entangled_kernels
from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.streams import read_batches

ROOT = Path(entangled_kernels.__file__).parent
REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()
GRID = {"alphas": [0.1, 1.0, 10.0], "shrinkages": (0.5,), "target_alphas": (0.1,), "gains": (1.0,)}


def rooms():
    """Rooms in the order of CONTRIBUTING's list."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    names = re.findall(r"^    (\w+)(?:/|\.py)\s", text, re.MULTILINE)
    return {name: level for level, name in enumerate(names)}


def journey(title):
    """(depth, name) of every function of a journey."""
    section = PAGE.split(f"### {title}\n")[1].split("\n#")[0]
    lines = re.findall(r"^    ( *)([\w.]+)$", section, re.MULTILINE)
    return [(len(indent) // 4, name) for indent, name in lines]


def fit(X, Y, folder):
    EntangledKernelRidge(StandardScaler()).fit(X, Y)


def fit_with_selection(X, Y, folder):
    EntangledKernelRidgeCV(StandardScaler(), cv=3, random_state=0, **GRID).fit(X, Y)


def fit_batches(X, Y, folder):
    (folder / "rows").mkdir()
    table = pd.DataFrame(np.hstack([X, Y]), columns=list("abcyz"))
    table.to_csv(folder / "rows" / "t.csv", index=False)
    reader = read_batches(folder / "rows", targets=["y", "z"], batch_rows=20)
    EntangledKernelRidge(StandardScaler()).fit_batches(reader, checkpoint=folder / "state")


def fit_dask(X, Y, folder):
    with dask.config.set(scheduler="sync"):
        EntangledKernelRidge(StandardScaler()).fit(da.from_array(X, chunks=(20, 3)), Y)


def command_line(X, Y, folder):
    """The command as it stands on the page, in a folder with such a table."""
    from entangled_kernels.cli.application import app

    command = re.search(r"^`entangled-kernels (.*)`$", PAGE.split("### Command line\n")[1], re.MULTILINE)[1]
    table = pd.DataFrame(np.hstack([X, Y[:, :1]]), columns=["a", "b", "c", "net load"])
    table.to_csv(folder / "plant.csv", index=False)
    with chdir(folder), pytest.raises(SystemExit) as done:
        app(shlex.split(command))
    assert done.value.code == 0
    assert (folder / "plant.model").exists()


JOURNEYS = {
    "fit": fit,
    "fit with selection": fit_with_selection,
    "fit_batches with a checkpoint": fit_batches,
    "Dask": fit_dask,
    "Command line": command_line,
}


def entered(run):
    """Names of all functions of the package that were entered, in their order."""
    names = []

    def watch(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            module = code.co_filename[len(str(ROOT)) + 1 : -3].replace("/", ".")
            names.append(f"{module}.{code.co_qualname}")

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("title", JOURNEYS)
def test_a_journey_is_what_happens(title, make_rows, tmp_path):
    X, Y = make_rows(60, 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = iter(entered(lambda: JOURNEYS[title](X, Y, tmp_path)))
    listed = journey(title)
    assert len(listed) > 5
    for _, name in listed:
        assert name in names, f"{name} was not entered, or not in this order"


@pytest.mark.parametrize("title", JOURNEYS)
def test_no_room_is_entered_again(title):
    level, listed = rooms(), journey(title)
    for place, (depth, name) in enumerate(listed):
        below = []
        for other_depth, other in listed[place + 1 :]:
            if other_depth <= depth:
                break
            assert level[other.split(".")[0]] <= level[name.split(".")[0]], f"{name} calls up to {other}"
            if other_depth == depth + 1 and other.split(".")[0] != name.split(".")[0]:
                below.append(other.split(".")[0])
        entered_rooms = [room for i, room in enumerate(below) if i == 0 or below[i - 1] != room]
        assert len(entered_rooms) == len(set(entered_rooms)), f"{name} returns to a room: {entered_rooms}"


@pytest.mark.parametrize("title", JOURNEYS)
def test_functions_are_there(title):
    for _, name in journey(title):
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            if ROOT.joinpath(*parts[:cut]).with_suffix(".py").exists():
                thing = importlib.import_module(".".join(["entangled_kernels", *parts[:cut]]))
                for attribute in parts[cut:]:
                    thing = getattr(thing, attribute)
                break
        else:
            raise AssertionError(f"no module of {name}")


def test_every_room_has_a_page():
    table = dict(re.findall(r"^\| `(\w+)/` \|.*\]\(([\w-]+\.md)\) \|$", PAGE, re.MULTILINE))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(table) == folders
    for page in table.values():
        assert len((REPOSITORY / "docs" / page).read_text()) > 500, page
