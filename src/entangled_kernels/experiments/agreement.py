"""The paper's tables and claims beside ours, each with a verdict."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from scipy.stats import t as student

from ..io import ExperimentResults, Record
from ..linalg import Array

__all__ = [
    "AGREES",
    "BESIDE",
    "CELLS",
    "CLAIMS",
    "ENOUGH",
    "FAILS",
    "HIGHER",
    "HOLDS",
    "LOWER",
    "METRICS",
    "OPEN",
    "SHARED",
    "TOO_FEW",
    "Cell",
    "CellVerdict",
    "Claim",
    "Effect",
    "Finding",
    "Verdict",
    "as_records",
    "judge",
    "judge_cells",
    "judge_claim",
    "means_of_as_many",
    "values_by_split",
]

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


def _read_cells() -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = {}
    with files(__package__).joinpath("paper_cells.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            keys = {key: row[key] for key in ("task", "rank") if row[key]} | {"n": int(row["n"])}
            means = (
                float(row["nmse"]),
                float(row["deviation"]),
                float(row["ni"]) if row["ni"] else None,
            )
            counts = int(row["partitions"]), int(row["digits"])
            cell = Cell(row["method"], keys, *means, *counts, row["table"])
            cells.setdefault(row["experiment"], []).append(cell)
    return cells


# By the name of the experiment.
CELLS = _read_cells()


def as_records(name: str) -> list[Record]:
    """The cells of an experiment in the keys of its records, for tables and marks in figures."""
    found = {}
    for cell in CELLS.get(name, []):
        record = {"method": cell.method, **cell.keys, "nmse": cell.nmse}
        key = tuple(record[key] for key in ("method", *cell.keys))
        found[key] = record | ({} if cell.ni is None else {"ni": cell.ni})
    return list(found.values())


AGREES, LOWER, HIGHER = "agrees", "lower than ours", "higher than ours"
TOO_FEW = "too few partitions"
# Of a method that stands beside the one that the figure is about.
BESIDE = "not judged"
# Partitions of ours below which nothing is said.
ENOUGH = 20
# The central part of our means in which a published one agrees.
LEVEL = 0.95
N_DRAWS = 4000


class Verdict(NamedTuple):
    """What was found of one published mean.

    Attributes
    ----------
    word : str
        `AGREES`, or where the published mean lies: `LOWER`, `HIGHER`; `TOO_FEW` where ours cannot
        tell.
    percentile : float
        Where it lies among means of as many partitions of ours, 0 to 100; NaN for `TOO_FEW`.
    ours, deviation : float
        Mean and standard deviation of our partitions.
    difference : float
        Published mean less ours.
    in_errors : float
        The difference in units of its standard error; NaN where nothing varies.
    """

    word: str
    percentile: float
    ours: float
    deviation: float
    difference: float
    in_errors: float


def judge(
    ours: ArrayLike,
    paper: float,
    count: int,
    rng: np.random.Generator,
    *,
    deviation: float | None = None,
    unit: float = 0.0,
) -> Verdict:
    """Say where a published mean lies among means of as many partitions of ours.

    Parameters
    ----------
    ours : array-like of shape (N,)
        Our value on every partition.
    paper : float
        The published mean.
    count : int
        Partitions that it is the mean of.
    rng : numpy.random.Generator
    deviation : float, optional
        Published standard deviation over partitions, for the standard error; ours by default.
    unit : float, default=0
        Unit of the last printed digit. The published mean is taken as what is closest to the middle
        of ours among all that print alike.

    Notes
    -----
    The means are those of `means_of_as_many`, so that what N partitions leave unknown of our own
    mean counts as well: with `count` = 10 and N = 50 it adds a fifth to the variance. In units of
    the standard error the difference is (paper - mean) / sqrt(s^2 / N + deviation^2 / count).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ours = rng.normal(1.0, 0.1, size=60)
    >>> judge(ours, 1.02, 5, rng).word, judge(ours, 1.3, 5, rng).word
    ('agrees', 'higher than ours')
    """
    values = np.asarray(ours, dtype=np.float64)
    mean, own = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    difference = paper - mean
    spread = own if deviation is None else deviation
    error = float(np.sqrt(own**2 / len(values) + spread**2 / count))
    in_errors = difference / error if error > 0.0 else float("nan")
    if len(values) < ENOUGH:
        return Verdict(TOO_FEW, float("nan"), mean, own, difference, in_errors)
    means = means_of_as_many(values, count, rng)
    middle = float(np.median(means))
    shift = np.clip(middle - paper, -unit / 2.0, unit / 2.0)
    # Rounding of sums may part means that are equal.
    slack = 1e-12 * max(1.0, abs(middle))
    below = float(np.mean(means < paper + shift - slack))
    above = float(np.mean(means > paper + shift + slack))
    percentile = 100.0 * (below + (1.0 - below - above) / 2.0)
    tail = 50.0 * (1.0 - LEVEL)
    word = LOWER if percentile < tail else HIGHER if percentile > 100.0 - tail else AGREES
    return Verdict(word, percentile, mean, own, difference, in_errors)


def means_of_as_many(
    values: Array, count: int, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> Array:
    """Means of ``count`` further partitions, as the values at hand foretell them, (n_draws,).

    Notes
    -----
    Draws of a Polya urn: each further value is one of the N at hand or, as likely as each of those,
    one of the j already drawn. This is the Bayesian bootstrap: the law that the values come from is
    not taken for known, and the variance of a mean is s^2 (1 / count + (1 - 1 / count) / (N + 1)).
    It takes the deviation of N values for what it should be, so distances from the centre are
    stretched by sqrt(N / (N - 1)) and by the ratio of Student's quantile to the normal one, 3.6%
    for N = 50.

    Time n_draws * count.
    """
    n = len(values)
    picks = rng.integers(n + np.arange(count), size=(n_draws, count))
    for j in range(1, count):
        again = np.flatnonzero(picks[:, j] >= n)
        picks[again, j] = picks[again, picks[again, j] - n]
    tail = (1.0 - LEVEL) / 2.0
    stretch = np.sqrt(n / (n - 1)) * student.ppf(tail, n - 1) / norm.ppf(tail)
    centre = values.mean()
    return np.asarray(centre + stretch * (values[picks].mean(axis=1) - centre))


class Effect(NamedTuple):
    """A mean paired difference over partitions, its standard error, and the interval of the mean."""

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, differences: ArrayLike) -> Effect:
        """Mean difference with Student's interval; without end from a single partition."""
        values = np.asarray(differences, dtype=np.float64)
        mean = float(values.mean())
        if len(values) < 2:
            return cls(mean, float("inf"), -float("inf"), float("inf"))
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        half = float(student.ppf((1.0 + LEVEL) / 2.0, len(values) - 1)) * error
        return cls(mean, error, mean - half, mean + half)

    @property
    def sign(self) -> int:
        """-1 or 1 where the interval has one sign, else 0."""
        return -1 if self.high < 0.0 else 1 if self.low > 0.0 else 0


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

    A figure is set beside every form of its method that the records have: as published, stopped
    early, and with lambda 1. Differences and improvements are to the kernel ridge of the same
    partitions, with lambda 1 to that with lambda 1. A figure that EKL and ptrEKL have in common is
    judged by the one of them that cross-validation picks; each of the two stands beside it, without
    a verdict.
    """
    cells = CELLS.get(results.name, [])
    found = [one for cell in cells for one in _judge_cell(cell, cells, results, rng)]
    return [
        one if _is_meant(one) else one._replace(verdict=one.verdict._replace(word=BESIDE))
        for one in found
    ]


def _is_meant(one: CellVerdict) -> bool:
    return one.method.partition(",")[0] == one.cell.method


def _judge_cell(
    cell: Cell, cells: list[Cell], results: ExperimentResults, rng: np.random.Generator
) -> Iterator[CellVerdict]:
    unit = 10.0**-cell.digits
    full = cell.keys | ({"rank": "100%"} if "rank" in cell.keys else {})
    reference = next(
        other.nmse for other in cells if other.method == REFERENCE and other.keys == full
    )
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
            judge(
                _array(errors), cell.nmse, cell.partitions, rng, deviation=cell.deviation, unit=unit
            ),
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


HOLDS, FAILS, OPEN = "holds", "fails", "undecided"


@dataclass(frozen=True)
class Claim:
    """A difference that the paper reports, in percent of what it is to.

    Attributes
    ----------
    text : str
    experiment : str
    sign : {-1, 0, 1}
        Below, as good as, above.
    methods : tuple of str
        Ours that it is about; each is judged.
    other : str or None
        What they differ from; None where the values themselves have the sign.
    keys : dict
        The setting.
    other_keys : dict
        What is different in the setting of ``other``.
    metric : str
    tolerance : float
        Percent within which methods are as good.
    paper : float or None
        The published difference in percent; taken from the tables where these have it.
    summary : bool
        Whether it belongs to the summary of the whole paper.
    """

    text: str
    experiment: str
    sign: int
    methods: tuple[str, ...]
    other: str | None = "KRR"
    keys: dict[str, Any] = field(default_factory=dict)
    other_keys: dict[str, Any] = field(default_factory=dict)
    metric: str = "nmse"
    tolerance: float = 5.0
    paper: float | None = None
    summary: bool = False

    def published(self) -> float | None:
        """The paper's difference in percent, where it prints one."""
        if self.paper is not None or self.metric != "nmse":
            return self.paper
        means = {
            (name, *sorted(cell.keys.items())): cell.nmse
            for cell in CELLS.get(self.experiment, [])
            for name in cell.ours
        }
        method = self.methods[0].partition(",")[0]
        own = means.get((method, *sorted(self.keys.items())))
        other = str(self.other).partition(",")[0]
        base = means.get((other, *sorted((self.keys | self.other_keys).items())))
        return None if own is None or base is None else 100.0 * (own - base) / base

    def values(self, results: ExperimentResults, method: str) -> Array:
        """Our differences in percent, partition by partition; the values themselves without an ``other``."""
        own = values_by_split(results, method, self.keys, self.metric)
        if self.other is None:
            return np.fromiter(own.values(), dtype=np.float64)
        other = values_by_split(results, self.other, self.keys | self.other_keys, self.metric)
        both = [split for split in own if split in other]
        scale = np.mean([other[split] for split in both]) if both else 1.0
        return np.array([100.0 * (own[split] - other[split]) / scale for split in both])


