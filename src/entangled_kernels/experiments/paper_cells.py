"""Every figure of the paper's tables, as data: means, deviations, improvements, numbers of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..storage import Record

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
        """Methods of ours that the figure is about."""
        return ("EKL", "ptrEKL") if self.method == SHARED else (self.method,)


def _cells(
    sizes: tuple[int, ...], rows: Mapping[str, tuple[float, ...]], partitions: int, digits: int
) -> list[Cell]:
    """Cells of a table whose rows are mean, deviation and improvement for one size after the other."""
    found = []
    for method, figures in rows.items():
        for i, n in enumerate(sizes):
            nmse, deviation, ni = map(float, figures[3 * i : 3 * i + 3])
            found.append(Cell(method, {"n": n}, nmse, deviation, ni, partitions, digits))
    return found


def _uwave_cells(
    settings: Iterable[Record], rows: Mapping[tuple[int, str], tuple[float, ...]], table: str
) -> list[Cell]:
    """Cells of a table of uWave whose rows are mean and deviation for one setting after the other."""
    found = []
    for (number, method), figures in rows.items():
        for i, keys in enumerate(settings):
            nmse, deviation = figures[2 * i : 2 * i + 2]
            own = {"task": f"class {number}", **keys}
            found.append(Cell(method, own, nmse, deviation, None, 3, 3, table))
    return found


# fmt: off
SARCOS = {
    "KRR": (.2418, .0281, 0, .1668, .0097, 0, .1441, .0037, 0, .1273, .0006, 0),
    "OKL": (.2445, .0296, -.0109, .1672, .0099, -.0026, .1442, .0037, -.0009, .1273, .0006, -.0000),
    SHARED: (.2381, .0250, .0139, .1661, .0097, .0040, .1440, .0037, .0003, .1273, .0006, .0001),
}
WEATHER = {
    "KRR": (.951, .101, 0, .813, .141, 0, .761, .037, 0),
    "OKL": (1.062, .250, -.092, .900, .196, -.094, .788, .058, -.034),
    SHARED: (.840, .084, .124, .722, .036, .107, .728, .033, .044),
}
CONCRETE = {
    "KRR": (1.070, .347, 0, .710, .183, 0, .552, .065, 0),
    "OKL": (1.069, .347, .001, .710, .183, .001, .552, .064, .000),
    "EKL": (.796, .164, .266, .634, .103, .097, .547, .046, .007),
    "ptrEKL": (.843, .186, .212, .726, .170, -.023, .627, .058, -.130),
}
UWAVE = {
    (1, "KRR"): (3.012, .2337, 2.853, .0780, 2.262, .3157),
    (1, "OKL"): (3.403, .0899, 3.232, .1877, 2.440, .3451),
    (1, "EKL"): (1.136, .0937, 1.123, .0852, 1.107, .1019),
    (1, "ptrEKL"): (1.323, .1807, 1.208, .0932, 1.132, .1221),
    (2, "KRR"): (1.773, .0655, 2.008, .3391, 1.937, .3170),
    (2, "OKL"): (1.802, .0603, 2.096, .3673, 2.074, .3483),
    (2, "EKL"): (.991, .0517, .943, .0237, .908, .0130),
    (2, "ptrEKL"): (1.026, .0509, .940, .0143, .914, .0138),
    (3, "KRR"): (1.081, .1437, 1.028, .1235, .902, .1020),
    (3, "OKL"): (1.173, .1720, 1.146, .1753, .993, .1486),
    (3, "EKL"): (.671, .0202, .638, .0214, .632, .0325),
    (3, "ptrEKL"): (.681, .0226, .651, .0345, .632, .0307),
}
UWAVE_RANKS = {
    (1, "EKL"): (1.123, .0852, 1.134, .0762, 1.171, .1199),
    (1, "ptrEKL"): (1.208, .0932, 1.228, .0970, 1.325, .1630),
    (2, "EKL"): (.943, .0237, .939, .0091, .941, .0074),
    (2, "ptrEKL"): (.940, .0143, .958, .0053, .987, .0137),
    (3, "EKL"): (.638, .0214, .644, .0222, .654, .0271),
    (3, "ptrEKL"): (.651, .0345, .647, .0344, .647, .0394),
}
# fmt: on

# By the name of the experiment.
CELLS: dict[str, list[Cell]] = {
    "sarcos": _cells((50, 100, 200, 1000), SARCOS, 10, 4),
    "weather": _cells((5, 10, 15), WEATHER, 5, 3),
    "concrete": _cells((12, 20, 40), CONCRETE, 10, 3),
    "uwave": [
        *_uwave_cells([{"rank": "100%", "n": n} for n in (20, 30, 40)], UWAVE, "over n"),
        *_uwave_cells(
            [{"rank": share, "n": 30} for share in ("100%", "60%", "20%")], UWAVE_RANKS, "over rank"
        ),
    ],
}


def as_records(name: str) -> list[Record]:
    """The cells of an experiment in the keys of its records, for tables and marks in figures."""
    found = {}
    for cell in CELLS.get(name, []):
        for method in cell.ours:
            record = {"method": method, **cell.keys, "nmse": cell.nmse}
            key = tuple(record[key] for key in ("method", *cell.keys))
            found[key] = record | ({} if cell.ni is None else {"ni": cell.ni})
    return list(found.values())
