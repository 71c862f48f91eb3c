"""``datasets``: which tables there are, where they are looked for, whether they are there; a sample table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...io import table_kind, write_table
from ...io.tables import counted, quoted
from ..files import check_output
from ..options import DataHome, Force, Json, Options, command_line
from ..screen import Screen

__all__ = ["DatasetsOptions", "datasets"]

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


@dataclass(frozen=True, kw_only=True)
class DatasetsOptions(Options):
    """Options of ``datasets``."""

    data_home: DataHome = None
    download: Annotated[bool, typer.Option("--download", help="Download those that are not there.")] = False
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Write a sample table to try the commands on, such as wine.csv, and new rows beside it.",
        ),
    ] = None
    force: Force = False
    json: Json = False


def datasets(options: DatasetsOptions) -> None:
    """List the tables of the paper, or write a sample table.

    Tells where they are looked for and whether they are there.
    """
    screen = Screen(as_json=options.json)
    if options.export is not None:
        export_sample(screen, options.export, force=options.force)
        return
    where = {"data_home": options.data_home, "download_if_missing": options.download}
    entries = [look_for("digits", "load_digit_tasks", {})]
    for name, fetcher in FETCHERS.items():
        with screen.working(f"looking for {name}"):
            entries.append(look_for(name, fetcher, where))
    keys = ("name", "function", "rows", "inputs", "outputs", "state", "file")
    columns = ["there" if key == "state" else key for key in keys]
    screen.table(columns, [[entry[key] for key in keys] for entry in entries])
    for entry in entries:
        if entry["problem"]:
            screen.say(f"{entry['name']}: {entry['problem']}")
    screen.result({"datasets": entries})


def export_sample(screen: Screen, path: Path, *, force: bool) -> None:
    """Write rows of scikit-learn's table of wines, complete ones and new ones that lack some targets."""
    table_kind(path)
    suffixes = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    beside = path.with_name(f"{path.name.removesuffix(suffixes)}-new{suffixes}")
    for one in (path, beside):
        check_output(one, force=force)
    import numpy as np
    from sklearn.datasets import load_wine

    rows = load_wine(as_frame=True).data
    rows = rows.iloc[np.random.default_rng(0).permutation(len(rows))].reset_index(drop=True)
    known, new = rows[NEW_ROWS:], rows[:NEW_ROWS].copy()
    new[[name for name in TARGETS if name not in MEASURED]] = np.nan
    write_table(known, path)
    write_table(new, beside)
    screen.say(f"Wrote {counted(len(known), 'wine')} to {path}.")
    screen.say(f"Wrote {counted(len(new), 'wine')} to {beside}, with only {quoted(MEASURED)} of the targets.")
    screen.say(
        "To fit: "
        + command_line("fit", path, options=[("--targets", ",".join(TARGETS)), ("--out", "wine.model")])
    )
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
