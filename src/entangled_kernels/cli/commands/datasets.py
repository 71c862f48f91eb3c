"""``datasets``: which tables there are, where they are looked for, and whether they are there."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..options import DataHome, Json
from ..screen import Screen

__all__ = ["datasets"]

FETCHERS = {
    "concrete": "fetch_concrete_slump",
    "sarcos": "fetch_sarcos",
    "weather": "fetch_canadian_weather",
    "uwave": "fetch_uwave",
}

Download = Annotated[bool, typer.Option("--download", help="Download those that are not there.")]


def datasets(data_home: DataHome = None, download: Download = False, json: Json = False) -> None:
    """List the tables of the paper.

    Tells where they are looked for and whether they are there.
    """
    screen = Screen(as_json=json)
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


def look_for(name: str, function: str, options: dict[str, Any]) -> dict[str, Any]:
    """Load a table where it is, and tell its shape and place, or what is wrong."""
    from ... import datasets

    entry = dict.fromkeys(("name", "function", "rows", "inputs", "outputs", "state", "file", "problem"))
    entry |= {"name": name, "function": function}
    try:
        table = getattr(datasets, function)(**options)
    except (FileNotFoundError, ValueError) as error:
        state = "no" if isinstance(error, FileNotFoundError) else "damaged"
        return entry | {"state": state, "problem": str(error)}
    files = table.get("filenames") or [table.get("filename") or "comes with scikit-learn"]
    shape = {"rows": len(table.data), "inputs": table.data.shape[1], "outputs": table.target.shape[1]}
    return entry | shape | {"state": "yes", "file": str(files[0])}
