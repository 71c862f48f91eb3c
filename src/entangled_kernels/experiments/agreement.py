"""The paper's tables beside ours, cell by cell, with a verdict on each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..io import ExperimentResults
from ..linalg import Array
from .paper_cells import CELLS, Cell
from .verdicts import BESIDE, Verdict, judge

__all__ = ["METRICS", "CellVerdict", "judge_cells", "values_by_split"]

# What is compared, with the words for it.
METRICS = {
    "nmse": "nMSE",
    "difference": "difference to kernel ridge, paired by partition",
    "ni": "normalised improvement over kernel ridge (nI)",
}
REFERENCE = "KRR"
VARIANTS = ("", ", early", ", lambda 1")


class CellVerdict(NamedTuple):
    """One figure of the paper, what of ours stands beside it, and whether they agree.

    Attributes
    ----------
    cell : Cell
    metric : str
        A key of `METRICS`.
    method : str
        Ours.
    paper : float
    deviation : float or None
        Published deviation over partitions, of the nMSE alone.
    verdict : Verdict
    """

    cell: Cell
    metric: str
    method: str
    paper: float
    deviation: float | None
    verdict: Verdict


def judge_cells(results: ExperimentResults, rng: np.random.Generator) -> list[CellVerdict]:
    """Verdicts on every figure that the paper has for an experiment.

    A figure is set beside every form of its method that the records have: as published, stopped early, and
    with lambda 1. Differences and improvements are to the kernel ridge of the same partitions, with lambda 1
    to that with lambda 1. A figure that EKL and ptrEKL have in common is judged by the one of them that
    cross-validation picks; each of the two stands beside it, without a verdict.
    """
    cells = CELLS.get(results.name, [])
    found = [one for cell in cells for one in _judge_cell(cell, cells, results, rng)]
    return [
        one if _is_meant(one) else one._replace(verdict=one.verdict._replace(word=BESIDE)) for one in found
    ]


def _is_meant(one: CellVerdict) -> bool:
    return one.method.partition(",")[0] == one.cell.method


def _judge_cell(
    cell: Cell, cells: list[Cell], results: ExperimentResults, rng: np.random.Generator
) -> Iterator[CellVerdict]:
    unit = 10.0**-cell.digits
    full = cell.keys | ({"rank": "100%"} if "rank" in cell.keys else {})
    reference = next(other.nmse for other in cells if other.method == REFERENCE and other.keys == full)
    for method in (name + variant for name in cell.ours for variant in VARIANTS):
        errors = values_by_split(results, method, cell.keys)
        if not errors:
            continue
        yield CellVerdict(
            cell,
            "nmse",
            method,
            cell.nmse,
            cell.deviation,
            judge(_array(errors), cell.nmse, cell.partitions, rng, deviation=cell.deviation, unit=unit),
        )
        if not method.startswith(REFERENCE):
            base = REFERENCE + (", lambda 1" if method.endswith(", lambda 1") else "")
            plain = values_by_split(results, base, full)
            paired = np.array([errors[split] - plain[split] for split in errors if split in plain])
            if len(paired):
                paper = cell.nmse - reference
                verdict = judge(paired, paper, cell.partitions, rng, unit=2.0 * unit)
                yield CellVerdict(cell, "difference", method, paper, None, verdict)
        improvements = values_by_split(results, method, cell.keys, "ni")
        if cell.ni is not None and improvements:
            verdict = judge(_array(improvements), cell.ni, cell.partitions, rng, unit=unit)
            yield CellVerdict(cell, "ni", method, cell.ni, None, verdict)


def values_by_split(
    results: ExperimentResults, method: str, keys: dict[str, Any], metric: str = "nmse"
) -> dict[Any, float]:
    """Our values on every partition, for records of a method that have all of the keys."""
    return {
        record["split"]: float(record[metric])
        for record in results.records
        if record["method"] == method
        and record.get(metric) is not None
        and all(record.get(key) == value for key, value in keys.items())
    }


def _array(values: dict[Any, float]) -> Array:
    return np.fromiter(values.values(), dtype=np.float64)
