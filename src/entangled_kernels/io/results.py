"""Results of an experiment: records, and what is needed to repeat them, as JSON and CSV."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files import atomic_write

__all__ = ["ExperimentResults", "Record"]

Record = dict[str, Any]

FORMAT = 1


@dataclass
class ExperimentResults:
    """Results of an experiment.

    Attributes
    ----------
    name : str
        Of the experiment, and of its files.
    title : str
    records : list of dict
        One for each setting, method and split: ``method``, ``split``, the setting (``n``, ``p``,
        ``rank``, ``task``), the metrics (``nmse``, ``ni``) and ``fit_seconds``; only strings and
        numbers.
    paper : list of dict
        The published numbers for the same settings, with the same keys except ``split``.
    meta : dict
        What is needed to repeat the run: protocol, seed, versions of the software and so on.
    arrays : dict of ndarray
        Results that are not records, such as a kernel matrix.
    """

    name: str
    title: str
    records: list[Record]
    paper: list[Record] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``NAME.json``, ``NAME.csv`` and, for arrays, ``NAME.npz``; returns the paths."""
        base = Path(folder) / self.name
        paths = [base.with_suffix(".json"), base.with_suffix(".csv")]
        content = {
            "format": FORMAT,
            "name": self.name,
            "title": self.title,
            "meta": self.meta,
            "records": self.records,
            "paper": self.paper,
        }
        with atomic_write(paths[0]) as file:
            json.dump(content, file, indent=1, default=_plain)
            file.write("\n")
        with atomic_write(paths[1]) as file:
            columns = list(dict.fromkeys(key for record in self.records for key in record))
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.records)
        if self.arrays:
            paths.append(base.with_suffix(".npz"))
            with atomic_write(paths[2], "wb") as file:
                np.savez_compressed(file, **self.arrays)  # type: ignore[arg-type]
        return paths

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ExperimentResults:
        """Read the files that `save` wrote; ``path`` is that of the JSON file."""
        path = Path(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path} does not hold results of format {FORMAT}")
        arrays: dict[str, NDArray[Any]] = {}
        if path.with_suffix(".npz").exists():
            with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
                arrays = dict(file)
        parts = {key: content[key] for key in ("name", "title", "records", "paper", "meta")}
        return cls(**parts, arrays=arrays)

    def array(self, name: str) -> NDArray[Any]:
        """An array by its name; an unknown name raises an error that lists the names."""
        if name not in self.arrays:
            raise ValueError(f"results have no array {name!r}; they have {sorted(self.arrays)}")
        return self.arrays[name]

    def summary(self, metric: str = "nmse", by: Sequence[str] = ("n", "method")) -> list[Record]:
        """Mean, standard deviation, count and the paper's number (or None) for each combination.

        Records without the metric are left out; combinations are in the order of their first
        record.
        """
        values: dict[tuple[Any, ...], list[float]] = {}
        for record in self.records:
            if record.get(metric) is not None:
                values.setdefault(tuple(record.get(key) for key in by), []).append(
                    float(record[metric])
                )
        published = {
            tuple(record.get(key) for key in by): record.get(metric) for record in self.paper
        }
        return [
            dict(zip(by, key, strict=True))
            | {
                "mean": float(np.mean(group)),
                "std": float(np.std(group, ddof=1)) if len(group) > 1 else 0.0,
                "count": len(group),
                "paper": published.get(key),
            }
            for key, group in values.items()
        ]


def _plain(value: Any) -> Any:
    """NumPy numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"results must hold plain values, got {type(value).__name__}")
