"""``datasets``: which tables there are, where they are looked for, whether they are there; a sample table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...tables import table_kind, write_table
from ...tables.phrases import counted, quoted
from ..files import check_output
from ..options import DataHome, Force, Json
from ..screen import Screen
from ..shell_command import command_line

__all__ = ["datasets"]

FETCHERS = {
    "concrete": "fetch_concrete_slump",
    "sarcos": "fetch_sarcos",
    "weather": "fetch_canadian_weather",
    "uwave": "fetch_uwave",
}

# Of the sample: constituents of wine that take a laboratory, those of them that new rows have, and new rows.
TARGETS = ["total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins", "proline"]
MEASURED = ["total_phenols", "flavanoids"]
NEW_ROWS = 40

Download = Annotated[bool, typer.Option("--download", help="Download those that are not there.")]
Export = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="FILE",
        help="Write a sample table to try the commands on, such as wine.csv, and new rows beside it.",
    ),
]


def datasets(
    data_home: DataHome = None,
    download: Download = False,
    export: Export = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """List the tables of the paper, or write a sample table.

    Tells where they are looked for and whether they are there.
    """
    screen = Screen(as_json=json)
    if export is not None:
        export_sample(screen, export, force=force)
        return
    entries = [look_for("digits", "load_digit_tasks", {})]
    for name, fetcher in FETCHERS.items():
        with screen.working(f"looking for {name}"):
            entries.append(look_for(name, fetcher, {"data_home": data_home, "download_if_missing": download}))
    keys = ("name", "function", "rows", "inputs", "outputs", "state", "file")
    columns = ["there" if key == "state" else key for key in keys]
    screen.table(columns, [[entry[key] for key in keys] for entry in entries])
    for entry in entries:
        if entry["problem"]:
            screen.say(f"{entry['name']}: {entry['problem']}")
    screen.result({"datasets": entries})


def export_sample(screen: Screen, path: Path, *, force: bool) -> None:
    """Write rows of scikit-learn's table of wines, complete ones and new ones that lack some targets."""
    from sklearn.datasets import load_wine

    table_kind(path)
    suffixes = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    beside = path.with_name(f"{path.name.removesuffix(suffixes)}-new{suffixes}")
    for one in (path, beside):
        check_output(one, force=force)
    rows = load_wine(as_frame=True).data
    rows = rows.iloc[np.random.default_rng(0).permutation(len(rows))].reset_index(drop=True)
    known, new = rows[NEW_ROWS:], rows[:NEW_ROWS].copy()
    new[[name for name in TARGETS if name not in MEASURED]] = np.nan
    write_table(known, path)
    write_table(new, beside)
    screen.say(f"Wrote {counted(len(known), 'wine')} to {path}.")
    screen.say(f"Wrote {counted(len(new), 'wine')} to {beside}, with only {quoted(MEASURED)} of the targets.")
    screen.say("To fit: " + command_line("fit", path, options={"--targets": TARGETS, "--out": "wine.model"}))
    screen.result({"tables": [str(path), str(beside)], "targets": TARGETS, "measured": MEASURED})


def look_for(name: str, function: str, options: dict[str, Any]) -> dict[str, Any]:
    """Load a table where it is, and tell its shape and place, or what is wrong."""
    from ... import datasets

    unknown = dict.fromkeys(("rows", "inputs", "outputs", "state", "file", "problem"))
    entry = {"name": name, "function": function, **unknown}
    try:
        table = getattr(datasets, function)(**options)
    except (FileNotFoundError, ValueError) as error:
        state = "no" if isinstance(error, FileNotFoundError) else "damaged"
        return entry | {"state": state, "problem": str(error)}
    files = table.get("filenames") or [table.get("filename") or "comes with scikit-learn"]
    return entry | {
        "rows": len(table.data),
        "inputs": table.data.shape[1],
        "outputs": table.target.shape[1],
        "state": "yes",
        "file": str(files[0]),
    }