@dataclass(frozen=True)
class Finding:
    """What one run says of a claim: an effect and a word for each method."""

    effects: dict[str, Effect]
    words: dict[str, str]

    @property
    def verdict(self) -> str:
        """One word where methods agree, else one for each."""
        if len(set(self.words.values())) == 1:
            return next(iter(self.words.values()))
        return ", ".join(f"{method} {word}" for method, word in self.words.items())


def judge_claim(claim: Claim, results: ExperimentResults | None) -> Finding | None:
    """Whether a claim holds in a run, by the 95% interval of the mean difference; None without records.

    A claim of a sign holds where the interval has that sign and fails where it has the other. That
    methods are as good holds where the interval lies within the tolerance, and fails where it lies
    outside.
    """
    if results is None:
        return None
    effects = {method: claim.values(results, method) for method in claim.methods}
    found = {method: Effect.of(values) for method, values in effects.items() if len(values)}
    return (
        Finding(found, {name: _word(claim, effect) for name, effect in found.items()})
        if found
        else None
    )


def _word(claim: Claim, effect: Effect) -> str:
    if claim.sign:
        return {claim.sign: HOLDS, -claim.sign: FAILS, 0: OPEN}[effect.sign]
    if -claim.tolerance <= effect.low and effect.high <= claim.tolerance:
        return HOLDS
    return FAILS if effect.low > claim.tolerance or effect.high < -claim.tolerance else OPEN


def _read_claims() -> list[Claim]:
    text = files(__package__).joinpath("claims.json").read_text(encoding="utf-8")
    return [Claim(**claim | {"methods": tuple(claim["methods"])}) for claim in json.loads(text)]


CLAIMS = _read_claims()
