"""Every figure of the paper's tables, from `paper_cells.csv`: means, deviations, improvements, partitions."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any, NamedTuple

from ..io import Record

__all__ = ["CELLS", "SHARED", "Cell", "as_records"]

# Tables that give EKL and ptrEKL one row in common.
SHARED = "EKL/ptrEKL"


class Cell(NamedTuple):
    """One mean of a table.

    Attributes
    ----------
    method : str
        KRR, OKL, EKL or ptrEKL; `SHARED` where EKL and ptrEKL have one row.
    keys : dict
        The setting: n, and for uWave the class (``task``) and the Kraus rank.
    nmse, deviation : float
        Mean and standard deviation over partitions.
    ni : float or None
        Normalised improvement over kernel ridge, where the table has it.
    partitions : int
        That the mean is over.
    digits : int
        Digits after the point of the mean; the improvement has as many.
    table : str
        "over rank" for the table of ranks, else "over n".
    """

    method: str
    keys: dict[str, Any]
    nmse: float
    deviation: float
    ni: float | None
    partitions: int
    digits: int
    table: str = "over n"

    @property
    def ours(self) -> tuple[str, ...]:
        """Methods of ours that stand beside the figure; the first is the one it is judged by."""
        return (SHARED, "EKL", "ptrEKL") if self.method == SHARED else (self.method,)


def _read() -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = {}
    with files(__package__).joinpath("paper_cells.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            keys = {key: row[key] for key in ("task", "rank") if row[key]} | {"n": int(row["n"])}
            means = float(row["nmse"]), float(row["deviation"]), float(row["ni"]) if row["ni"] else None
            counts = int(row["partitions"]), int(row["digits"])
            cell = Cell(row["method"], keys, *means, *counts, row["table"])
            cells.setdefault(row["experiment"], []).append(cell)
    return cells


# By the name of the experiment.
CELLS = _read()


def as_records(name: str) -> list[Record]:
    """The cells of an experiment in the keys of its records, for tables and marks in figures."""
    found = {}
    for cell in CELLS.get(name, []):
        record = {"method": cell.method, **cell.keys, "nmse": cell.nmse}
        key = tuple(record[key] for key in ("method", *cell.keys))
        found[key] = record | ({} if cell.ni is None else {"ni": cell.ni})
    return list(found.values())
